"""Parsers of given words that Parsebank trained: two ONNX programs."""
