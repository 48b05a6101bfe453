"""The tokenizer in the folder of a parser that Parsebank trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tokenizers

from syntax.errors import ModelLoadError


def read_tokenizer(path: Path, remedy: str) -> Any:
    """Read a tokenizer that neither cuts nor pads; raises `ModelLoadError`."""
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise ModelLoadError(
            f"{path} is no tokenizer ({error}); {remedy}", path=str(path)
        ) from None
    backend.no_truncation()
    backend.no_padding()
    return backend
