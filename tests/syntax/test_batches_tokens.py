"""Tokens of a dataset at pieces, their labels there and back, and labelled spans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.alignment import project_labels
from syntax.batches import (
    IGNORE,
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    Template,
    assemble_batch,
    label_tokens,
    labels_of_tokens,
    locate,
    locate_spans,
    token_ids_of,
)
from syntax.errors import InputError, SpecError
from syntax.labels import token_offsets
from syntax.matrices.offsets import offsets_of
from tests.syntax.test_batches_sequences import BERT

BIO = ("O", "B-X", "I-X", "B-Y", "I-Y")
ALL = (*BIO, "S-X", "E-X", "S-Y", "E-Y")

OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_length": 9, "truncation_side": "left"},
    {"max_length": 12, "truncation": "only_second", "stride": 2, "segment_limits": (3, None)},
    {"truncation": "only_second", "level": "sentence"},
    {"template": Template.of("ab", "b a", "a+b", "b")},
]


@dataclass(frozen=True)
class Tokenized:
    """A text of tokens, its words and its pieces, all as spans of characters."""

    tokens: list[tuple[int, int]]
    words: list[tuple[int, int]]
    pieces: list[tuple[int, int]]

    def word_of(self, piece: int) -> int:
        return first_shared(self.pieces[piece], self.words)

    def token_of(self, piece: int) -> int:
        return first_shared(self.pieces[piece], self.tokens)

    def first_pieces(self) -> dict[int, int]:
        """The first piece of each word that owns one."""
        owners = [self.word_of(piece) for piece in range(len(self.pieces))]
        return {word: owners.index(word) for word in owners if word >= 0}

    def words_in(self, token: int) -> list[int]:
        """The first pieces of the words that begin in a token."""
        return [at for at in sorted(self.first_pieces().values()) if self.token_of(at) == token]

    def features(self) -> SegmentFeatures:
        count, first = len(self.pieces), self.first_pieces()
        words = [self.word_of(piece) for piece in range(count)]
        head = [-2 if w < 0 else -1 if first[w] == at else first[w] for at, w in enumerate(words)]
        zeros = np.zeros(count, np.int32)
        sentences = np.array([-1 if word < 0 else word // 3 for word in words], np.int32)
        return SegmentFeatures(
            *(zeros, np.array(head, np.int32), np.array(words, np.int32)),
            *(np.zeros(count, np.uint8), np.zeros(count, np.uint8), sentences),
            np.array(self.pieces, np.int32).reshape(-1, 2),
        )


def first_shared(span: tuple[int, int], others: list[tuple[int, int]]) -> int:
    """The first span that has a character of another; -1 for none."""
    shared = [at for at, other in enumerate(others) if set(range(*span)) & set(range(*other))]
    return shared[0] if shared else -1


def cut(draw: st.DrawFn, start: int, end: int, longest: int) -> list[tuple[int, int]]:
    spans = []
    while start < end:
        stop = min(end, start + draw(st.integers(1, longest)))
        spans.append((start, stop))
        start = stop
    return spans


@st.composite
def texts(draw: st.DrawFn, split: bool = False) -> Tokenized:
    """Tokens with gaps between them; words over several tokens, unless they only ``split`` them."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    tokens = [(a, z) for a, z in token_offsets(["x" * n for n in lengths]).tolist()]
    if split:
        words = [word for token in tokens for word in cut(draw, *token, 3)]
        pieces = [piece for word in words for piece in cut(draw, *word, 2)]
    else:
        words = cut(draw, 0, tokens[-1][1], 7)
        pieces = [x for x in cut(draw, 0, tokens[-1][1], 3) if draw(st.integers(0, 5))]
    return Tokenized(tokens, words, pieces)


def flat_of(stored: list[list[Tokenized]]) -> FlatExamples:
    flat = FlatExamples.from_segments([[text.features() for text in row] for row in stored])
    segments = [text for row in stored for text in row]
    tokens = [token for text in segments for token in text.tokens]
    bounds = offsets_of([len(text.tokens) for text in segments])
    assert flat.offsets is not None
    ids = token_ids_of(flat.offsets, flat.segment_offsets, tokens, bounds)
    return replace(flat, token_ids=ids)


def shown(batch: dict[str, Any], spec: AssemblySpec) -> list[tuple[int, int, int, int, int]]:
    """Row, position, example, field and piece of everything that is no special token."""
    orders = spec.template.sequences if spec.template else (((0,), (1,)),)
    fields = [[field for part in order for field in part] for order in orders]
    rows, positions = np.nonzero(batch["piece_ids"] >= 0)
    own = np.arange(len(batch["input_ids"]))
    examples, choices = batch.get("example_index", own), batch.get("choice_index", 0 * own)
    return [
        (
            *(int(row), int(at), int(examples[row])),
            fields[choices[row]][batch["segment_ids"][row, at]],
            int(batch["piece_ids"][row, at]),
        )
        for row, at in zip(rows.tolist(), positions.tolist(), strict=True)
    ]


@pytest.mark.parametrize("options", OPTIONS)
@given(data=st.data())
@settings(max_examples=25)
def test_batches_tell_which_token_each_piece_shows(options, data) -> None:
    stored = data.draw(st.lists(st.lists(texts(), min_size=2, max_size=2), min_size=1, max_size=3))
    spec = AssemblySpec(**{"token_ids": True, "offsets": True, "matrices": (), **options})
    batch = assemble_batch(flat_of(stored), BERT, spec)
    places = shown(batch, spec)
    for row, at, example, field, piece in places:
        text = stored[example][field]
        token = text.token_of(piece)
        assert batch["token_ids"][row, at] == token
        before = [text.token_of(other) for other in range(piece)]
        assert batch["token_starts"][row, at] == (token >= 0 and token not in before)
        words = text.words_in(token) if token >= 0 else []
        expected = [words.index(piece), len(words)] if piece in words else [0, 0]
        assert batch["token_words"][row, at].tolist() == expected
    nothing = batch["piece_ids"] < 0
    assert (batch["token_ids"][nothing] == -1).all()
    assert not batch["token_starts"][nothing].any()
    assert not batch["token_words"][nothing].any()


@pytest.mark.parametrize("options", OPTIONS)
@given(data=st.data())
@settings(max_examples=25)
def test_labels_of_tokens_come_to_their_pieces_and_back(options, data) -> None:
    stored = data.draw(st.lists(st.lists(texts(), min_size=2, max_size=2), min_size=1, max_size=3))
    tags = [data.draw(st.lists(st.integers(-1, 4), min_size=n, max_size=n)) for n in counts(stored)]
    tags[0] = data.draw(st.sampled_from([tags[0], []]))
    spec = AssemblySpec(**{"token_ids": True, "offsets": True, "matrices": (), **options})
    batch = assemble_batch(flat_of(stored), BERT, spec)
    places = [place for place in shown(batch, spec) if place[3] == 1]
    for segment in (0, 1):
        here = [place for place in places if batch["segment_ids"][place[0], place[1]] == segment]
        # The same segment may be another field in another sequence of a template.
        rows = sorted({row for row, *_ in here})
        part = {name: values[rows] for name, values in batch.items()}
        if not here or ("choice_index" in part and len({*part["choice_index"]}) > 1):
            continue
        part["example_index"] = batch.get("example_index", np.arange(len(stored)))[rows]
        examples = int(part["example_index"].max()) + 1
        everywhere, first = (
            label_tokens(part, tags[:examples], segment, pieces) for pieces in ("all", "first")
        )
        expected = np.full(everywhere.shape, IGNORE)
        for row, at, example, _, piece in here:
            token = stored[example][1].token_of(piece)
            if token >= 0 and tags[example] and tags[example][token] >= 0:
                expected[rows.index(row), at] = tags[example][token]
        assert everywhere.tolist() == expected.tolist()
        assert first.tolist() == np.where(part["token_starts"], expected, IGNORE).tolist()
        found = labels_of_tokens(part, first, counts(stored)[:examples], segment, missing=-7)
        seen = {
            (example, stored[example][1].token_of(piece))
            for row, at, example, _, piece in here
            if batch["token_starts"][row, at]
        }
        for example, values in enumerate(found):
            for token, value in enumerate(values.tolist()):
                gold = tags[example][token] if tags[example] else -1
                known = IGNORE if gold < 0 else gold
                assert value == (known if (example, token) in seen else -7)


def counts(stored: list[list[Tokenized]]) -> list[int]:
    return [len(row[1].tokens) for row in stored]


MENTIONS = st.lists(
    st.sampled_from("XY").flatmap(
        lambda kind: st.sampled_from([["O"], ["B"], ["B", "I"], ["B", "I", "I"]]).map(
            lambda letters: [x if x == "O" else f"{x}-{kind}" for x in letters]
        )
    ),
    max_size=6,
).map(lambda parts: [tag for part in parts for tag in part])
"""Tags in BIO."""


def as_bioes(tags: list[str]) -> list[str]:
    written = []
    for tag, after in zip(tags, [*tags[1:], "O"], strict=True):
        ends = after[0] != "I"
        letter = {"B": "S", "I": "E"}.get(tag[0], tag[0]) if ends else tag[0]
        written.append(letter + tag[1:])
    return written


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
@given(data=st.data())
def test_words_that_a_token_was_cut_into_go_on_with_its_mention(scheme, data) -> None:
    text = data.draw(texts(split=True))
    tags = [*data.draw(MENTIONS), *["O"] * 5][: len(text.tokens)]
    tags = as_bioes(tags) if scheme == "BIOES" else tags
    spec = AssemblySpec(token_ids=True, first_pieces=True)
    batch = assemble_batch(flat_of([[text]]), BERT, spec)
    ids = [[ALL.index(tag) for tag in tags]]
    laid = label_tokens(batch, ids, pieces="words", names=ALL)
    words = [
        [at for at, word in enumerate(text.words) if word[0] >= token[0] and word[1] <= token[1]]
        for token in text.tokens
    ]
    expected = project_labels(tags, words, len(text.words))
    assert [ALL[label] for label in laid[batch["first_pieces"]]] == expected
    assert (laid[~batch["first_pieces"]] == IGNORE).all()
    back = labels_of_tokens(batch, laid, [len(tags)], pieces="words")
    assert [ALL[label] for label in back[0]] == [expected[of[0]] for of in words]
    if scheme == "BIO":
        assert back[0].tolist() == ids[0]


def test_of_several_windows_the_one_with_most_context_is_read() -> None:
    spans = [(2 * at, 2 * at + 1) for at in range(12)]
    flat = flat_of([[Tokenized(spans, spans, spans)]])
    batch = assemble_batch(flat, BERT, AssemblySpec(8, stride=2, token_ids=True))
    assert len(batch["token_ids"]) > 2
    predicted = np.arange(batch["token_ids"].size).reshape(batch["token_ids"].shape)
    (values,) = labels_of_tokens(batch, predicted, [12])
    most = batch["is_max_context"] & (batch["token_ids"] >= 0)
    for token, value in enumerate(values.tolist()):
        assert [value] == predicted[most & (batch["token_ids"] == token)].tolist()


def test_labels_may_be_given_for_each_sequence() -> None:
    spans = [(2 * at, 2 * at + 1) for at in range(6)]
    flat = flat_of([[Tokenized(spans, spans, spans)]] * 2)
    batch = assemble_batch(flat, BERT, AssemblySpec(5, stride=2, token_ids=True))
    labels = [[1] * 6, [2] * 6]
    repeated = [labels[example] for example in batch["example_index"]]
    assert len(repeated) > 2
    of_examples = label_tokens(batch, labels)
    assert label_tokens(batch, repeated).tolist() == of_examples.tolist()
    counts = np.full(len(repeated), 6)
    back = labels_of_tokens(batch, of_examples, counts)
    assert [values.tolist() for values in back] == labels


def test_the_released_code_begins_a_mention_at_every_word_of_a_token() -> None:
    text = Tokenized([(0, 4), (5, 8)], [(0, 2), (2, 4), (5, 8)], [(0, 2), (2, 4), (5, 6), (6, 8)])
    batch = assemble_batch(flat_of([[text]]), BERT, AssemblySpec(token_ids=True))
    published = label_tokens(batch, [[1, 2]], pieces="words", names=BIO)
    released = label_tokens(batch, [[1, 2]], pieces="words", variant="as_released")
    assert published[0, 1:-1].tolist() == [1, 2, 2, IGNORE]
    assert released[0, 1:-1].tolist() == [1, 1, 2, IGNORE]


def test_word_whose_label_is_not_in_the_list_is_ignored() -> None:
    text = Tokenized([(0, 4)], [(0, 2), (2, 4)], [(0, 2), (2, 4)])
    batch = assemble_batch(flat_of([[text]]), BERT, AssemblySpec(token_ids=True))
    laid = label_tokens(batch, [[1]], pieces="words", names=("O", "B-X"))
    assert laid[0, 1:-1].tolist() == [1, IGNORE]
    tags = label_tokens(batch, [[1]], pieces="words", names=("ADV", "NOUN"))
    assert tags[0, 1:-1].tolist() == [1, 1]


@given(data=st.data())
@settings(max_examples=40)
def test_spans_are_located_as_if_each_was_alone(data: st.DataObject) -> None:
    stored = data.draw(st.lists(st.lists(texts(), min_size=2, max_size=2), min_size=1, max_size=3))
    options = {"max_length": 10, "truncation": "only_second", "segment_limits": (3, None)}
    stride = data.draw(st.sampled_from([None, 2]))
    batch = assemble_batch(
        flat_of(stored),
        BERT,
        AssemblySpec(**options, stride=stride, offsets=True),  # type: ignore[arg-type]
    )
    ends = st.integers(0, 20)
    some = st.lists(st.tuples(ends, ends, st.integers(-1, 3)), max_size=4)
    spans = [data.draw(some) for _ in stored]
    found = locate_spans(batch, [np.array(x, np.int64).reshape(-1, 3) for x in spans], 1)
    rows = np.asarray(batch.get("example_index", np.arange(len(stored)))).tolist()
    expected = []
    for row, example in enumerate(rows):
        part = {name: batch[name][[row]] for name in batch if name != "example_index"}
        for number, (start, end, label) in enumerate(spans[example]):
            one = locate(part, [(start, end)], 1)
            expected.append((row, number, label, *(int(x[0]) for x in one)))
    assert list(zip(*(x.tolist() for x in found), strict=True)) == expected
    alone = locate_spans(batch, [np.array(spans[e])[:, :2] if spans[e] else [] for e in rows], 1)
    assert alone.state.tolist() == found.state.tolist()
    assert (alone.label == -1).all()


def test_an_empty_token_shows_nothing() -> None:
    tokens = [(0, 2), (2, 2), (2, 4)]
    ids = token_ids_of([(0, 1), (1, 3), (2, 4), (3, 3)], [0, 4], tokens, [0, 3])
    assert ids.tolist() == [0, 0, 2, -1]


def test_labels_that_do_not_fit_the_batch_are_refused() -> None:
    text = Tokenized([(0, 2), (3, 4)], [(0, 2), (3, 4)], [(0, 2), (3, 4)])
    flat = flat_of([[text], [text]])
    batch = assemble_batch(flat, BERT, AssemblySpec(token_ids=True))
    with pytest.raises(InputError, match="labels of 3 examples came for a batch of 2"):
        label_tokens(batch, [[1], [1], [1]])
    with pytest.raises(InputError, match="example 1 of the batch has the token 1, and labels for"):
        label_tokens(batch, [[1, 1], [1]])
    with pytest.raises(SpecError, match="one of first, all, words"):
        label_tokens(batch, [[1, 1], [1, 1]], pieces="last")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="give the names"):
        label_tokens(batch, [[1, 1], [1, 1]], pieces="words")
    with pytest.raises(SpecError, match="token_ids=True"):
        label_tokens(assemble_batch(flat, BERT, AssemblySpec()), [[1, 1], [1, 1]])
    with pytest.raises(SpecError, match="offsets=True"):
        locate_spans(batch, [[], []])
    bare = replace(flat, token_ids=None)
    with pytest.raises(SpecError, match="came without"):
        assemble_batch(bare, BERT, AssemblySpec(token_ids=True))
