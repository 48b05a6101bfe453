"""Dataset tokens against the parser's words, and labels that go from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.alignment import project_labels, token_words, word_tokens
from syntax.errors import InputError
from syntax.trees.parse import Parse
from tests.syntax.parses import parse_of

TYPES = ("PER", "LOC")

Chunk = tuple[int, int, str]


def flat_parse(text: str, spans: Sequence[tuple[int, int]]) -> Parse:
    return parse_of(text, spans, [[0] + [1] * (len(spans) - 1)])


def slow_token_words(tokens: Sequence[str], parse: Parse) -> list[list[int]]:
    """The twin: every token against every word, character by character."""
    owner = [at for at, token in enumerate(tokens) for _ in (*token, " ")]
    characters = [set() for _ in tokens]
    for position, at in enumerate(owner):
        if position < len(parse.text):
            characters[at].add(position)
    ends = [sum(len(token) + 1 for token in tokens[: at + 1]) - 1 for at in range(len(tokens))]
    for at, end in enumerate(ends):
        characters[at].discard(end)
    words = [set(range(*span)) for span in zip(parse.word_start, parse.word_end, strict=True)]
    return [[w for w, word in enumerate(words) if own & word] for own in characters]


def chunks(labels: Sequence[str | None]) -> list[Chunk]:
    """Spans of a BIO sequence: first, last, type."""
    found: list[Chunk] = []
    for at, label in enumerate(labels):
        if label in (None, "O"):
            continue
        prefix, _, kind = label.partition("-")
        if prefix == "I" and found and found[-1][1] == at - 1 and found[-1][2] == kind:
            found[-1] = (found[-1][0], at, kind)
        else:
            found.append((at, at, kind))
    return found


def is_bio(labels: Sequence[str]) -> bool:
    return all(
        label == "O" or label[0] == "B" or (before != "O" and before[1:] == label[1:])
        for before, label in zip(["O", *labels], labels, strict=False)
    )


def slow_labels(
    spans: Sequence[Chunk], words_of: Sequence[Sequence[int]], words: int
) -> list[str | None]:
    """The twin: each word asks every token, and then looks at its left neighbour."""
    owner: list[int | None] = []
    for word in range(words):
        mine = [t for t, own in enumerate(words_of) if word in own]
        hits = [at for at, (a, b, _) in enumerate(spans) if any(a <= t <= b for t in mine)]
        owner.append((min(hits) if hits else -1) if mine else None)
    labels: list[str | None] = []
    for word, mine in enumerate(owner):
        if mine is None or mine == -1:
            labels.append(None if mine is None else "O")
        else:
            same = word > 0 and owner[word - 1] == mine
            labels.append(("I-" if same else "B-") + spans[mine][2])
    return labels


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[list[str], Parse]:
    """Tokens, and words over the same text that were cut without regard to them."""
    token = st.text("abc\u200b👍 é", min_size=1, max_size=6).filter(str.strip)
    tokens = draw(st.lists(token, min_size=1, max_size=8))
    text = " ".join(tokens)
    inner = range(1, len(text))
    cuts = sorted(draw(st.sets(st.sampled_from(inner)))) if len(text) > 1 else []
    spans = list(zip([0, *cuts], [*cuts, len(text)], strict=True))
    trimmed = [trim(text, *span) for span in spans if text[slice(*span)].strip()]
    repeated = [span for span in trimmed for _ in range(draw(st.sampled_from([1, 1, 1, 2])))]
    return tokens, flat_parse(text, repeated)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    written = text[start:end]
    return end - len(written.lstrip()), start + len(written.rstrip())


@st.composite
def bio_labels(draw: st.DrawFn, size: int) -> list[str]:
    """A valid BIO sequence."""
    labels: list[str] = []
    for _ in range(size):
        choices = ["O", *(f"B-{kind}" for kind in TYPES)]
        if labels and labels[-1] != "O":
            choices += [f"I{labels[-1][1:]}"] * 3
        labels.append(draw(st.sampled_from(choices)))
    return labels


def as_bioes(labels: Sequence[str], end: str = "E", alone: str = "S") -> list[str]:
    """The same spans with their ends marked."""
    written = ["O"] * len(labels)
    for first, last, kind in chunks(labels):
        letters = ["B", *"I" * (last - first - 1), end] if last > first else [alone]
        written[first : last + 1] = [f"{letter}-{kind}" for letter in letters]
    return written


def test_tokens_and_words_align_by_shared_characters() -> None:
    parse = flat_parse("des New York", [(0, 3), (0, 3), (4, 12)])
    tokens = ["des", "New", "York"]
    assert token_words(tokens, parse) == [[0, 1], [2], [2]]
    assert word_tokens(tokens, parse) == [[0], [0], [1, 2]]


def test_a_token_that_the_parser_left_out_has_no_word() -> None:
    parse = flat_parse("a \u200b b", [(0, 1), (4, 5)])
    assert token_words(["a", "\u200b", "b"], parse) == [[0], [], [1]]


def test_other_tokens_than_the_parsed_ones_are_refused() -> None:
    parse = flat_parse("a b", [(0, 1), (2, 3)])
    with pytest.raises(InputError, match="joined by single spaces"):
        token_words(["a", "c"], parse)


@given(cut_texts())
def test_any_cut_agrees_with_the_slow_twin_both_ways(case: tuple[list[str], Parse]) -> None:
    tokens, parse = case
    found = token_words(tokens, parse)
    assert found == slow_token_words(tokens, parse)
    pairs = {(t, w) for t, words in enumerate(found) for w in words}
    assert pairs == {(t, w) for w, own in enumerate(word_tokens(tokens, parse)) for t in own}
    assert {w for _, w in pairs} == set(range(parse.word_count))


@pytest.mark.parametrize(
    ("labels", "words_of", "expected"),
    [
        ("B-X I-X O", [[0, 1], [2], [3]], "B-X I-X I-X O"),
        ("S-X O", [[0, 1, 2], [3]], "B-X I-X E-X O"),
        ("B-X E-X", [[0], [1, 2]], "B-X I-X E-X"),
        ("U-X L-Y", [[0, 1], [2, 3]], "B-X L-X I-Y L-Y"),
        ("B-X E-X", [[0], [0]], "S-X"),
        ("B-X L-X", [[0], [0]], "U-X"),
        ("O B-X", [[0], [0]], "B-X"),
        ("B-X I-X B-Y I-Y", [[0], [1], [1], [2]], "B-X I-X B-Y"),
        ("B-X B-Y O", [[0], [0], [1]], "B-X O"),
        ("I-X O I-X", [[0], [0], [1]], "I-X B-X"),
        ("NOUN B-X", [[0, 1], [1, 2]], "NOUN NOUN B-X"),
        ("O NOUN", [[0], [0]], "NOUN"),
    ],
)
def test_labels_follow_their_scheme(labels: str, words_of: list[list[int]], expected: str) -> None:
    words = max(word for own in words_of for word in own) + 1
    assert project_labels(labels.split(), words_of, words) == expected.split()


def test_a_word_without_a_token_has_no_label() -> None:
    assert project_labels(["B-X"], [[1]], 2) == [None, "B-X"]
    assert project_labels([], [], 0) == []


def test_numbers_of_labels_and_tokens_must_agree() -> None:
    with pytest.raises(InputError, match="there are 1 labels for 2 tokens"):
        project_labels(["O"], [[0], [1]], 2)


@given(st.data())
def test_bio_stays_bio_and_keeps_its_entities(data: st.DataObject) -> None:
    tokens, parse = data.draw(cut_texts())
    labels = data.draw(bio_labels(len(tokens)))
    words_of, spans = token_words(tokens, parse), chunks(labels)
    found = project_labels(labels, words_of, parse.word_count)
    assert found == slow_labels(spans, words_of, parse.word_count)
    assert is_bio(found)
    words_of_span = [{w for t in range(a, b + 1) for w in words_of[t]} for a, b, _ in spans]
    earlier = [set().union(*words_of_span[:at]) for at in range(len(spans))]
    kept = [
        kind
        for (_, _, kind), own, before in zip(spans, words_of_span, earlier, strict=True)
        if own - before
    ]
    assert [kind for _, _, kind in chunks(found)] == kept
    for label, own in zip(labels, words_of, strict=True):
        assert label == "O" or all(found[word] != "O" for word in own)


@given(st.data())
def test_marked_ends_are_those_of_the_same_entities(data: st.DataObject) -> None:
    tokens, parse = data.draw(cut_texts())
    labels = data.draw(bio_labels(len(tokens)))
    words_of = token_words(tokens, parse)
    plain = project_labels(labels, words_of, parse.word_count)
    for letters in (("E", "S"), ("L", "U")):
        marked = project_labels(as_bioes(labels, *letters), words_of, parse.word_count)
        assert marked == as_bioes(plain, *letters)


@given(st.data())
def test_labels_are_left_alone_where_words_are_tokens(data: st.DataObject) -> None:
    letters = "BIESLU"
    label = st.sampled_from(["O", *(f"{a}-{kind}" for a in letters for kind in TYPES)])
    labels = data.draw(st.lists(label, max_size=10))
    words_of = [[at] for at in range(len(labels))]
    assert project_labels(labels, words_of, len(labels)) == labels
