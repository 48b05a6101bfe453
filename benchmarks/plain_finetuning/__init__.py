"""Our recipes without trees, beside fine-tuning with nothing but transformers."""
