"""How errors name an example of a batch, and how callers that know its id rename it."""

from __future__ import annotations

import re
from typing import Any, Final

from syntax.errors import InputError

_OF_BATCH: Final = re.compile(r"example (\d+) of the batch")


def of_batch(number: int) -> str:
    """What errors call the example with this number, 0-based."""
    return f"example {number} of the batch"


def number_in(error: InputError) -> int | None:
    """Number of the example that an error of `syntax.batches` is about, if it is about one."""
    found = _OF_BATCH.search(error.message)
    return None if found is None else int(found[1])


def renamed(error: InputError, name: str, **detail: Any) -> InputError:
    """The error with another name for its example, and ``detail`` instead of the number."""
    kept = {key: value for key, value in error.detail.items() if key != "example"}
    return type(error)(_OF_BATCH.sub(lambda _: name, error.message), **kept, **detail)
