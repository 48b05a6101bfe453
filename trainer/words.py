"""Deprecated name of `trainer.systems.frozen.words`."""

from syntax.deprecated import moved

__getattr__ = moved(__name__, "trainer.systems.frozen.words")
