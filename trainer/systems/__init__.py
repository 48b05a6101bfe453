"""Published systems, each whole in a folder of its own.

A folder holds the system's options, encoder, recipes, switches, and its matrices on the device; its
``__init__`` registers them in `SYSTEMS`. Every folder here is imported, so a new system is one new
folder. ``frozen`` registers nothing: it holds what systems share that read the stored states of
words.
"""

from importlib import import_module
from pkgutil import iter_modules

from trainer.systems.base import SYSTEMS, System

for _folder in iter_modules(__path__):
    if _folder.ispkg:
        import_module(f"{__name__}.{_folder.name}")

__all__ = ["SYSTEMS", "System"]
