"""Requests and answers of ``/features``, as OpenAPI shows them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from service.parsers import ParseInput
from service.pipeline.assembly import AssemblyRequest, ExampleTexts, SegmentText
from service.pipeline.records import FeatureRequest
from service.schemas import AnyText, FailedItem, Named
from syntax.batches import MAX_LENGTH, AssemblySpec, SeparatorEdge, Truncation, TruncationTie
from syntax.errors import SpecError
from syntax.examples import LongSentences, ParseMode
from syntax.options import options_of

FeatureFormat = Literal["json", "ndjson", "arrow"]

LARGEST_MULTIPLE: Final = 1_024
LARGEST_LENGTH: Final = 2**31 - 1

_COMMA: Final = re.compile(r",(?![^()]*\))")
"""A comma between names, not between settings in a name's brackets."""

_EXAMPLES: Final[list[JsonValue]] = [
    {
        "examples": [
            {"segments": [{"text": "Do birds sing?"}, {"text": "Birds sing in the trees."}]},
            {"segments": [{"tokens": ["Fruit", "flies", "like", "a", "banana", "."]}]},
        ],
        "max_length": 32,
        "matrices": ["depth"],
    },
    {
        "examples": [{"segments": [{"text": "It works."}], "example_id": "dev-1"}],
        "tokenizer": "parsebank-wordpiece-en",
        "max_length": 16,
        "padded": True,
        "pad_to_multiple_of": 8,
    },
]


def _split(value: object) -> object:
    if not isinstance(value, list):
        return value
    parts = [_COMMA.split(part) if isinstance(part, str) else [part] for part in value]
    return [name for part in parts for name in part if name != ""]


def _option(name: str, **changes: Any) -> Any:
    """A field with the default, the check and the documentation of an option of assembly."""
    option = options_of(AssemblySpec)[name]
    default = list(option.default) if isinstance(option.default, tuple) else option.default
    low = {} if option.low is None else {"ge": option.low}
    return Field(**{"default": default, "description": option.doc, **low, **changes})


class AssemblyOptions(BaseModel):
    """What is decided when a batch is made: options of `AssemblySpec`, as a stream has them."""

    model_config = ConfigDict(extra="forbid")

    tokenizer: str | None = Field(
        default=None,
        description="Name or path of a Hugging Face tokenizer; by default the service's.",
    )
    max_length: int | None = _option(
        "max_length",
        default=MAX_LENGTH,
        le=LARGEST_LENGTH,
        description="Longest sequence, special tokens included; `null` cuts nothing.",
    )
    policy: str = _option("policy")
    joint_root: bool = _option("joint_root")
    separator_edge: SeparatorEdge = _option("separator_edge")
    truncation: Truncation = _option("truncation")
    truncation_tie: TruncationTie = _option("truncation_tie")
    matrices: Annotated[list[str], BeforeValidator(_split)] = _option("matrices")

    def spec(self) -> AssemblySpec:
        """The options as `syntax.batches` takes them; a matrix that is named twice counts once."""
        names = options_of(AssemblySpec).keys() & type(self).model_fields.keys()
        options = {name: getattr(self, name) for name in names}
        return AssemblySpec(**{**options, "matrices": tuple(dict.fromkeys(self.matrices))})


class FeatureQuery(AssemblyOptions):
    """Query parameters of ``GET /features/{key}``."""

    max_length: Annotated[int | None, BeforeValidator(lambda value: value or None)] = _option(
        "max_length",
        default=MAX_LENGTH,
        le=LARGEST_LENGTH,
        description="Longest sequence, special tokens included; empty cuts nothing.",
    )
    format: FeatureFormat | None = Field(default=None, description="Overrides `Accept`.")


class SegmentRequest(BaseModel):
    """One text of an example: `text`, or `tokens` of one sentence."""

    model_config = ConfigDict(extra="forbid")

    text: AnyText | None = Field(default=None, description="Running text.")
    tokens: list[AnyText] | None = Field(default=None, description="Tokens of one sentence.")
    lang: str | None = Field(default=None, description="Its language, if not the request's.")
    mode: ParseMode | None = Field(default=None, description="Its mode, if not the request's.")

    def to_segment(self, mode: ParseMode | None, long_sentences: LongSentences) -> SegmentText:
        if (self.text is None) == (self.tokens is None):
            came = "none" if self.text is None else "both"
            raise SpecError(f"a segment needs one of text and tokens; {came} came")
        chosen = self.mode or mode or ("raw" if self.tokens is None else "pretokenized")
        tokens = None if self.tokens is None else tuple(self.tokens)
        return SegmentText(ParseInput(chosen, self.text, tokens, long_sentences), self.lang)


class ExampleRequest(BaseModel):
    """One text, a pair, a question with its passage, or any number of segments."""

    model_config = ConfigDict(extra="forbid")

    segments: list[SegmentRequest] = Field(description="The texts in order.")
    example_id: AnyText | None = Field(default=None, description="Comes back in the answer.")


class FeaturesRequest(AssemblyOptions):
    """Examples, and what to make of them."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": _EXAMPLES})

    examples: list[ExampleRequest] = Field(description="The examples.")
    padded: bool = Field(
        default=False,
        description="Pad all examples to a common length, as one batch of a stream.",
    )
    pad_to_multiple_of: int = _option(
        "pad_to_multiple_of",
        le=LARGEST_MULTIPLE,
        description="With `padded`: the common length is a multiple of this.",
    )
    lang: str | None = Field(
        default=None, description="Language of the segments that name none; as in /parse."
    )
    parser: str | None = Field(default=None, description="Name of a parser; as in /parse.")
    mode: ParseMode | None = Field(
        default=None,
        description="Mode of the segments that name none. By default `raw` for texts and "
        "`pretokenized` for tokens.",
    )
    long_sentences: LongSentences = Field(
        default="refuse",
        description="What becomes of a sentence of more than `max_words_per_sentence` words; as "
        "in /parse.",
    )
    deadline_seconds: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Time for the parsing; at most, and by default, `request_deadline_seconds`.",
    )
    store: bool = Field(
        default=True, description="Keep new parses, and append the examples to dataset `adhoc`."
    )

    def to_assembly(self, max_items: int) -> AssemblyRequest:
        self._check(max_items)
        parsing = FeatureRequest(
            items=(),
            lang=self.lang,
            parser=self.parser,
            store=self.store,
            deadline_seconds=self.deadline_seconds,
        )
        examples = [
            ExampleTexts(
                tuple(x.to_segment(self.mode, self.long_sentences) for x in example.segments),
                example.example_id,
            )
            for example in self.examples
        ]
        return AssemblyRequest(
            examples=tuple(examples),
            tokenizer=self.tokenizer,
            spec=self.spec(),
            parsing=parsing,
            padded=self.padded,
        )

    def _check(self, max_items: int) -> None:
        segments = sum(len(example.segments) for example in self.examples)
        if segments > max_items:
            raise SpecError(
                f"{segments} segments came; at most {max_items} are answered at once. Send them "
                "in several requests, or as a backfill job",
                segments=segments,
                limit=max_items,
            )
        if self.pad_to_multiple_of != 1 and not self.padded:
            raise SpecError("pad_to_multiple_of pads to a common length; it needs padded: true")


class TokenizerAnswer(Named):
    """A tokenizer and how it frames segments."""

    special_tokens: dict[str, JsonValue] = Field(
        description="`prefix`, `separator` and `suffix` ids, `pad_id`, `segment_type_ids`, "
        "`mask_id`, `unk_id`, `vocab_size`."
    )


class SegmentAnswer(BaseModel):
    """One segment of an example."""

    key: str = Field(description="Key of its parse.")
    lang: str
    parser: str = Field(description="Fingerprint of the parser.")
    cached: bool = Field(description="Whether the parse was there before.")
    text: str = Field(description="What `offset_mapping` counts in.")
    length: int = Field(description="Its pieces, before truncation.")
    kept: int = Field(description="Pieces that are left of it.")


class ExampleAnswer(BaseModel):
    """What a trainer would see of an example. `L` is `length`, or the padded length.

    A registered matrix beside the three comes under the name it was asked by.
    """

    model_config = ConfigDict(extra="allow")

    key: str = Field(description="Parse keys joined by commas: the key for GET /features/{key}.")
    example_id: str | None
    segments: list[SegmentAnswer]
    length: int = Field(description="Positions that are not padding.")
    truncated: bool
    input_ids: list[int]
    token_type_ids: list[int]
    attention_mask: list[bool]
    special_tokens_mask: list[bool] = Field(description="True at special tokens and padding.")
    word_ids: list[int] = Field(
        description="Word of each position, 0-based within its segment; -1 for none."
    )
    segment_ids: list[int] = Field(description="-1 at special tokens and padding.")
    sentence_ids: list[int] = Field(description="0-based within the segment; -1 for none.")
    parents: list[int] = Field(description="Parent position; -1 at roots and padding.")
    upos: list[int] = Field(description="Ids of `syntax.trees.ud`; 0 for none.")
    deprel: list[int] = Field(description="Ids of `syntax.trees.ud`; 0 for none.")
    offset_mapping: list[tuple[int, int]] = Field(
        description="Start and end character in the segment's text; 0, 0 at special tokens."
    )
    depth: list[int] | None = None
    distance: list[list[int]] | None = Field(
        default=None, description="255 (65535) where there is no path."
    )
    ancestor: list[list[bool]] | None = Field(
        default=None, description="`[i][j]`: `j` is `i` or one of its ancestors."
    )


class FailedExampleAnswer(FailedItem):
    """An example that could not be used; the others are answered all the same."""

    example_id: str | None


class FeaturesAnswer(BaseModel):
    """One entry per example, in the order asked."""

    tokenizer: TokenizerAnswer
    parsers: list[Named]
    options: dict[str, JsonValue] = Field(description="The options that were used.")
    examples: list[ExampleAnswer | FailedExampleAnswer]
