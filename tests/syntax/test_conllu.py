"""CoNLL-U comes back as it went in, and what breaks the format is named with its line."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import (
    EmptyNode,
    Sentence,
    Token,
    Word,
    format_conllu,
    parse_conllu,
    parse_from_sentences,
    read_conllu,
    write_conllu,
)
from syntax.errors import (
    ConlluError,
    CycleError,
    HeadOutOfRangeError,
    InputError,
    MissingHeadError,
    MultipleRootsError,
    NoRootError,
    NoSentenceError,
)

FILES = Path(__file__).parents[1] / "fixtures" / "conllu"

VALID = (
    *("everything", "spaces", "french-contractions", "english-straddles", "vietnamese-words"),
    *("cycle", "two-roots", "no-root", "head-out-of-range", "missing-head"),
    *("text-mismatch", "text-longer-than-tokens", "empty-file"),
)

BAD_LINES = {
    "bad-id-sequence": (3, "id '3' is out of sequence: 2, a multiword token 2-... or an empty"),
    "duplicate-id": (3, "is the empty line before this sentence missing?"),
    "id-not-a-number": (2, "id 'one' is out of sequence"),
    "nine-columns": (3, "9 columns instead of 10"),
    "eleven-columns": (2, "11 columns instead of 10"),
    "spaces-for-tabs": (2, "1 columns instead of 10, separated by tabs"),
    "empty-column": (2, "column FEATS is empty"),
    "overlapping-ranges": (4, "2-3 overlaps the one before it, which ends at word 2"),
    "nested-ranges": (3, "1-2 overlaps the one before it, which ends at word 3"),
    "reversed-range": (2, "id '2-1' is out of sequence"),
    "late-range": (3, "id '1-2' is out of sequence"),
    "unfinished-range": (5, "ends at word 999999999"),
    "malformed-range": (2, "id '1--2' is out of sequence"),
    "empty-node-out-of-sequence": (3, "empty node 1.1 may stand here"),
    "empty-node-before-its-word": (2, "empty node 0.1 may stand here"),
    "empty-node-after-range-line": (3, "id '0.1' is out of sequence"),
    "head-not-a-number": (2, "HEAD is 'root'"),
    "head-negative": (2, "HEAD is '-1'"),
    "head-with-leading-zero": (3, "HEAD is '01'"),
    "missing-blank-line": (5, "a comment inside a sentence"),
    "missing-blank-line-without-comments": (4, "is the empty line before this sentence missing?"),
    "missing-final-blank-line": (4, "the file ends inside a sentence"),
    "cut-off-in-a-line": (9, "8 columns instead of 10"),
    "extra-blank-line": (6, "an empty line with no words before it"),
    "leading-blank-line": (1, "an empty line with no words before it"),
    "comments-only": (3, "an empty line with no words before it"),
    "comment-inside-sentence": (3, "a comment inside a sentence"),
    "white-space-line": (5, "a line of white space"),
    "carriage-return": (1, "a carriage return"),
    "byte-order-mark": (1, "byte order mark"),
    "invalid-utf8": (8, "byte 4 of the line is not UTF-8"),
    "surrogate": (2, "is not UTF-8"),
}


def sentences(name: str) -> list[Sentence]:
    return list(read_conllu(FILES / f"{name}.conllu"))


def one(*rows: str) -> Sentence:
    """A sentence from rows whose columns stand between semicolons, missing ones being empty."""
    columns = [(row.split(";") + ["_"] * 10)[:10] for row in rows if not row.startswith("#")]
    lines = [row for row in rows if row.startswith("#")] + ["\t".join(row) for row in columns]
    (sentence,) = parse_conllu("\n".join(lines))
    return sentence


def treebanks(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "treebanks").rglob("*.conllu"))


class TestRoundTrip:
    @pytest.mark.parametrize("name", VALID)
    def test_a_file_comes_back_byte_for_byte(self, name: str, tmp_path: Path) -> None:
        source, copy = FILES / f"{name}.conllu", tmp_path / "copy.conllu"
        write_conllu(read_conllu(source), copy)
        assert copy.read_bytes() == source.read_bytes()

    @pytest.mark.slow
    def test_every_treebank_comes_back_byte_for_byte(self, data_dir: Path) -> None:
        different = [
            str(path)
            for path in treebanks(data_dir)
            if format_conllu(read_conllu(path)).encode() != path.read_bytes()
        ]
        assert treebanks(data_dir)
        assert different == []

    def test_a_string_may_lack_the_empty_line_at_its_end(self) -> None:
        text = (FILES / "everything.conllu").read_text(encoding="utf-8")
        whole = list(parse_conllu(text))
        assert list(parse_conllu(text[:-1])) == whole
        assert list(parse_conllu(text[:-2])) == whole
        assert list(parse_conllu("")) == []

    def test_reading_is_lazy(self) -> None:
        stream = read_conllu(FILES / "missing-final-blank-line.conllu")
        with pytest.raises(ConlluError):
            next(stream)
        assert next(read_conllu(FILES / "extra-blank-line.conllu")).text == "Birds sing."


class TestEverything:
    def test_comments_keep_their_order_and_form(self) -> None:
        first, second = sentences("everything")
        assert first.comments[:3] == ("# newdoc id = tour", "#comment without a space", "#")
        assert (first.sent_id, first.text) == ("tour-1", "Its mine, I guess and you that.")
        assert second.comment("newpar") is None
        assert second.text == "_is a form like any other"

    def test_tokens_cover_all_words(self) -> None:
        first, second = sentences("everything")
        assert [token.word_ids for token in first.tokens][:2] == [(1, 2), (3,)]
        assert first.tokens[0] == Token(
            "Its", (1, 2), feats="Typo=Yes", misc="CorrectForm=It's|Gloss=x"
        )
        assert first.tokens[-2].is_multiword
        assert first.tokens[-2].word_ids == (9,)
        assert [token.form for token in second.tokens][:3] == ["_is", "a", "form"]
        assert second.words[0] == Word(1, "_", upos="SYM", head=4, deprel="nsubj")
        assert first.tree.heads == (3, 3, 0, 6, 6, 3, 8, 6, 8, 3)

    def test_empty_nodes_stand_before_the_first_word_and_inside_multiword_tokens(self) -> None:
        first, second = sentences("everything")
        assert [node.id for node in first.empty_nodes] == [(0, 1), (8, 1), (8, 2)]
        assert first.empty_nodes[0].columns[:2] == ("(so)", "so")
        assert [node.id for node in second.empty_nodes] == [(1, 1)]


class TestFaults:
    @pytest.mark.parametrize("name", BAD_LINES)
    def test_a_bad_line_is_named_with_path_and_line(self, name: str) -> None:
        path = FILES / f"{name}.conllu"
        line, message = BAD_LINES[name]
        with pytest.raises(ConlluError) as caught:
            list(read_conllu(path))
        assert str(caught.value).startswith(f"{path}:{line}: ")
        assert message in str(caught.value)
        assert caught.value.detail == {"path": str(path), "line": line}

    def test_every_bad_file_is_tested(self) -> None:
        assert {path.stem for path in FILES.glob("*.conllu")} == {*VALID, *BAD_LINES}

    @pytest.mark.parametrize("cut", range(1, 200, 7))
    def test_a_truncated_file_is_refused(self, cut: int, tmp_path: Path) -> None:
        path = tmp_path / "cut.conllu"
        path.write_bytes((FILES / "english-straddles.conllu").read_bytes()[:-cut])
        with pytest.raises(ConlluError):
            list(read_conllu(path))

    @pytest.mark.parametrize(
        "rest", ["# a comment\n", "1-2\tx" + "\t_" * 8 + "\n", "0.1" + "\t_" * 9]
    )
    def test_a_file_may_not_end_before_the_first_word(self, rest: str, tmp_path: Path) -> None:
        path = tmp_path / "begun.conllu"
        path.write_text(rest, encoding="utf-8")
        with pytest.raises(ConlluError, match=":1: the file ends inside a sentence"):
            list(read_conllu(path))

    def test_a_lone_surrogate_in_a_string_is_named(self) -> None:
        with pytest.raises(ConlluError, match="<string>:1: byte 3 of the line is not UTF-8"):
            list(parse_conllu("1\t\ud800\t_\t_\t_\t_\t0\troot\t_\t_"))

    def test_the_source_of_a_string_can_be_named(self) -> None:
        with pytest.raises(ConlluError, match=r"^item 3:1: 1 columns"):
            list(parse_conllu("nonsense", path="item 3"))

    @pytest.mark.parametrize(
        ("name", "error"),
        [
            ("cycle", CycleError),
            ("two-roots", MultipleRootsError),
            ("no-root", NoRootError),
            ("head-out-of-range", HeadOutOfRangeError),
            ("missing-head", MissingHeadError),
        ],
    )
    def test_a_sentence_with_a_bad_tree_is_read_and_its_tree_refused(self, name, error) -> None:
        (sentence,) = sentences(name)
        with pytest.raises(error):
            _ = sentence.tree
        with pytest.raises(error):
            parse_from_sentences([sentence])


class TestWriter:
    @pytest.mark.parametrize(
        "word",
        [
            Word(1, "a\tb", head=0),
            Word(1, "a\nb", head=0),
            Word(1, "a\rb", head=0),
            Word(1, "", head=0),
            Word(1, "a", misc="", head=0),
        ],
    )
    def test_columns_that_reading_would_change_are_refused(self, word: Word) -> None:
        with pytest.raises(InputError):
            format_conllu([Sentence((word,), (Token(word.form, (1,)),))])

    @pytest.mark.parametrize("comment", ["text = a", "# a\nb", ""])
    def test_a_comment_is_one_line_that_starts_with_a_hash(self, comment: str) -> None:
        with pytest.raises(InputError):
            format_conllu([Sentence((Word(1, "a"),), (Token("a", (1,)),), (comment,))])

    def test_an_empty_node_without_its_word_is_refused(self) -> None:
        node = EmptyNode((2, 1), ("_",) * 9)
        with pytest.raises(InputError, match="does not follow a word"):
            format_conllu([Sentence((Word(1, "a"),), (Token("a", (1,)),), (), (node,))])


class TestText:
    def test_tokens_are_joined_as_misc_says_where_the_comment_is_missing(self) -> None:
        (sentence,) = sentences("spaces")
        assert sentence.text == "Two  spaces\t|\\\r10\n000!"
        assert sentence.spelled_out() == " \nTwo  spaces\t|\\\r10\n000!\xa0\n"

    def test_spacing_of_words_is_that_of_their_multiword_token(self) -> None:
        sentence = one(
            *("1-2;can't;_;_;_;_;_;_;_;SpaceAfter=No", "1;ca;_;_;_;_;0;root;_;SpaceAfter=No"),
            *("2;n't;_;_;_;_;1;dep", "3;!;_;_;_;_;1;punct"),
        )
        assert sentence.text == "can't!"

    @pytest.mark.parametrize("line", ["# text = a b", "# text =a b", "#text=a b", "# text  =  a b"])
    def test_spaces_around_the_key_of_a_comment_are_optional(self, line: str) -> None:
        assert one(line, "1;a;_;_;_;_;0", "2;b;_;_;_;_;1").text.strip() == "a b"

    def test_other_comments_are_not_the_text(self) -> None:
        sentence = one("# text_en = x", "# x text = y", "# text", "1;a;_;_;_;_;0")
        assert sentence.text == "a"
        assert sentence.sent_id is None


class TestParseFromSentences:
    def test_french_contractions_keep_both_words_on_one_span(self) -> None:
        parse = parse_from_sentences(sentences("french-contractions"))
        assert parse.form[2:4] == ["de", "le"]
        assert parse.token_first_word[2:4] == [2, 4]
        assert (parse.word_start[2], parse.word_end[2]) == (8, 10)
        assert (parse.word_start[3], parse.word_end[3]) == (8, 10)
        assert parse.text[8:10] == "du"

    def test_english_contractions_are_split_where_their_words_meet(self) -> None:
        parse = parse_from_sentences(sentences("english-straddles"))
        spans = zip(parse.word_start, parse.word_end, strict=True)
        assert [parse.text[a:b] for a, b in spans] == parse.form

    def test_forms_may_hold_spaces(self) -> None:
        parse = parse_from_sentences(sentences("vietnamese-words"))
        assert (parse.token_start[0], parse.token_end[0]) == (0, 8)
        assert parse.form[0] == parse.text[:8] == "Học sinh"

    def test_sentences_are_joined_by_a_space(self) -> None:
        first, second = (*sentences("vietnamese-words"), *sentences("french-contractions"))
        parse = parse_from_sentences([first, second])
        assert parse.text == f"{first.text} {second.text}"
        assert parse.sentence_first_word == [0, 4]
        assert parse.sentence_start == [0, len(first.text) + 1]
        assert parse.sentence_end == [len(first.text), len(parse.text)]
        assert parse.head == [*first.tree.heads, *second.tree.heads]

    def test_the_text_can_be_taken_from_the_spacing_instead(self) -> None:
        (sentence,) = sentences("spaces")
        parse = parse_from_sentences([sentence, sentence], layout="spaces")
        assert parse.text == sentence.spelled_out() * 2
        assert parse.text[parse.token_start[2] : parse.token_end[2]] == "10\n000"
        assert parse.form[2] == "10 000"

    def test_misc_is_kept(self) -> None:
        assert parse_from_sentences(sentences("everything")[:1]).misc == [
            *(None, "CorrectForm='s", "SpaceAfter=No"),
            *([None] * 6),
            r"SpacesAfter=\s\n",
        ]
        assert parse_from_sentences([one("1;a;_;_;_;_;0")]).misc is None

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("text-mismatch", "'odd'.* at character 6 it has 'sang.' where token 'sing'"),
            ("text-longer-than-tokens", "character 12 it has 'Loudly.' where the end of the"),
        ],
    )
    def test_a_text_that_differs_from_its_tokens_is_refused(self, name: str, message: str) -> None:
        with pytest.raises(ConlluError, match=message):
            parse_from_sentences(sentences(name))

    def test_a_parse_of_no_sentences_is_refused(self) -> None:
        with pytest.raises(NoSentenceError):
            parse_from_sentences([])

    @pytest.mark.slow
    def test_tokens_of_every_treebank_are_found_in_their_text(self, data_dir: Path) -> None:
        for path in treebanks(data_dir):
            for sentence in islice(read_conllu(path), 400):
                parse = parse_from_sentences([sentence])
                spans = list(zip(parse.token_start, parse.token_end, strict=True))
                assert parse.text == sentence.text
                assert [parse.text[a:b] for a, b in spans] == [t.form for t in sentence.tokens]
                assert all(a[1] <= b[0] for a, b in pairwise(spans))


column = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), min_size=1, max_size=5
)
value = st.none() | column.filter(lambda text: text != "_")


@st.composite
def any_sentence(draw: st.DrawFn) -> Sentence:
    """A sentence with every part that CoNLL-U knows; the columns hold anything."""
    size = draw(st.integers(1, 8))
    cuts = sorted(draw(st.sets(st.integers(1, size), max_size=size)) | {0, size})
    words = tuple(
        Word(number, draw(column), *[draw(value) for _ in range(4)], draw(st.none() | heads(size)))
        for number in range(1, size + 1)
    )
    tokens = tuple(draw(any_token(words, first, last)) for first, last in pairwise(cuts))
    nodes = draw(st.lists(st.integers(0, size), max_size=3).map(sorted))
    empty_nodes = tuple(
        EmptyNode((word, nodes[:at].count(word) + 1), tuple(draw(column) for _ in range(9)))
        for at, word in enumerate(nodes)
    )
    comments = tuple(f"#{text}" for text in draw(st.lists(column, max_size=3)))
    return Sentence(words, tokens, comments, empty_nodes)


def heads(size: int) -> st.SearchStrategy[int]:
    return st.integers(0, size + 2)


@st.composite
def any_token(draw: st.DrawFn, words: tuple[Word, ...], first: int, last: int) -> Token:
    ids = tuple(range(first + 1, last + 1))
    if len(ids) == 1 and draw(st.booleans()):
        return Token(words[first].form, ids)
    return Token(draw(column), ids, *[draw(value) for _ in range(8)], span_line=len(ids) == 1)


@given(st.lists(any_sentence(), max_size=3))
def test_any_sentence_is_read_as_it_was_written(written: list[Sentence]) -> None:
    text = format_conllu(written)
    read = list(parse_conllu(text))
    assert read == written
    assert format_conllu(read) == text
