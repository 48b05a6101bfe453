"""SQL over the store's tables."""
