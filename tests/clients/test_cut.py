"""Tokens cut to the pieces of a sequence, before they are parsed."""

from __future__ import annotations

import json

import pytest

from clients.cut import CUT, cut_items, piece_counter
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


@pytest.mark.parametrize("lower", [True, False])
def test_a_vocabulary_alone_counts_as_the_services_tokenizer_does(folder, tmp_path, lower):
    vocabulary = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    named = sorted(vocabulary, key=vocabulary.__getitem__)
    (tmp_path / "vocab.txt").write_text("\n".join(named), "utf-8")
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    whole, counter = load_tokenizer(str(tmp_path)), piece_counter(tmp_path)
    assert counter.num_special_tokens_to_add(False) == 2
    for word in [*WORDS, "Mills", "RIVER", "Größe", "水車"]:
        assert counter.encode(word, add_special_tokens=False).ids == whole.encode(word)[0].tolist()
    (item,) = cut_items(spec(), [example(WORDS)], tmp_path, 10)
    assert item.repairs == (CUT,)


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
    with pytest.raises(SpecError, match=r"there is no .*tokenizer\.json and no vocab\.txt"):
        cut_items(spec(), [], tmp_path, 64)
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(SpecError, match="cannot be read"):
        cut_items(spec(), [], tmp_path, 64)
