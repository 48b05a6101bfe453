"""The errors that Parsebank raises.

::

    ParsebankError
    |-- InputError (ValueError)            the input cannot be used
    |   |-- TextError                      a text or its tokens
    |   |   |-- EmptyTextError, InvalidCharacterError, TextTooLongError
    |   |   |-- TextTooSlowError
    |   |   |-- EmptyTokenError, SentenceTooLongError, NoSentenceError, UnparsableTextError
    |   |-- TreeError                      heads that do not form one tree
    |   |   |-- EmptyTreeError, NoRootError, MultipleRootsError
    |   |   |-- CycleError, HeadOutOfRangeError, MissingHeadError
    |   |-- ConlluError                    a malformed CoNLL-U file, with its line
    |   |-- BracketsError                  a malformed file of constituent trees, with its line
    |   |-- ExampleError                   a benchmark example that its reader rejects
    |   |-- LabelError                     a label that does not fit its text or tokens
    |   |   |-- NoLabelError               a record without a gold label
    |   |-- SpecError                      a request, dataset or recipe that contradicts itself
    |   |-- RequestEntityTooLargeError     a request body over the limit
    |   |-- UnsupportedMediaTypeError      a request body of another type
    |-- UnknownNameError (LookupError)     no registry, folder or table has the name
    |   |-- UnknownParserError, UnknownLanguageError, UnknownTokenizerError
    |   |   |-- TokenizerOffsetsError
    |   |-- UnknownDatasetError, UnknownJobError, UnknownKeyError, UnknownModelError
    |-- WorkError (RuntimeError)           the work failed and may succeed later
    |   |-- DeadlineError, WorkerDiedError, OverloadedError, ModelLoadError, DownloadError
    |   |-- NotReadyError                  the service would not succeed now
    |   |-- ConflictError                  the state of the thing forbids it
    |   |   |-- UploadGoneError
    |-- AccessError (PermissionError)      the caller may not do this, or not now
    |   |-- UnauthorizedError, ForbiddenError, RateLimitError
    |-- StoreError (RuntimeError)          the feature store
    |   |-- StoreFormatError, StoreBusyError, DiskError
    |-- MissingExtraError (ImportError)    an optional dependency is not installed

``error_type`` is the stable name in HTTP responses, drop reports and job tables; it is derived from
the class name. A package subclasses these for its own failures (such as `TrainingError` in
`service`), so that a caller can catch them by the classes on this page.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

_USER: Final = re.compile(r"(?<=://)([^\s/?#:@]*):[^\s/?#]*@")


def without_passwords(text: str) -> str:
    """Hide the passwords of URLs in a text; messages of libraries quote addresses.

    >>> without_passwords("cannot reach http://ada:secret@store:9000/bucket")
    'cannot reach http://ada:***@store:9000/bucket'
    """
    return _USER.sub(r"\1:***@", text) if "://" in text else text


class ParsebankError(Exception):
    """Base of all errors of Parsebank; message and detail, plain JSON, hide passwords of URLs."""

    error_type: ClassVar[str] = "parsebank"

    def __init__(self, message: str, **detail: Any) -> None:
        super().__init__(without_passwords(message))
        self.message = without_passwords(message)
        self.detail: dict[str, Any] = {
            name: without_passwords(fact) if isinstance(fact, str) else fact
            for name, fact in detail.items()
        }

    def __init_subclass__(cls) -> None:
        # Its name in snake case, without ``Error``.
        cls.error_type = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Default pickling loses keyword-only details; worker processes send errors by pickle.
        return _rebuild, (type(self), self.message, self.detail)


def _rebuild(cls: type[ParsebankError], message: str, detail: dict[str, Any]) -> ParsebankError:
    return cls(message, **detail)


class InputError(ParsebankError, ValueError):
    """The input cannot be used."""


class TextError(InputError):
    """A text, or one of its tokens, cannot be parsed."""


class EmptyTextError(TextError):
    """The text is empty or consists of white space."""


class InvalidCharacterError(TextError):
    """The text holds NUL or a lone surrogate, which neither parsers nor UTF-8 can carry."""


class TextTooLongError(TextError):
    """The text has more characters than the service accepts."""


class TextTooSlowError(TextError):
    """The parser computes for far longer on the text than on others of its length."""


class EmptyTokenError(TextError):
    """A pre-tokenized text holds an empty or white-space token."""


class SentenceTooLongError(TextError):
    """A sentence has more words than the service parses (parsers are quadratic)."""


class NoSentenceError(TextError):
    """The parser found no word in the text."""


class UnparsableTextError(TextError):
    """The parser's library failed on this text."""


class TreeError(InputError):
    """The heads of a sentence do not form one tree."""


class EmptyTreeError(TreeError):
    """A tree needs at least one word."""


class NoRootError(TreeError):
    """No word has head 0."""


class MultipleRootsError(TreeError):
    """More than one word has head 0."""


class CycleError(TreeError):
    """Following the heads never reaches a root."""


class HeadOutOfRangeError(TreeError):
    """A head points at no word of the sentence."""


class MissingHeadError(TreeError):
    """A word carries no head at all."""


class ConlluError(InputError):
    """A malformed CoNLL-U file; ``detail`` has ``path`` and the 1-based ``line``."""


class BracketsError(InputError):
    """A malformed constituent tree; ``detail`` has ``path`` and the 1-based ``line``."""


class ExampleError(InputError):
    """A benchmark line or record that its reader rejects."""


class LabelError(InputError):
    """A label that does not fit the text or the tokens that it is about."""


class NoLabelError(LabelError):
    """A benchmark record without a gold label."""


class SpecError(InputError):
    """A request, dataset specification or recipe that contradicts itself."""


class RequestEntityTooLargeError(InputError):
    """The body of a request has more bytes than the service reads."""


class UnsupportedMediaTypeError(InputError):
    """The body of a request is not of a type that the route takes."""


class UnknownNameError(ParsebankError, LookupError):
    """An unknown name; the message lists the known ones."""


class UnknownParserError(UnknownNameError):
    """No such parser."""


class UnknownLanguageError(UnknownNameError):
    """No parser for this language."""


class UnknownTokenizerError(UnknownNameError):
    """No such tokenizer, or not a fast one."""


class TokenizerOffsetsError(UnknownTokenizerError):
    """A tokenizer whose character offsets cannot be aligned with words."""


class UnknownDatasetError(UnknownNameError):
    """No such dataset, split, language or version in the store."""


class UnknownJobError(UnknownNameError):
    """No such job."""


class UnknownModelError(UnknownNameError):
    """No model under this name to look at, load or unload."""


class UnknownKeyError(UnknownNameError):
    """No stored parse or features under this key."""


class WorkError(ParsebankError, RuntimeError):
    """The work could not be done this time; it may succeed later."""


class DeadlineError(WorkError):
    """The parser took longer than the request's deadline and was ended."""


class WorkerDiedError(WorkError):
    """The parser process died on this text."""


class OverloadedError(WorkError):
    """The queue is full; ``detail['retry_after']`` says for how many seconds."""


class ModelLoadError(WorkError):
    """A model file is missing, corrupt or does not match its recorded checksum."""


class DownloadError(WorkError):
    """A file could not be fetched, or differs from the expected one."""


class NotReadyError(WorkError):
    """A parse would fail now; ``detail['checks']`` says which part is not ready."""


class ConflictError(WorkError):
    """The request contradicts the state of its object, such as a busy model or a running job."""


class UploadGoneError(ConflictError):
    """The uploaded examples of a failed job are no longer kept."""


class AccessError(ParsebankError, PermissionError):
    """The caller may not do this, or not now."""


class UnauthorizedError(AccessError):
    """The request has no API key, or an unknown one."""


class ForbiddenError(AccessError):
    """The caller's key, or the page that sends the request, may not do this."""


class RateLimitError(AccessError):
    """Too many requests under this key; ``detail['retry_after']`` says for how many seconds."""


class StoreError(ParsebankError, RuntimeError):
    """The feature store could not be read or written."""


class StoreFormatError(StoreError):
    """The folder is not a store of a version that this release reads."""


class StoreBusyError(StoreError):
    """Other writers committed first at each attempt; nothing was written."""


class DiskError(StoreError):
    """A disk is full or cannot be written to."""


class MissingExtraError(ParsebankError, ImportError):
    """An optional dependency is missing; the message has the ``pip install`` line."""


_CAUSES: Final[tuple[type[ParsebankError], ...]] = (
    *(EmptyTextError, InvalidCharacterError, TextTooLongError),
    *(EmptyTokenError, SentenceTooLongError, NoSentenceError),
    *(UnparsableTextError, ConlluError, BracketsError, EmptyTreeError),
    *(NoRootError, MultipleRootsError, CycleError),
    *(HeadOutOfRangeError, MissingHeadError),
    *(ExampleError, LabelError, NoLabelError),
    *(WorkerDiedError, InputError),
)

DROP_REASONS: Final = frozenset(cause.error_type for cause in _CAUSES)
"""Reasons why an example is missing from a dataset: a closed list of error types."""


def drop_reason(error: ParsebankError) -> str:
    """Reason of an error: its own ``error_type``, or that of the nearest listed base class.

    >>> drop_reason(CycleError("1 hangs from 1")), drop_reason(SpecError("none"))
    ('cycle', 'input')
    """
    names = (getattr(cls, "error_type", "") for cls in type(error).__mro__)
    return next((name for name in names if name in DROP_REASONS), InputError.error_type)
