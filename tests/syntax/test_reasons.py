"""The list of drop reasons is closed, and whatever can be wrong with an example is on it."""

from __future__ import annotations

import pytest

from syntax import errors
from syntax.reasons import DROP_REASONS, drop_reason


def family(cls: type[errors.ParsebankError]) -> list[type[errors.ParsebankError]]:
    return [cls, *(x for child in cls.__subclasses__() for x in family(child))]


@pytest.mark.parametrize("cls", family(errors.InputError), ids=lambda cls: cls.__name__)
def test_every_fault_of_an_input_has_a_reason_on_the_list(cls: type[errors.InputError]) -> None:
    assert drop_reason(cls("what came")) in DROP_REASONS


def test_a_fault_keeps_its_own_name_where_the_list_has_it() -> None:
    assert drop_reason(errors.NoLabelError("none")) == "no_label"
    assert drop_reason(errors.WorkerDiedError("died")) == "worker_died"


def test_a_new_kind_of_fault_is_counted_under_the_one_that_it_is_a_kind_of() -> None:
    class OddExampleError(errors.ExampleError):
        pass

    assert drop_reason(OddExampleError("odd")) == "example"
