"""The store's Delta tables."""
