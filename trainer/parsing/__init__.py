"""The parser of running text: one encoder for all of UD, trained here and served as ONNX."""
