"""A loaded Stanza pipeline: texts to tokens, and words to trees.

The two steps are apart, so that a sentence's length is known before it costs anything: the parser
is quadratic, the tokenizer is not.
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
"""What Stanza shows its models in place of a token too long for them."""

_LONGEST_TOKEN: Final = 1000


class StanzaProcessors:
    """The processors of one pipeline.

    Args:
        pipeline: A ``stanza.Pipeline``.
    """

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        splitting = pipeline.processors["tokenize"]
        # The same model under another option: a second pipeline would load everything twice.
        whole = copy(splitting)
        whole._config = {**splitting.config, "no_ssplit": True}
        self._tokenizers = {False: splitting, True: whole}
        self.longest_token = int(splitting.config.get("max_seqlen", _LONGEST_TOKEN))

    def tokenize(self, texts: Sequence[str], *, one_sentence: bool) -> list[Any]:
        """Tokens and their words of each text, as ``stanza.Document``.

        Args:
            texts: Texts as `trimmed` gives them.
            one_sentence: Whether each text is one sentence; it then holds no line break.
        """
        from stanza import Document

        documents = [Document([], text=text) for text in texts]
        with quietly():
            found: list[Any] = self._tokenizers[one_sentence].bulk_process(documents)
            expand = self._pipeline.processors.get("mwt")
            return found if expand is None else list(expand.bulk_process(found))

    def annotate(self, texts: Sequence[Sequence[Sequence[str]]]) -> list[Any]:
        """Tag, lemmatize and parse the words of each sentence of each text."""
        from stanza import Document

        documents = [Document([_rows(words) for words in sentences]) for sentences in texts]
        with quietly():
            return list(self._pipeline.bulk_process(documents, processors="pos,lemma,depparse"))


def trimmed(text: str) -> tuple[str, int]:
    r"""The text without what Stanza takes for white space at its edges, and where it begins.

    Stanza joins texts by empty lines, and would read a line break at an edge otherwise than in a
    text of its own.

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
    """Load a package.

    Args:
        package: The package.
        device: ``cpu`` or ``cuda``.
    """
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
    """Suppress warnings and log lines: they are for people who train models, and may hold texts."""
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
