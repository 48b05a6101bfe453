"""Deprecated name of `syntax.batches`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "syntax.batches")
