"""API keys and rate limits. Nothing is imported here, for a quick command line."""
