"""Deprecated name of `clients.client.retries`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "clients.client.retries")
