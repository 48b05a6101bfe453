"""Requests to ``/features``, and their answers as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import NDArray

from clients.client.failures import named_error
from clients.client.results import ItemError, JsonObject, Named, decode_named
from syntax.batches import SeparatorEdge, SpecialTokens, Truncation, TruncationTie
from syntax.errors import SpecError
from syntax.examples import Example, LongSentences, ParseMode, Segment

SegmentLike = str | Segment | Mapping[str, Any]

ExampleLike = str | Example | Mapping[str, Any] | Sequence[SegmentLike]


class StoredOptions(TypedDict, total=False):
    """Keywords of ``stored_features``, and of ``features`` too.

    All but ``tokenizer``, its name or path, are options of `syntax.batches.AssemblySpec`.
    """

    tokenizer: str
    max_length: int | None
    policy: str
    joint_root: bool
    separator_edge: SeparatorEdge
    truncation: Truncation
    truncation_tie: TruncationTie
    matrices: Sequence[str]


class FeatureOptions(StoredOptions, total=False):
    """Keywords of ``features``.

    Attributes:
        padded: Pad all examples to a common length, as `FeaturesResult.batch` needs.
        pad_to_multiple_of: The common length is a multiple of this.
        lang: Default language of the segments.
        parser: Parser name; the service's choice for the language when left out.
        mode: Default mode of the segments.
        long_sentences: ``refuse`` or ``split`` sentences of too many words.
        deadline_seconds: Time for the parsing.
        store: Keep new parses, and append the examples to the dataset ``adhoc``.
    """

    padded: bool
    pad_to_multiple_of: int
    lang: str
    parser: str
    mode: ParseMode
    long_sentences: LongSentences
    deadline_seconds: float
    store: bool


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSegment:
    """One segment of an example.

    Attributes:
        text: The text that ``offset_mapping`` refers to.
        length, kept: Number of wordpieces before and after truncation.
    """

    key: str
    lang: str
    parser: str
    cached: bool
    text: str
    length: int
    kept: int


@dataclass(frozen=True, slots=True, eq=False)
class FeatureExample:
    """One example, as in a stream.

    Attributes:
        key: Parse keys, joined by commas, for `Client.stored_features`.
        length: Number of positions without padding.
        truncated: True if wordpieces were cut.
        arrays: A stream's batch, without the first axis, and ``offset_mapping`` (L, 2).
    """

    key: str
    example_id: str | None
    segments: tuple[FeatureSegment, ...]
    length: int
    truncated: bool
    arrays: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True, slots=True, eq=False)
class FeaturesResult:
    """The answer to one request; its examples are in order."""

    tokenizer: Named
    special_tokens: SpecialTokens
    parsers: tuple[Named, ...]
    options: JsonObject
    examples: tuple[FeatureExample | ItemError, ...]
    json: JsonObject

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[FeatureExample | ItemError]:
        return iter(self.examples)

    def assembled(self) -> list[FeatureExample]:
        """All examples; raises the named error of the first that failed."""
        for example in self.examples:
            if isinstance(example, ItemError):
                raise example.error
        return [example for example in self.examples if isinstance(example, FeatureExample)]

    def batch(self) -> dict[str, NDArray[Any]]:
        """Usable examples as one batch, as of a stream: arrays (B, L[, L]). Needs ``padded``."""
        usable = [example for example in self.examples if isinstance(example, FeatureExample)]
        if not usable or not self.options["padded"]:
            raise SpecError(
                "a batch needs one usable example or more, asked for with `padded=True`"
            )
        names = usable[0].arrays
        batch = {name: np.stack([example[name] for example in usable]) for name in names}
        # One dtype for all matrices: one long path makes the whole batch uint16.
        held = [name for name in _LENGTHS if name in batch]
        dtype = np.result_type(np.uint8, *(batch[name] for name in held))
        batch.update({name: batch[name].astype(dtype, copy=False) for name in held})
        return {**batch, "lengths": np.array([len(example) for example in usable], np.int32)}


def features_body(examples: Sequence[ExampleLike], **options: Any) -> dict[str, Any]:
    check_keywords("features", options, FeatureOptions)
    given = {
        name: value for name, value in options.items() if value is not None or name == "max_length"
    }
    return {"examples": [_example_body(example) for example in examples], **given}


def stored_path(key: str | Sequence[str], **options: Any) -> str:
    check_keywords("stored_features", options, StoredOptions)
    keys = key if isinstance(key, str) else ",".join(key)
    parameters = []
    for name, value in options.items():
        if name == "matrices":
            parameters.append((name, ",".join(value)))
        elif name == "max_length":
            parameters.append((name, "" if value is None else str(value)))
        elif value is not None:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            parameters.append((name, shown))
    query = urlencode(parameters)
    return f"/features/{quote(keys, safe=',')}" + (f"?{query}" if query else "")


def decode_features(answer: JsonObject) -> FeaturesResult:
    tokenizer = answer["tokenizer"]
    return FeaturesResult(
        tokenizer=decode_named(tokenizer),
        special_tokens=SpecialTokens.from_json(tokenizer["special_tokens"]),
        parsers=tuple(map(decode_named, answer["parsers"])),
        options=answer["options"],
        examples=tuple(map(_decode_example, answer["examples"])),
        json=answer,
    )


def check_keywords(function: str, options: Mapping[str, Any], known: Any) -> None:
    unknown = options.keys() - known.__annotations__.keys()
    if unknown:
        raise TypeError(f"{function}() has no keyword {', '.join(sorted(unknown))}")


def _example_body(example: ExampleLike) -> dict[str, Any]:
    if isinstance(example, Mapping):
        return dict(example)
    if isinstance(example, Example):
        segments = [_segment_body(segment) for segment in example.segments]
        return {"example_id": example.example_id, "segments": segments}
    parts = [example] if isinstance(example, str) else example
    return {"segments": [_segment_body(part) for part in parts]}


def _segment_body(segment: SegmentLike) -> dict[str, Any]:
    if isinstance(segment, str):
        return {"text": segment}
    if isinstance(segment, Mapping):
        return dict(segment)
    if segment.conllu is not None:
        raise SpecError("/features parses texts and tokens; gold trees are for backfill")
    given = {"text": segment.text, "tokens": segment.tokens and list(segment.tokens)}
    return {name: value for name, value in given.items() if value is not None}


def _decode_example(entry: JsonObject) -> FeatureExample | ItemError:
    if entry.get("error"):
        return ItemError(named_error(entry["error"]))
    names = [name for name in entry if name not in _FACTS]
    arrays = {name: np.asarray(entry[name], _DTYPES.get(name)) for name in names}
    arrays["offset_mapping"] = arrays["offset_mapping"].reshape(-1, 2)
    # JSON lacks the kernel's dtype: uint16 if a value needs it, else uint8.
    held = [name for name in _LENGTHS if name in arrays]
    wide = any(arrays[name].max(initial=0) > np.iinfo(np.uint8).max for name in held)
    for name in held:
        arrays[name] = arrays[name].astype(np.uint16 if wide else np.uint8)
    return FeatureExample(
        key=entry["key"],
        example_id=entry["example_id"],
        segments=tuple(FeatureSegment(**segment) for segment in entry["segments"]),
        length=entry["length"],
        truncated=entry["truncated"],
        arrays=arrays,
    )


_FACTS = frozenset({"key", "example_id", "segments", "length", "truncated"})
_DTYPES: dict[str, Any] = {
    **dict.fromkeys(("input_ids", "token_type_ids"), np.int64),
    **dict.fromkeys(("attention_mask", "special_tokens_mask", "ancestor"), np.bool_),
    **dict.fromkeys(("word_ids", "segment_ids", "sentence_ids", "parents"), np.int32),
    **dict.fromkeys(("upos", "deprel"), np.uint8),
    "offset_mapping": np.int32,
}
_LENGTHS = ("depth", "distance")
