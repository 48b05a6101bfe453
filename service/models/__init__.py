"""Fetching, checking, removing and training parser models: what ``parsebank models`` does.

Nothing that answers requests imports it.
"""
