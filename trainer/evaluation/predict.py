"""Predictions for texts that are not in a store: a service parses them, the model reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from clients.client.results import ItemError
from featurestore import DatasetHandle, ExampleRow, MemoryDataset
from syntax.batches import SegmentFeatures
from syntax.errors import SpecError
from syntax.examples import TOKEN_MODES, DatasetSpec, LabelSpec, LabelValue, SpanLabel
from syntax.fingerprint import fingerprint
from syntax.labels import token_offsets
from syntax.strict_json import parse_json
from trainer.data import Source, source_of, states_of
from trainer.evaluation.predictions import Prediction
from trainer.evaluation.trained import TrainedRun, ask
from trainer.requirements import Requirements

if TYPE_CHECKING:
    from clients import Client
    from clients.client.features import FeatureExample, FeaturesResult

SPLIT: Final = "predict"
_AT_ONCE: Final = 64
_NO_WORD: Final = -2
"""The head of a piece without a word, as `SegmentFeatures` has it."""

Text = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RawExample:
    """Texts to predict for.

    Attributes:
        texts: For each field a text, or the tokens of one sentence.
        labels: Columns that the task is given (`TaskOptions.given`), such as two mentions.
    """

    example_id: str
    texts: tuple[Text, ...]
    labels: Mapping[str, LabelValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedExample:
    """An example that the service could not parse.

    Attributes:
        error_type: The error's stable name, such as ``sentence_too_long``.
    """

    example_id: str
    error_type: str
    message: str


def examples_of(items: Iterable[Any], run: TrainedRun) -> list[RawExample]:
    """Examples as Python has them.

    Each item is a text; the texts of all fields; a mapping like the objects of `examples_of_lines`;
    or a `RawExample`.
    """
    return [_of_item(item, at, run) for at, item in enumerate(items)]


def examples_of_texts(texts: Sequence[str], fields: Sequence[str]) -> list[RawExample]:
    """As many texts as there are fields make an example."""
    if not texts or not fields or len(texts) % len(fields):
        came = "1 text" if len(texts) == 1 else f"{len(texts)} texts"
        raise SpecError(f"{came} came, and an example has {len(fields)}: {', '.join(fields)}")
    rest = iter(texts)
    groups = iter(lambda: tuple(islice(rest, len(fields))), ())
    return [RawExample(str(at), group) for at, group in enumerate(groups)]


def examples_of_lines(
    lines: Iterable[str], fields: Sequence[str], given: Sequence[LabelSpec] = ()
) -> list[RawExample]:
    """Examples from JSON objects, one a line, with a text or a list of tokens for each field.

    ``example_id`` names an example; when it is left out, the number of its line does, from 0. Of
    the ``given`` labels (`given_labels`), tags are a list of names, spans a list of objects with
    ``start_char``, ``end_char`` and an optional ``label``; a string is text.
    """
    return [
        _of_content(partial(parse_json, line), f"line {at + 1}", at, fields, given)
        for at, line in enumerate(lines)
        if line.strip()
    ]


def given_labels(run: TrainedRun) -> list[LabelSpec]:
    """The label columns that come with an example: those that the run does not predict."""
    names = run.recipe.task.given()
    return [label for label in run.requirements.labels if label.name in names]


def predict(
    run: TrainedRun,
    client: Client,
    examples: Sequence[RawExample],
    lang: str,
    *,
    parser: str | None = None,
    any_parser: bool = False,
) -> list[Prediction | FailedExample]:
    """Predictions of a model for texts; an example that cannot be parsed fails alone.

    The service parses and aligns the texts, and keeps nothing of them; batches are made in memory
    by the functions for stored examples. So the predictions equal those of a stored split of the
    same examples in the same order.

    The parser of a language that the model was trained on is by default the model's own, and only
    ``any_parser`` accepts another; for other languages the service chooses.

    Predictions have no gold, and the order of the examples. An example that became several
    sequences has one for each, unless its task joins them.
    """
    if not any_parser:
        parser = parser or _own_parser(run.requirements, lang)
    answers = list(_answers(run.requirements, client, examples, lang, parser))
    parsers = {one.fingerprint: {"name": one.name} for answer in answers for one in answer.parsers}
    if not any_parser:
        names = {found: content["name"] for found, content in parsers.items()}
        run.requirements.check_parsers(lang, names)
    outcomes: list[list[Prediction | FailedExample]] = [[] for _ in examples]
    rows = []
    for at, item in enumerate(item for answer in answers for item in answer):
        if isinstance(item, ItemError):
            failed = FailedExample(examples[at].example_id, item.error_type, item.message)
            outcomes[at].append(failed)
        else:
            rows.append(_row(at, examples[at], item))
    if rows:
        source = _source(run, rows, parsers, answers[0], lang)
        for one in ask(run, source).predictions:
            at = int(one.example_id)
            outcomes[at].append(replace(one, example_id=examples[at].example_id))
    return [one for outcome in outcomes for one in outcome]


def _source(
    run: TrainedRun,
    rows: Sequence[ExampleRow],
    parsers: Mapping[str, dict[str, Any]],
    answer: FeaturesResult,
    lang: str,
) -> Source:
    needs, recipe = run.requirements, run.recipe
    spec = DatasetSpec(recipe.data.dataset, SPLIT, lang, needs.fields, needs.labels, needs.mode)
    tokenizer = (answer.tokenizer.name, answer.tokenizer.fingerprint, answer.special_tokens)
    data = MemoryDataset(DatasetHandle(spec, *tokenizer, matrices=False), rows, parsers)
    source = source_of(data, recipe)
    needs.check_states(states_of(source).get("states"))
    return source


def _of_item(item: Any, at: int, run: TrainedRun) -> RawExample:
    fields, given = run.requirements.fields, given_labels(run)
    if isinstance(item, RawExample):
        return item
    if isinstance(item, Mapping):
        return _of_content(lambda: item, f"item {at + 1}", at, fields, given)
    texts = (item,) if isinstance(item, str) else tuple(item)
    if len(texts) != len(fields) or not all(isinstance(text, str) for text in texts):
        raise SpecError(
            f"item {at + 1} is {item!r}; an example has {len(fields)} texts: {', '.join(fields)}"
        )
    if given:
        names = ", ".join(label.name for label in given)
        raise SpecError(f"an example comes with its {names}; give mappings in place of texts")
    return RawExample(str(at), texts)


def _of_content(
    read: Callable[[], Mapping[str, Any]],
    place: str,
    at: int,
    fields: Sequence[str],
    given: Sequence[LabelSpec],
) -> RawExample:
    try:
        content = read()
        texts = tuple(_text(content[name]) for name in fields)
        labels = {label.name: _label(content[label.name], label) for label in given}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        fault = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        also = "".join(f", and the {label.kind} {label.name}" for label in given)
        raise SpecError(
            f"{place} is not an example ({fault}); expected a JSON object with a text, "
            f"or a list of tokens, for each of {', '.join(fields)}{also}"
        ) from error
    return RawExample(str(content.get("example_id", at)), texts, labels)


def _text(value: Any) -> Text:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(token, str) for token in value):
        return tuple(value)
    raise TypeError(f"{value!r} is neither a text nor a list of tokens")


def _label(value: Any, label: LabelSpec) -> LabelValue:
    if label.kind == "string" and isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise TypeError(f"{label.name} is {value!r}, not a list of {label.kind}")
    return tuple(SpanLabel(**span) for span in value) if label.kind == "spans" else tuple(value)


def _own_parser(requirements: Requirements, lang: str) -> str | None:
    """The parser to ask the service for; None for gold trees, which no parser has made."""
    known = () if requirements.mode == "gold" else requirements.parsers.get(lang, ())
    return requirements.parser_names.get(known[0]) if known else None


def _answers(
    requirements: Requirements,
    client: Client,
    examples: Sequence[RawExample],
    lang: str,
    parser: str | None,
) -> Iterable[FeaturesResult]:
    step = max(1, _AT_ONCE // len(requirements.fields))
    for start in range(0, len(examples), step):
        part = examples[start : start + step]
        options: dict[str, Any] = {} if parser is None else {"parser": parser}
        found = client.features(
            [
                {"segments": [_segment_body(text, requirements.mode) for text in example.texts]}
                for example in part
            ],
            tokenizer=requirements.tokenizer_name,
            lang=lang,
            max_length=None,
            joint_root=False,
            separator_edge="none",
            matrices=[],
            store=False,
            **options,
        )
        requirements.check_tokenizer(found.tokenizer.fingerprint, found.tokenizer.name)
        yield found


def _segment_body(text: Text, mode: str) -> dict[str, Any]:
    """A text in the mode of the model's dataset, where that mode takes texts; likewise tokens."""
    if isinstance(text, str):
        return {"text": text, **({"mode": mode} if mode in ("raw", "sentence") else {})}
    known = mode in TOKEN_MODES
    return {"tokens": list(text), **({"mode": mode} if known else {})}


def _row(at: int, example: RawExample, answer: FeatureExample) -> ExampleRow:
    """An answer as the store would hold it; its position stands in for its name."""
    keys = tuple(segment.key for segment in answer.segments)
    segments = tuple(segment_of(answer.arrays, number) for number in range(len(keys)))
    return ExampleRow(
        seq=at,
        example_id=str(at),
        example_key=fingerprint([at, keys]),
        parser=answer.segments[0].parser,
        texts=tuple(segment.text for segment in answer.segments),
        parse_keys=keys,
        segments=segments,
        labels=example.labels,
        tokens=tuple(map(_tokens, example.texts, segments)),
    )


def segment_of(arrays: Mapping[str, NDArray[Any]], number: int) -> SegmentFeatures:
    """One segment of an untruncated sequence without a joint root, as the store holds it.

    The arrays are what ``/features`` answers of an example, under the policy ``attach``.
    """
    (at,) = np.nonzero(arrays["segment_ids"] == number)
    first = int(at[0]) if len(at) else 0
    word_ids, parents = arrays["word_ids"][at], arrays["parents"][at]
    head = np.where(parents >= 0, parents - first, -1)
    return SegmentFeatures(
        input_ids=arrays["input_ids"][at].astype(np.int32),
        head=np.where(word_ids < 0, _NO_WORD, head).astype(np.int32),
        word_ids=word_ids,
        upos=arrays["upos"][at],
        deprel=arrays["deprel"][at],
        sentence_ids=arrays["sentence_ids"][at],
        offsets=arrays["offset_mapping"][at],
    )


def _tokens(text: Text, segment: SegmentFeatures) -> NDArray[np.int32]:
    """Characters of the tokens that a tagger tags: the given ones, or the words of a text."""
    if not isinstance(text, str):
        return token_offsets(text)
    known = segment.word_ids >= 0
    words, first = np.unique(segment.word_ids[known], return_index=True)
    starts, ends = segment.offsets[known].T
    last = np.searchsorted(segment.word_ids[known], words, side="right") - 1
    return np.stack([starts[first], ends[last]], axis=1).astype(np.int32)
