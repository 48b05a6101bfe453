"""Groups of examples, words or labels, which `trainer.evaluation.analyse` scores apart.

Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.labels import field_of
from syntax.matrices import tree_depth, tree_distance
from syntax.registry import unknown_name
from trainer.evaluation.compare import added_shares
from trainer.evaluation.families import family_of
from trainer.evaluation.predictions import Prediction
from trainer.metrics.dependency import NOT_ATTACHED, ParsedWord, attachment_shares
from trainer.metrics.entities import Entity, entities, tokens_tagged
from trainer.options import TaskOptions
from trainer.tasks.options import (
    DependencyOptions,
    MultipleChoiceOptions,
    RelationOptions,
    SequenceClassificationOptions,
    TokenClassificationOptions,
    UniversalParserOptions,
    UslOptions,
)

if TYPE_CHECKING:
    from featurestore import ParsedDataset
    from syntax.trees.parse import Parse

Key = int | str | None
"""A group; None of what is in none, such as the distance of a root to its head."""

PARSERS: Final = (DependencyOptions, UniversalParserOptions, UslOptions)
LABELLED: Final = (
    *(SequenceClassificationOptions, MultipleChoiceOptions, RelationOptions),
    TokenClassificationOptions,
)


@dataclass(frozen=True)
class Part:
    """The predictions of several runs for the same examples of one language.

    Attributes:
        runs: By run, in the same order of examples.
        classes: Names of the classes, where classes are predicted.
        field: The text whose length counts; all of them when left out.
        opened: Opens the stored examples that were predicted.
    """

    lang: str
    runs: Sequence[Sequence[Prediction]]
    classes: Sequence[str]
    task: TaskOptions
    field: str | None
    opened: Callable[[str], ParsedDataset]

    @cached_property
    def stored(self) -> ParsedDataset:
        return self.opened(self.lang)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Positions of the examples in the stored dataset. *Shape:* (N,)."""
        names = self.stored.columns(["example_id"])["example_id"].to_pylist()
        known = {name: at for at, name in enumerate(names)}
        wanted = [one.example_id for one in self.runs[0]]
        if missing := [name for name in wanted if name not in known]:
            raise SpecError(
                f"{len(missing)} of {len(wanted)} examples in {self.lang} are not in the store, "
                f"such as {missing[0]!r}; name the store that the run was evaluated on, as "
                "`store=FOLDER`"
            )
        return np.array([known[name] for name in wanted])

    def parses(self) -> Iterator[tuple[Parse, ...]]:
        """The stored parses of each example's texts."""
        for records in self.stored.records(self.places):
            yield tuple(record.parse for record in records)


class Item(NamedTuple):
    """An example, a word, or a label of an example, in its group.

    Attributes:
        example: Name of its example.
        shares: What it adds to the metric's sums. *Shape:* (runs, numbers).
    """

    example: str
    key: Key
    shares: Any


Items: TypeAlias = Callable[["Part", str], Iterator[Item]]
"""The items of some predictions, with their shares in a metric."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to divide the predictions of a run.

    Attributes:
        unit: What it groups: ``examples``, ``words`` or ``labels``.
        tasks: Options of the tasks that offer it.
        metric: The metric by default; the run's own when left out.
        none: What the items without a group are.
        is_number: True where groups are numbers, which can be put into bins.
    """

    unit: str
    items: Items
    tasks: tuple[type[TaskOptions], ...] = (TaskOptions,)
    metric: str | None = None
    none: str = ""
    is_number: bool = False


def groupings_of(task: TaskOptions) -> dict[str, Grouping]:
    """The groupings that the predictions of a task offer."""
    return {name: one for name, one in GROUPINGS.items() if isinstance(task, one.tasks)}


def _by_example(key: Callable[[Part], Sequence[Key]]) -> Items:
    def items(part: Part, metric: str) -> Iterator[Item]:
        names = [one.example_id for one in part.runs[0]]
        shares = added_shares([list(run) for run in part.runs], metric, part.classes)
        return map(Item, names, key(part), shares)

    return items


def _lengths(part: Part) -> list[int]:
    fields = part.stored.card.fields
    if part.field is None:
        return [int(count) for count in part.stored.word_counts()[part.places]]
    if part.field not in fields:
        raise unknown_name(f"field of {part.stored.name}", part.field, fields)
    at = fields.index(part.field)
    return [parses[at].word_count for parses in part.parses()]


def _mention_distances(between: Callable[[Parse, list[int], list[int]], int | None]) -> Items:
    """Distances of the two mentions of a relation; None between two texts or trees."""

    def distances(part: Part) -> list[int | None]:
        names = part.task.spans()
        labels = {label.name: label for label in part.stored.labels}
        segments = [field_of(labels[name], part.stored.card.fields) for name in names]
        columns = part.stored.columns(names, part.places)
        found: list[int | None] = []
        mentions = (columns[name].to_pylist() for name in names)
        for *spans, parses in zip(*mentions, part.parses(), strict=True):
            words = [
                _words_in(parses[at], mention) for at, mention in zip(segments, spans, strict=True)
            ]
            is_one = len(set(segments)) == 1 and all(words)
            found.append(between(parses[segments[0]], words[0], words[1]) if is_one else None)
        return found

    return _by_example(distances)


def _words_in(parse: Parse, spans: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Positions of the words that overlap any of some spans of characters."""
    return [
        at
        for at, (start, end) in enumerate(zip(parse.word_start, parse.word_end, strict=True))
        if any(start < span["end_char"] and end > span["start_char"] for span in spans or ())
    ]


def _words_apart(parse: Parse, one: list[int], other: list[int]) -> int:  # noqa: ARG001
    """0 of mentions that overlap, 1 of neighbours."""
    return max(0, other[0] - one[-1], one[0] - other[-1])


def _edges_apart(parse: Parse, one: list[int], other: list[int]) -> int | None:
    """Edges of the shortest path between a word of each; None between two sentences."""
    distances = tree_distance(parse.parents())
    least = int(distances[np.ix_(one, other)].min())
    return None if least == np.iinfo(distances.dtype).max else least


def _by_word(key: Callable[[Parse], Sequence[Key]]) -> Items:
    def items(part: Part, metric: str) -> Iterator[Item]:
        for answers, parses in zip(zip(*part.runs, strict=True), part.parses(), strict=True):
            name, gold = answers[0].example_id, [*chain(*map(_gold_words, parses))]
            if [[word.gold_head, word.gold_relation] for word in gold] != answers[0].gold:
                raise SpecError(
                    f"the tree of the {part.lang} example {name!r} in the store is not the one "
                    "that was scored; write the predictions again with parsebank evaluate"
                )
            said = zip(*(one.predicted for one in answers), strict=True)
            for word, group, predicted in zip(gold, chain(*map(key, parses)), said, strict=True):
                yield Item(name, group, [_word_shares(word, one, metric) for one in predicted])

    return items


def _gold_words(parse: Parse) -> Iterator[ParsedWord]:
    for head, relation, upos in zip(parse.head, parse.deprel, parse.upos, strict=True):
        yield ParsedWord(head, NOT_ATTACHED, relation, None, upos)


def _word_shares(
    word: ParsedWord, predicted: tuple[int | None, str | None], metric: str
) -> tuple[float, float]:
    head, relation = predicted
    answer = replace(word, head=NOT_ATTACHED if head is None else head, relation=relation)
    shares = attachment_shares([answer])
    if metric not in shares:
        raise unknown_name("metric of words", metric, shares)
    return shares[metric]


def universal(relation: str | None) -> str:
    return (relation or "_").partition(":")[0]


def _relations(parse: Parse) -> list[str]:
    return [universal(relation) for relation in parse.deprel]


def _distances(parse: Parse) -> list[int | None]:
    """Position of each word less that of its head: negative where the word stands first."""
    parents = parse.parents().tolist()
    return [at - parent if parent >= 0 else None for at, parent in enumerate(parents)]


def _directions(parse: Parse) -> list[str | None]:
    return [
        None if one is None else "before its head" if one < 0 else "after its head"
        for one in _distances(parse)
    ]


def _depths(parse: Parse) -> list[int]:
    return [int(depth) for depth in tree_depth(parse.parents())]


def _labels(part: Part, metric: str) -> Iterator[Item]:
    """Precision, recall or F1 of each class, or of each type of entity, in each example."""
    for answers in zip(*part.runs, strict=True):
        real = _labelled(answers[0].gold, part.task)
        said = [_labelled(one.predicted, part.task) for one in answers]
        for label in sorted({one.type for found in (real, *said) for one in found}):
            ours, *theirs = ({one for one in found if one.type == label} for found in (real, *said))
            shares = [_label_shares(ours, one, metric) for one in theirs]
            yield Item(answers[0].example_id, label, shares)


def _label_shares(real: set[Entity], said: set[Entity], metric: str) -> tuple[float, float]:
    hits = float(len(real & said))
    shares = {
        "f1": (2 * hits, float(len(said) + len(real))),
        "precision": (hits, float(len(said))),
        "recall": (hits, float(len(real))),
    }
    if metric not in shares:
        raise unknown_name("metric of labels", metric, shares)
    return shares[metric]


def _labelled(answer: Any, task: TaskOptions) -> set[Entity]:
    if not isinstance(task, TokenClassificationOptions):
        return {Entity(answer, 0, 1)}
    return set((tokens_tagged(task.positive) if task.positive else entities)(answer))


def has_pairs(task: TaskOptions) -> bool:
    return isinstance(task, (*LABELLED, *PARSERS))


def pairs(answer: Prediction, task: TaskOptions) -> Iterator[tuple[str, str]]:
    """Gold and predicted label of an example, or of each of its tokens or words."""
    if isinstance(task, TokenClassificationOptions):
        yield from zip(answer.gold, answer.predicted, strict=True)
    elif isinstance(task, PARSERS):
        for (_, gold), (_, predicted) in zip(answer.gold, answer.predicted, strict=True):
            yield universal(gold), universal(predicted)
    else:
        yield answer.gold, answer.predicted


GROUPINGS: Final[Mapping[str, Grouping]] = {
    "lang": Grouping("examples", _by_example(lambda part: [part.lang] * len(part.runs[0]))),
    "family": Grouping(
        "examples",
        _by_example(lambda part: [family_of(part.lang)] * len(part.runs[0])),
        none="in languages whose family is unknown",
    ),
    "length": Grouping("examples", _by_example(_lengths), is_number=True),
    "label": Grouping("labels", _labels, LABELLED, metric="f1"),
    "mention_distance": Grouping(
        "examples",
        _mention_distances(_words_apart),
        (RelationOptions,),
        none="whose mentions are in two texts, or no words",
        is_number=True,
    ),
    "mention_path": Grouping(
        "examples",
        _mention_distances(_edges_apart),
        (RelationOptions,),
        none="whose mentions are in two trees, or no words",
        is_number=True,
    ),
    "relation": Grouping("words", _by_word(_relations), PARSERS),
    "distance": Grouping(
        "words", _by_word(_distances), PARSERS, none="that are roots", is_number=True
    ),
    "direction": Grouping("words", _by_word(_directions), PARSERS, none="that are roots"),
    "depth": Grouping("words", _by_word(_depths), PARSERS, is_number=True),
}
"""Ways to divide predictions, by name.

``length`` counts the words of an example's texts; ``mention_distance`` the words from one mention
of a relation to the other, and ``mention_path`` the edges of the tree. ``distance`` is the position
of a word less that of its head: negative where the word stands first.
"""
