"""Fetching, checking and removing parser models. Nothing that answers requests imports it."""
