"""From texts to parses and features, free of HTTP."""
