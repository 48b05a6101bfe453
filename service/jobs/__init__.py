"""Backfill jobs: accepted durably, cut into shards, run exactly once by worker processes."""
