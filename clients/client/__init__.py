"""The client of the service: calls, answers, errors, retries."""
