"""Metrics, each a plain function of gold and predicted values; nothing here imports torch."""
