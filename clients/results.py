"""Deprecated name of `clients.client.results`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "clients.client.results")
