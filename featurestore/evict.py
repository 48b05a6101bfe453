"""Deprecated name of `featurestore.maintenance.evict`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "featurestore.maintenance.evict")
