"""Who may use the service, and how often: API keys and rate limits.

Nothing is imported here: the command line imports this package for its commands only.
"""
