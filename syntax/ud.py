"""Deprecated name of `syntax.trees.ud`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "syntax.trees.ud")
