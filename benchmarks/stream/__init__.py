"""Streaming against other loaders of training data; see `benchmarks.stream.__main__`."""
