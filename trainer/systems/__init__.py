"""Published systems, each whole in a folder of its own, whose ``__init__`` registers them.

``frozen`` registers nothing: systems that read the stored states of words share it.
"""

from importlib import import_module
from pkgutil import iter_modules

from trainer.systems.base import SYSTEMS, System

for _folder in iter_modules(__path__):
    if _folder.ispkg:
        import_module(f"{__name__}.{_folder.name}")

__all__ = ["SYSTEMS", "System"]
