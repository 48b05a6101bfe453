"""Fetching, checking and removing parser models: what ``parsebank models`` does.

Nothing that answers requests imports it.
"""
