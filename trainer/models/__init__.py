"""Whole models: their configuration, parts and outputs."""
