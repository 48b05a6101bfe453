"""Datasets: examples at a pinned version, pairs across languages, mixtures, noise."""
