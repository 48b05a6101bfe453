"""Reasons why an example is missing from a dataset: a closed list."""

from __future__ import annotations

from typing import Final

from syntax import errors

_CAUSES: Final[tuple[type[errors.ParsebankError], ...]] = (
    *(errors.EmptyTextError, errors.InvalidCharacterError, errors.TextTooLongError),
    *(errors.EmptyTokenError, errors.SentenceTooLongError, errors.NoSentenceError),
    *(errors.UnparsableTextError, errors.ConlluError, errors.EmptyTreeError),
    *(errors.NoRootError, errors.MultipleRootsError, errors.CycleError),
    *(errors.HeadOutOfRangeError, errors.MissingHeadError),
    *(errors.ExampleError, errors.LabelError, errors.NoLabelError),
    *(errors.WorkerDiedError, errors.InputError),
)

DROP_REASONS: Final = frozenset(cause.error_type for cause in _CAUSES)


def drop_reason(error: errors.ParsebankError) -> str:
    """Reason of an error: its own ``error_type``, or that of the nearest listed base class.

    >>> drop_reason(errors.CycleError("1 hangs from 1")), drop_reason(errors.SpecError("none"))
    ('cycle', 'input')
    """
    names = (getattr(cls, "error_type", "") for cls in type(error).__mro__)
    return next((name for name in names if name in DROP_REASONS), errors.InputError.error_type)
