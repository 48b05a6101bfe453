"""Requests and answers of the interactive routes, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, WithJsonSchema

from service.parsers import ParseInput
from service.pipeline.records import FeatureRequest, MatrixName
from syntax.errors import SpecError
from syntax.examples import TOKEN_MODES, LongSentences, ParseMode


def _any_string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a string was expected, not {type(value).__name__}")
    return value


AnyText = Annotated[str, PlainValidator(_any_string), WithJsonSchema({"type": "string"})]
"""Any JSON string. Pydantic's own ``str`` would refuse a whole request for one lone surrogate."""

_PARSE_EXAMPLES: list[JsonValue] = [
    {"text": "Birds sing in the trees.", "lang": "en"},
    {"texts": ["It works.", "Don't panic!"], "tokenizer": "parsebank-wordpiece-en"},
    {"tokens": [["Birds", "sing", "."]], "matrices": ["distance", "depth"]},
]


class ParseRequest(BaseModel):
    """Texts to parse: exactly one of `text`, `texts` and `tokens`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": _PARSE_EXAMPLES})

    text: AnyText | None = Field(default=None, description="One text.")
    texts: list[AnyText] | None = Field(default=None, description="Several texts.")
    tokens: list[list[AnyText]] | None = Field(
        default=None,
        description="Several pre-tokenized sentences. The text is the tokens joined by single "
        "spaces; a token may hold spaces (New York) and then is one word.",
    )
    lang: str | None = Field(
        default=None,
        description="ISO code of the texts; by default the parser's, or the service's `lang`.",
    )
    parser: str | None = Field(
        default=None,
        description="Name of a parser from /models, or the beginning of one; by default the "
        "language's.",
    )
    mode: ParseMode | None = Field(
        default=None,
        description="`raw`: split sentences and words. `sentence`: each text is one sentence, "
        "whatever line breaks it holds. `pretokenized`: the tokens are the words. By default "
        "`raw`, and `pretokenized` for `tokens`. `retokenize`: the tokens are one sentence, in "
        "which the parser finds words of its own; `token_words` aligns the two. `tokens_mwt`: the "
        "tokens stay, and the parser splits multiword tokens into their words.",
    )
    long_sentences: LongSentences = Field(
        default="refuse",
        description="What becomes of a sentence of more than `max_words_per_sentence` words: "
        "`refuse` answers the error, `split` cuts it there and marks the pieces.",
    )
    token_labels: list[list[AnyText]] | None = Field(
        default=None,
        description="With `tokens`: a label per token, such as B-PER. The answer has "
        "`word_labels`, one per word: over several words B- goes on as I-, S- as B- .. E-.",
    )
    deadline_seconds: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Time for the parsing; at most, and by default, `request_deadline_seconds`.",
    )
    tokenizer: str | None = Field(
        default=None,
        description="Name or path of a Hugging Face tokenizer; the answer then has `wordpieces`.",
    )
    policy: str = Field(
        default="attach",
        description="How the pieces of a word hang: `attach` later pieces to the first one, or "
        "`broadcast`, `chain`, `copy_head`, `none`.",
    )
    matrices: list[MatrixName] = Field(
        default_factory=list,
        description="Matrices over the pieces; over the words if there is no tokenizer.",
    )
    store: bool = Field(default=True, description="Keep new parses in the store.")

    def to_features(self, max_items: int) -> FeatureRequest:
        items = self._inputs()
        if len(items) > max_items:
            raise SpecError(
                f"{len(items)} texts came; at most {max_items} are answered at once. Send them in "
                "several requests, or as a backfill job",
                texts=len(items),
                limit=max_items,
            )
        labels = self.token_labels
        return FeatureRequest(
            items=items,
            lang=self.lang,
            parser=self.parser,
            tokenizer=self.tokenizer,
            policy=self.policy,
            matrices=tuple(dict.fromkeys(self.matrices)),
            store=self.store,
            deadline_seconds=self.deadline_seconds,
            token_labels=None if labels is None else tuple(map(tuple, labels)),
        )

    def _inputs(self) -> tuple[ParseInput, ...]:
        given = {"text": self.text, "texts": self.texts, "tokens": self.tokens}
        came = [name for name, value in given.items() if value is not None]
        if len(came) != 1:
            raise SpecError(
                f"exactly one of text, texts and tokens is needed; {came or 'none'} came"
            )
        mode = self.mode or ("raw" if self.tokens is None else "pretokenized")
        if (mode in TOKEN_MODES) != (self.tokens is not None):
            raise SpecError(
                f"mode {mode!r} came with {came[0]}; {', '.join(TOKEN_MODES)} take tokens, the "
                "other modes take text or texts",
                mode=mode,
            )
        long = self.long_sentences
        if self.tokens is not None:
            return tuple(ParseInput(mode, None, tuple(tokens), long) for tokens in self.tokens)
        texts = [self.text] if self.text is not None else self.texts or []
        return tuple(ParseInput(mode, text, None, long) for text in texts)


class Named(BaseModel):
    """A parser or tokenizer, and the fingerprint of everything that decides its answers."""

    name: str
    fingerprint: str = Field(description="32 hexadecimal digits.")


class TokenAnswer(BaseModel):
    """A surface token."""

    form: str
    start_char: int
    end_char: int
    word_ids: list[int] = Field(
        description="Ids of its words; several for a multiword token such as *don't*."
    )


class WordAnswer(BaseModel):
    """A syntactic word with the columns of CoNLL-U; `null` where the model gives nothing."""

    id: int = Field(description="1-based within the sentence.")
    form: str
    lemma: str | None
    upos: str | None
    xpos: str | None
    feats: str | None
    head: int = Field(description="Id of the head within the sentence; 0 for the root.")
    deprel: str | None
    start_char: int
    end_char: int
    misc: str | None = Field(
        description="As CoNLL-U has it: `SpaceAfter=No`, `SpacesAfter=\\n`. Of a multiword token's "
        "spacing its offsets tell."
    )


class SentenceAnswer(BaseModel):
    """A sentence; offsets are code points of the text as it was sent."""

    start_char: int
    end_char: int
    text: str = Field(description="The sentence as `# text` of CoNLL-U has it.")
    continues: bool = Field(
        default=False,
        description="Whether it goes on with a sentence that was cut before it for its length "
        "(`long_sentences`); left out where it does not.",
    )
    tokens: list[TokenAnswer]
    words: list[WordAnswer]


class WordpiecesAnswer(BaseModel):
    """The text's pieces, without special tokens, untruncated."""

    input_ids: list[int]
    offset_mapping: list[tuple[int, int]] = Field(description="Start and end character.")
    word_ids: list[int | None] = Field(
        description="Word of each piece, 0-based through the whole text; `null` for none."
    )
    parents: list[int] = Field(
        description="Parent piece of each piece, 0-based; -1 at a sentence's root and at pieces "
        "without a word."
    )


class MatricesAnswer(BaseModel):
    """Only the matrices asked for. Row `i` is about piece `i` (word `i` without a tokenizer)."""

    distance: list[list[int]] | None = Field(
        default=None,
        description="Edges between two pieces; 255 between sentences (65535 when a path is "
        "longer than 254).",
    )
    depth: list[int] | None = Field(default=None, description="Edges from the root.")
    ancestor: list[list[bool]] | None = Field(
        default=None, description="`[i][j]`: `j` is `i` or one of its ancestors."
    )


class ErrorBody(BaseModel):
    """What went wrong, for people and for programs."""

    error_type: str = Field(examples=["sentence_too_long"])
    message: str = Field(description="What came, what was expected, and what to do.")
    detail: dict[str, Any]


class ItemAnswer(BaseModel):
    """One text, parsed."""

    key: str = Field(description="Key of the parse in the store.")
    cached: bool = Field(description="Whether the parse was there before.")
    text: str
    sentences: list[SentenceAnswer]
    token_words: list[list[int]] | None = Field(
        default=None,
        description="With `tokens`: the words that share a character with each token, 0-based "
        "through the whole text.",
    )
    word_labels: list[str | None] | None = Field(
        default=None,
        description="With `token_labels`: the label of each word; `null` for one without a token.",
    )
    wordpieces: WordpiecesAnswer | None = None
    matrices: MatricesAnswer | None = None


class FailedItem(BaseModel):
    """One text that could not be used; the others are answered all the same."""

    error: ErrorBody


class ParseAnswer(BaseModel):
    """One item per text, in the order asked."""

    parser: Named
    tokenizer: Named | None
    items: list[ItemAnswer | FailedItem]


class ModelAnswer(BaseModel):
    """A parser that may be asked for."""

    name: str
    backend: str = Field(description="What runs it, such as `udpipe.v1`.")
    langs: list[str] = Field(description="ISO codes; empty if nobody knows.")
    default_for: list[str] = Field(
        description="Those of its languages for which it answers requests that name no parser."
    )
    treebank: str | None = None
    version: str | None = Field(default=None, description="Release of the model or treebank.")
    licence: str | None = None
    columns: list[str] | None = Field(
        default=None,
        description="CoNLL-U columns that it fills; `null` where its card does not say.",
    )
    size_bytes: int = Field(description="Of all its files; 0 if one is missing.")
    sha256: str | None = Field(
        default=None, description="Of its file; of several, that of their names and checksums."
    )
    fingerprint: str | None = Field(description="`null` if it cannot be used; see `problem`.")
    loaded: bool
    workers: int = Field(default=0, description="Parser processes that are loaded.")
    memory_mb: float | None = Field(
        default=None, description="What its processes take, shared memory counted once."
    )
    problem: str | None = Field(
        default=None, description="Why it cannot be used: damaged, or an extra is missing."
    )


class InfoAnswer(BaseModel):
    """What the service is, what it accepts, and what it uses unless told otherwise."""

    name: Literal["parsebank"] = "parsebank"
    version: str
    role: Literal["read", "parse", "admin"] = Field(
        description="What the caller may do: the role of the key, or `admin` where none is needed."
    )
    read_only: bool = Field(description="Whether it keeps nothing: no parse, no row, no job.")
    lang: str
    parser: str | None = Field(description="Parser of the default language.")
    tokenizer: str
    tokenizers: list[str] = Field(description="Tokenizers that need no network.")
    modes: list[str]
    policies: list[str]
    matrices: list[str]
    formats: list[str]
    limits: dict[str, int | float | str | None] = Field(
        description="Settings in force; `rate_limit` is `null` where there is none."
    )


class HealthAnswer(BaseModel):
    """Alive, or ready with what was checked."""

    status: Literal["ok"] = "ok"
    checks: dict[str, str] = Field(default_factory=dict)
