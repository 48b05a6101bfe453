"""Tokens cut to the pieces of a sequence, before they are parsed."""

from __future__ import annotations

import pytest

from clients.cut import CUT, cut_items
from clients.wordpiece import WordPieceOptions, save_tokenizer, train_wordpiece
from service.tokenizers import load_tokenizer
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, Example, LabelSpec, Rejection, Segment

WORDS = ["the", "mill", "stands", "by", "the", "river", "and", "grinds", "corn"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    texts = [" ".join(WORDS), "the the river river mill"]
    place = tmp_path_factory.mktemp("tokenizers") / "small"
    save_tokenizer(train_wordpiece(lambda: texts, WordPieceOptions(60)), place, {})
    return place


def spec(mode="pretokenized", labels=(), fields=("text",)):
    return DatasetSpec("x", "train", "en", fields, labels, mode)


def example(tokens, labels=None, name="a"):
    return Example(name, (Segment(tokens=tuple(tokens)),), labels or {})


@pytest.mark.parametrize("most", range(3, 40))
def test_the_word_that_overflows_and_all_after_it_are_cut(folder, most):
    tokenizer = load_tokenizer(str(folder))
    lengths = [len(tokenizer.encode(word)[0]) for word in WORDS]
    kept = [n for n in range(len(WORDS) + 1) if 2 + sum(lengths[:n]) <= most][-1]
    (item,) = cut_items(spec(), [example(WORDS)], folder, most)
    if kept:
        assert list(item.segments[0].tokens) == WORDS[:kept]
        assert item.repairs == ((CUT,) if kept < len(WORDS) else ())
        whole, _ = tokenizer.encode(" ".join(item.segments[0].tokens))
        assert len(whole) + 2 <= most
    else:
        assert (item.example_id, item.reason) == ("a", "text_too_long")


def test_tags_are_cut_with_their_tokens(folder):
    labels = (LabelSpec("tags", "tags", ("O", "X")), LabelSpec("kind", "class", ("a", "b")))
    given = {"tags": ("O", "X") * 4 + ("O",), "kind": "a"}
    most = 2 + len(load_tokenizer(str(folder)).encode("the mill")[0])
    (item,) = cut_items(spec("retokenize", labels), [example(WORDS, given)], folder, most)
    assert item.labels == {"tags": ("O", "X"), "kind": "a"}


def test_a_gold_tree_is_dropped_and_never_cut(folder):
    rows = "".join(
        f"{n}\t{word}\t_\t_\t_\t_\t{n - 1}\tdep\t_\t_\n" for n, word in enumerate(WORDS, 1)
    )
    gold = Example("g", (Segment(conllu=rows + "\n"),))
    bad = Rejection("b", "conllu", "bad")
    assert list(cut_items(spec("gold"), [gold, bad], folder, 64)) == [gold, bad]
    (item,) = cut_items(spec("gold"), [gold], folder, 8)
    assert (item.example_id, item.reason) == ("g", "text_too_long")
    assert (
        "more than the 6 pieces that a sequence holds, and its gold tree is not cut" in item.message
    )


def test_what_cannot_be_cut_is_refused(folder, tmp_path):
    for wrong in (
        spec("raw"),
        spec("sentence"),
        spec(fields=("a", "b")),
        spec(labels=(LabelSpec("answers", "spans"),)),
    ):
        with pytest.raises(SpecError, match="`max_pieces`"):
            cut_items(wrong, [], folder, 64)
    with pytest.raises(SpecError, match=r"there is no .*tokenizer\.json"):
        cut_items(spec(), [], tmp_path, 64)
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(SpecError, match="cannot be read"):
        cut_items(spec(), [], tmp_path, 64)
