"""Checks and lookups of a request, before anything is parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from featurestore import FeatureStore
from service.parsers import Limits, ModelFile, ParseInput, ParserIdentity
from service.parsers.base import Outcome
from service.pipeline.inputs import check_input, parse_key
from service.pipeline.records import FeatureRequest, ItemFeatures
from service.pipeline.resolvers import ParserResolver
from service.settings import Settings
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.alignment import project_labels, token_words
from syntax.errors import ParsebankError


@dataclass(frozen=True)
class Plan:
    """A checked request, with the parses that the store already holds.

    Attributes:
        lang: Language under which the parses are stored.
        deadline: In the event loop's time.
        keys: Parse key or error of each text, in order.
        generation: `ParseTable.generation` before the lookup.
    """

    request: FeatureRequest
    model: ModelFile
    parser: ParserIdentity
    lang: str
    tokenizer: LoadedTokenizer | None
    deadline: float
    keys: list[str | ParsebankError]
    wanted: dict[str, ParseInput]
    stored: dict[str, Parse]
    generation: int = 0

    @cached_property
    def missing(self) -> dict[str, ParseInput]:
        return {key: item for key, item in self.wanted.items() if key not in self.stored}

    def item(self, index: int, fresh: Mapping[str, Outcome]) -> ItemFeatures | ParsebankError:
        key = self.keys[index]
        if isinstance(key, ParsebankError):
            return key
        cached = key in self.stored
        outcome = self.stored[key] if cached else fresh[key]
        if isinstance(outcome, ParsebankError):
            return outcome
        item = ItemFeatures(key, cached=cached, parse=outcome)
        tokens = self.request.items[index].tokens
        if tokens is None:
            return item
        words, labels = token_words(tokens, outcome), self.request.token_labels
        if labels is None:
            return replace(item, token_words=words)
        projected = project_labels(labels[index], words, outcome.word_count)
        return replace(item, token_words=words, word_labels=projected)

    def places(self, fresh: Collection[str]) -> list[int]:
        """Indices of texts; a text may occur several times."""
        return [index for key in fresh for index in self._places[key]]

    def ready_places(self) -> list[int]:
        return [index for index, key in enumerate(self.keys) if key not in self.missing]

    @cached_property
    def _places(self) -> dict[str | ParsebankError, list[int]]:
        places: dict[str | ParsebankError, list[int]] = {}
        for index, key in enumerate(self.keys):
            places.setdefault(key, []).append(index)
        return places


class Planner:
    """Checks requests and looks up their texts. Safe for threads."""

    def __init__(self, settings: Settings, parsers: ParserResolver, store: FeatureStore) -> None:
        self._parsers = parsers
        self._store = store
        self._limits = Limits(settings.max_chars_per_text, settings.max_words_per_sentence)

    def plan(
        self,
        request: FeatureRequest,
        tokenizer: LoadedTokenizer | None,
        deadline: float,
        *,
        in_memory: bool = False,
    ) -> Plan | None:
        """Plan a request; ``None`` if not all is in memory, though it must be ``in_memory``."""
        parsers, parses = self._parsers, self._store.parses
        find = parsers.cached if in_memory else parsers.choose
        choice = find(request.parser, request.lang)
        if choice is None:
            return None
        model, parser, lang = choice
        keys: list[str | ParsebankError] = []
        wanted: dict[str, ParseInput] = {}
        for item in request.items:
            try:
                check_input(item, self._limits)
            except ParsebankError as error:
                keys.append(error)
                continue
            key = parse_key(parser, lang, item, self._limits)
            keys.append(key)
            wanted[key] = item
        generation = parses.generation
        look_up = parses.get_many_cached if in_memory else parses.get_many
        records = look_up(list(wanted))
        if records is None:
            return None
        stored = {key: record.parse for key, record in records.items()}
        return Plan(
            request, model, parser, lang, tokenizer, deadline, keys, wanted, stored, generation
        )
