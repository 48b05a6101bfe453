"""Rows to Arrow tables and back, a column at a time."""
