"""The UDPipe backend: exact spans, three modes, length limits, real models."""

from __future__ import annotations

from pathlib import Path

import pytest
import ufal.udpipe
from hypothesis import given, settings
from hypothesis import strategies as st

from service.parsers import Limits, ModelFile, ParseInput, Parser, identify, load_parser
from service.parsers.surface import CONTINUED
from service.parsers.udpipe.backend import load_udpipe
from syntax import DependencyTree, Parse, read_conllu
from syntax.errors import ModelLoadError, NoSentenceError

LIMITS = Limits()


def raw(parser: Parser, text: str) -> Parse:
    return parser.parse(ParseInput("raw", text=text), LIMITS)


def slow_spans(model: ufal.udpipe.Model, text: str) -> list[tuple[str, int, int]]:
    """The twin: tokens and ranges from UDPipe's own CoNLL-U, parsed line by line."""
    tokenizer = model.newTokenizer("ranges")
    writer = ufal.udpipe.OutputFormat.newConlluOutputFormat()
    tokenizer.setText(text)
    sentence, found, skip = ufal.udpipe.Sentence(), [], 0
    while tokenizer.nextSentence(sentence):
        skip = 0
        for line in writer.writeSentence(sentence).splitlines():
            columns = line.split("\t")
            if line.startswith("#") or len(columns) < 10:
                continue
            if "-" in columns[0]:
                skip = int(columns[0].partition("-")[2])
            elif int(columns[0]) <= skip:
                continue
            span = next(part for part in columns[9].split("|") if part.startswith("TokenRange="))
            start, _, end = span.removeprefix("TokenRange=").partition(":")
            found.append((columns[1], int(start), int(end)))
        sentence = ufal.udpipe.Sentence()
    return found


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60))
def test_any_text_parses_with_tiled_spans_or_has_no_word(english: Parser, text: str) -> None:
    for mode in ("raw", "sentence"):
        try:
            parse = english.parse(ParseInput(mode, text=text), LIMITS)
        except NoSentenceError:
            assert text.split() == [] or not text.isprintable()
            continue
        assert len(parse.sentence_start) == 1 or mode == "raw"
        for first, end in parse.word_ranges():
            DependencyTree(parse.head[first:end], ["_"] * (end - first))


@pytest.mark.slow
def test_tokens_agree_with_those_in_udpipes_own_output(english: Parser, data_dir: Path) -> None:
    model = ufal.udpipe.Model.load(str(data_dir / "models/udpipe/english-ewt-small.udpipe"))
    path = data_dir / "models/udpipe/english-ewt-small.udpipe"
    model_file = ModelFile("udpipe.v1", "udpipe/english-ewt-small", path, ("en",))
    parser = load_udpipe(model_file, english.identity, "auto")
    treebank = data_dir / "treebanks/UD_English-EWT/en_ewt-ud-test.conllu"
    texts = [sentence.text for sentence, _ in zip(read_conllu(treebank), range(150), strict=False)]
    for text in [" ".join(texts[at : at + 5]) for at in range(0, 150, 5)]:
        parse = raw(parser, text)
        spans = zip(parse.token_start, parse.token_end, strict=True)
        assert [(text[a:b], a, b) for a, b in spans] == slow_spans(model, text)


def test_multiword_tokens_split_their_span_where_the_forms_spell_it(english: Parser) -> None:
    parse = raw(english, "I can't.")
    assert parse.form == ["I", "ca", "n't", "."]
    assert list(zip(parse.word_start, parse.word_end, strict=True)) == [
        (0, 1), (2, 4), (4, 7), (7, 8),
    ]  # fmt: skip
    assert parse.token_first_word == [0, 1, 3]


@pytest.mark.parametrize("name", ["coptic-scriptorium", "telugu-mtg", "maltese-mudt"])
def test_other_models_parse_their_treebank(data_dir: Path, name: str) -> None:
    (path,) = (data_dir / "models/udpipe").glob(f"{name}*.udpipe")
    parser = load_parser(ModelFile("udpipe.v1", f"udpipe/{name}", path, ()))
    for text in ("ⲁⲩⲱ ⲡⲉϫⲁϥ ⲛⲁⲩ.", "నేను వస్తాను.", "Il-kelb qed jiekol l-ikel.", "_ __ a_b _"):
        assert raw(parser, text).word_count > 0


def test_empty_columns_are_none(english: Parser) -> None:
    parse = raw(english, "It works.")
    assert parse.lemma == [None] * 3 or all(parse.lemma)
    assert None not in parse.upos
    assert "" not in [*parse.xpos, *parse.feats, *parse.deprel]


def test_raw_mode_joins_what_udpipes_tokenizer_cut_only_for_length(english: Parser) -> None:
    text = "One. " + "word " * 700 + "\n\nA paragraph."
    parse = raw(english, text)
    lengths = [end - first for first, end in parse.word_ranges()]
    assert max(lengths) >= 700
    spans = list(zip(parse.word_start, parse.word_end, strict=True))
    assert [text[start:end] for start, end in spans] == parse.form


@pytest.mark.slow
def test_a_long_run_is_cut_at_the_limit_and_not_where_udpipe_gave_up(english: Parser) -> None:
    text = "  One. " + "word " * 2300 + "\n\nA paragraph."
    item = ParseInput("raw", text, None, "split")
    parse = english.parse(item, Limits(max_words_per_sentence=900))
    lengths = [end - first for first, end in parse.word_ranges()]
    assert lengths == [2, 900, 900, 500, 3]
    assert parse.misc is not None
    assert sum(entry == CONTINUED for entry in parse.misc) == 2
    spans = list(zip(parse.word_start, parse.word_end, strict=True))
    assert [text[start:end] for start, end in spans] == parse.form
    assert "".join(parse.form) == "".join(text.split())


def test_words_of_multiword_tokens_are_parsed_as_given_words_are(english: Parser) -> None:
    tokens = ("Dr.", "Smith", "can't", "find", "New York")
    parse = english.parse(ParseInput("tokens_mwt", tokens=tokens), LIMITS)
    assert parse.form == ["Dr.", "Smith", "ca", "n't", "find", "New York"]
    given = english.parse(ParseInput("pretokenized", tokens=tuple(parse.form)), LIMITS)
    assert (parse.head, parse.deprel, parse.upos) == (given.head, given.deprel, given.upos)
    assert (parse.word_start[2:4], parse.word_end[2:4]) == ([10, 12], [12, 15])


def test_a_paragraph_break_after_five_hundred_words_is_kept(english: Parser) -> None:
    text = "word " * 500 + "\n\n" + "word " * 300
    parse = raw(english, text)
    assert [end - first for first, end in parse.word_ranges()] == [500, 300]


def test_corrupt_models_are_named_errors(tmp_path: Path, bundled: Path) -> None:
    whole = bundled.read_bytes()
    faults = {
        "empty": b"",
        "garbage": b"not a model" * 1000,
        "truncated": whole[: len(whole) // 2],
        "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    }
    for name, content in faults.items():
        path = tmp_path / f"english-{name}.udpipe"
        path.write_bytes(content)
        with pytest.raises(ModelLoadError):
            load_parser(ModelFile("udpipe.v1", f"udpipe/{name}", path, ("en",)))


def test_a_model_file_that_vanished_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="missing"):
        identify(ModelFile("udpipe.v1", "udpipe/gone", tmp_path / "gone.udpipe", ()))
