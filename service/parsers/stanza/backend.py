"""Stanza as a parser: many texts at a time, spans from the text and never from the tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    attempt,
)
from service.parsers.bulk import BulkParser
from service.parsers.columns import Columns
from service.parsers.stanza.drafts import Draft, given_draft, read_draft, shown_text, split_draft
from service.parsers.stanza.packages import (
    PROCESSORS,
    Package,
    find_stanza,
    package_of,
    stanza_version,
)
from service.parsers.stanza.processors import (
    StanzaProcessors,
    load_engine,
)
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError


class StanzaParser(BulkParser):
    """A Stanza package; without loaded processors each process loads it at its first text."""

    # Twice as many gain nothing more.
    lot_words = 1_000
    lot_texts = 32

    def __init__(
        self,
        package: Package,
        identity: ParserIdentity,
        device: str,
        processors: StanzaProcessors | None = None,
    ) -> None:
        super().__init__(identity)
        self._package = package
        self._device = device
        self._loaded = processors

    @cached_property
    def _processors(self) -> StanzaProcessors:
        return self._loaded or load_engine(self._package, self._device)

    def _together(self, items: Sequence[ParseInput], limits: Limits) -> list[Outcome]:
        limit = limits.max_words_per_sentence
        found = [
            attempt(_within, item, drafts, limit)
            for item, drafts in zip(items, self._tokenized(items), strict=True)
        ]
        sound = [drafts for drafts in found if isinstance(drafts, list)]
        words = iter(self._annotated(sound))
        return [
            drafts
            if isinstance(drafts, ParsebankError)
            else attempt(_finish, item, drafts, next(words))
            for item, drafts in zip(items, found, strict=True)
        ]

    def _tokenized(self, items: Sequence[ParseInput]) -> list[list[Draft]]:
        longest = self._processors.longest_token
        found = [
            [given_draft(item.tokens or (), longest)] if item.mode == "pretokenized" else []
            for item in items
        ]
        texts = {
            at: shown_text(item) for at, item in enumerate(items) if item.mode != "pretokenized"
        }
        for one_sentence in (False, True):
            places = [
                at
                for at, (text, _) in texts.items()
                if text and one_sentence == (items[at].mode != "raw")
            ]
            shown = [texts[at][0] for at in places]
            documents = self._processors.tokenize(shown, one_sentence=one_sentence) if shown else []
            for at, document in zip(places, documents, strict=True):
                text, shift = items[at].joined, texts[at][1]
                found[at] = [read_draft(text, one, shift) for one in document.sentences]
        for at, item in enumerate(items):
            if item.mode == "tokens_mwt":
                found[at] = [split_draft(item.tokens or (), found[at], longest)]
        return found

    def _annotated(self, texts: Sequence[Sequence[Draft]]) -> list[list[Any]]:
        """Stanza's words of each sentence of each text; texts may have no sentence."""
        shown = [[draft.shown for draft in drafts] for drafts in texts]
        documents = iter(self._processors.annotate([text for text in shown if text]))
        return [[one.words for one in next(documents).sentences] if text else [] for text in shown]


def load_stanza(model: ModelFile, identity: ParserIdentity, device: str) -> StanzaParser:
    """Load a package and try it on one word.

    On the CPU forked workers share the loaded package; a GPU's memory cannot be shared: there the
    package is only tried, on the CPU, and every worker loads it at its first text.
    """
    package = package_of(model)
    chosen = choose_device(device)
    parser = StanzaParser(package, identity, "cpu", load_engine(package, "cpu"))
    parser.parse(ParseInput("pretokenized", tokens=("a",)), Limits())
    return parser if chosen == "cpu" else StanzaParser(package, identity, chosen)


def choose_device(wanted: str) -> str:
    """``cpu`` or ``cuda``; only the first is known without an import of torch."""
    if wanted == "cpu":
        return "cpu"
    import torch

    # Ask the driver's library: the CUDA runtime's own answer would be of no use after a fork.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    if torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise ModelLoadError("device is cuda, but torch finds no GPU; use auto or cpu")
    return "cpu"


STANZA: Final = Backend(
    "stanza",
    find_stanza,
    stanza_version,
    load_stanza,
    options={"processors": ",".join(PROCESSORS)},
    bulk=True,
)


def _within(item: ParseInput, drafts: Sequence[Draft], limit: int) -> list[Draft]:
    return [piece for draft in drafts for piece in draft.within(item, limit)]


def _finish(item: ParseInput, drafts: Sequence[Draft], sentences: Sequence[Any]) -> Parse:
    columns = Columns(item.joined)
    for draft, words in zip(drafts, sentences, strict=True):
        columns.add(draft.surface, draft.annotation(words))
    return columns.parse()
