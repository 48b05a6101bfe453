"""A loaded Stanza pipeline: texts to tokens, and words to trees.

A sentence's length is known before the second step, which is quadratic.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Final

from service.parsers.stanza.packages import Package
from syntax.errors import ModelLoadError
from syntax.extras import missing_extra

UNKNOWN: Final = "<UNK>"

_LONGEST_TOKEN: Final = 1000


class StanzaProcessors:
    """Processors of a ``stanza.Pipeline``."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        splitting = pipeline.processors["tokenize"]
        # The same model under another option: a second pipeline would load everything twice.
        whole = copy(splitting)
        whole._config = {**splitting.config, "no_ssplit": True}
        self._tokenizers = {False: splitting, True: whole}
        self.longest_token = int(splitting.config.get("max_seqlen", _LONGEST_TOKEN))

    def tokenize(self, texts: Sequence[str], *, one_sentence: bool) -> list[Any]:
        """Tokens and words of `trimmed` texts, as ``stanza.Document``."""
        from stanza import Document

        documents = [Document([], text=text) for text in texts]
        with quietly():
            found: list[Any] = self._tokenizers[one_sentence].bulk_process(documents)
            expand = self._pipeline.processors.get("mwt")
            return found if expand is None else list(expand.bulk_process(found))

    def annotate(self, texts: Sequence[Sequence[Sequence[str]]]) -> list[Any]:
        from stanza import Document

        documents = [Document([_rows(words) for words in sentences]) for sentences in texts]
        with quietly():
            return list(self._pipeline.bulk_process(documents, processors="pos,lemma,depparse"))


def trimmed(text: str) -> tuple[str, int]:
    r"""Text without what Stanza takes for white space at its edges, and its start.

    Stanza joins texts by empty lines, and would read a line break at an edge otherwise.

    >>> trimmed(" \n a b\x85")
    ('a b', 3)
    """
    start, end = 0, len(text)
    while start < end and _is_blank(text[start]):
        start += 1
    while start < end and _is_blank(text[end - 1]):
        end -= 1
    return text[start:end], start


def load_engine(package: Package, device: str) -> StanzaProcessors:
    with quietly():
        stanza = _library()
        try:
            pipeline = stanza.Pipeline(
                package.lang,
                dir=str(package.folder),
                package=None,
                processors=dict(package.processors),
                download_method=None,
                device=device,
                logging_level="CRITICAL",
            )
            return StanzaProcessors(pipeline)
        except Exception as error:
            # Stanza has no error of its own for a damaged file; torch and pickle raise anything.
            raise ModelLoadError(
                f"Stanza cannot load {package.model_name} from {package.folder} on {device}: "
                f"{type(error).__name__}: {str(error)[:300]}; fetch it again",
                path=str(package.folder),
            ) from error


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings and logs: they are for people who train models, and may hold texts."""
    logger = logging.getLogger("stanza")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)


def _library() -> Any:
    try:
        with quietly():
            import stanza
            import torch
    except ImportError as error:
        raise missing_extra(f"Stanza cannot be imported ({error})", "stanza") from None
    # One thread per process: the workers are the cores, and threads would not survive the fork.
    torch.set_num_threads(1)
    return stanza


def _is_blank(character: str) -> bool:
    return character.isspace() or "\x80" <= character <= "\x9f"


def _rows(words: Sequence[str]) -> list[dict[str, Any]]:
    return [{"id": (at,), "text": word} for at, word in enumerate(words, 1)]
