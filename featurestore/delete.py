"""Deprecated name of `featurestore.maintenance.delete`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "featurestore.maintenance.delete")
