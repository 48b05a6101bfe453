"""Batches from a pinned dataset version: order, reading, assembly."""
