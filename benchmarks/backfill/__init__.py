"""Benchmarks of backfills."""
