"""spaCy pipelines whose labels are those of Universal Dependencies."""
