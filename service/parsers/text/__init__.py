"""Parsers of running text that Parsebank trained: three ONNX programs."""
