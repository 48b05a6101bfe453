"""The list of drop reasons is closed, and whatever can be wrong with an example is on it."""

from __future__ import annotations

import pytest

from syntax import errors
from syntax.reasons import DROP_REASONS, drop_reason


def family(cls: type[errors.ParsebankError]) -> list[type[errors.ParsebankError]]:
    return [cls, *(x for child in cls.__subclasses__() for x in family(child))]


@pytest.mark.parametrize("cls", family(errors.InputError), ids=lambda cls: cls.__name__)
def test_every_input_error_has_a_listed_reason(cls: type[errors.InputError]) -> None:
    assert drop_reason(cls("what came")) in DROP_REASONS


def test_a_listed_error_is_its_own_reason() -> None:
    assert drop_reason(errors.NoLabelError("none")) == "no_label"
    assert drop_reason(errors.WorkerDiedError("died")) == "worker_died"


def test_an_unlisted_error_counts_as_its_base_class() -> None:
    class OddExampleError(errors.ExampleError):
        pass

    assert drop_reason(OddExampleError("odd")) == "example"
