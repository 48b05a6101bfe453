"""Names of examples in errors, which callers that know their ids replace."""

from __future__ import annotations

import re
from typing import Any, Final

from syntax.errors import InputError

_OF_BATCH: Final = re.compile(r"example (\d+) of the batch")


def of_batch(number: int) -> str:
    return f"example {number} of the batch"


def number_in(error: InputError) -> int | None:
    found = _OF_BATCH.search(error.message)
    return None if found is None else int(found[1])


def renamed(error: InputError, name: str, **detail: Any) -> InputError:
    """The error with another name for its example, and ``detail`` instead of the number."""
    kept = {key: value for key, value in error.detail.items() if key != "example"}
    return type(error)(_OF_BATCH.sub(lambda _: name, error.message), **kept, **detail)
