"""Fetching, checking and removing parser models: what ``parsebank models`` does."""
