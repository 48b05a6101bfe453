"""Deprecated name of `featurestore.maintenance.migrate`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "featurestore.maintenance.migrate")
