"""Deprecated name of `trainer.matrices.derive`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "trainer.matrices.derive")
