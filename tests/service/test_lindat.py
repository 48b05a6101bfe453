"""The UDPipe REST API: requests as its clients send them, answers as UDPipe gives them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.lindat.documents import cut_lines, cut_text
from service.lindat.fields import read_fields
from service.lindat.request import Tokenizer
from service.lindat.sentences import Placed, Shown, tokenized, write
from service.parsers import Limits, ParseInput, Parser
from syntax import Parse, Sentence, parse_conllu, read_conllu
from syntax.errors import NoSentenceError
from syntax.trees.spacing import attribute

from . import lindat_reference as udpipe
from .lindat_reference import CHARACTERS, FULL, ask, result, without_header

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARSERS = {"en": "udpipe/english-ewt"}
TEXT = "Don't panic, Zoë! 日本\nIt works.\n\n  A new  paragraph:\ttabs | and \\ bars.\r\n"
NASTY = [
    TEXT,
    " x\u200b  y \u200b z. \u200b New",
    " a\r\n\r\nb\r\rc\x0bd \x85 e\u2028f. G",
    "don't.  Can't\n\n\ncannot",
    "😀👩‍👩‍👧‍👦 \u00e9\ufeff \u200f!",
    "\xa0\u3000x\xa0.\xa0Y",
    "日本語です。これは\n\nไทย ภาษา\n\n\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627.",
    "a.b.c http://x.y/z?q=1#u (a)\n-b-\n\n*c*",
]
GIVEN = """# newdoc id = d1
# sent_id = s-1
# text = I can't. Really
# note = kept
1\tI\tI\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\tA=1
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tcan\tcan\tAUX\tMD\t_\t0\troot\t0:root\t_
3\tnot\tnot\tPART\tRB\t_\t2\tadvmod\t2:advmod\t_
3.1\tgo\tgo\tVERB\t_\t_\t_\t_\t2:conj\t_
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t2:punct\t_

# sent_id = s-2
1\tNew York\t_\t_\t_\t_\t_\t_\t_\t_

"""


async def test_models_are_listed_with_their_components(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/api/models")).json()
    components = ["tokenizer", "tagger", "parser"]
    models = dict.fromkeys(("english", "english-ewt"), components)
    assert answer == {"models": models, "default_model": "english-ewt"}


async def test_the_result_says_what_made_it(client: httpx.AsyncClient) -> None:
    response = await client.post("/api/process", data={"data": "Yes.", **FULL})
    first, second, third = response.json()["result"].splitlines()[:3]
    assert first.startswith("# generator = Parsebank ")
    assert second == "# udpipe_model = english-ewt"
    assert third == "# udpipe_model_licence = CC BY-SA 4.0"
    horizontal = {"data": "Yes.", "output": "horizontal", **FULL}
    response = await client.post("/api/process", data=horizontal)
    assert response.json()["result"] == "Yes .\n"


async def test_every_way_to_send_gets_what_udpipe_answers(client: httpx.AsyncClient) -> None:
    data = TEXT.replace("\r\n", "\n").replace("\n", "\r\n")
    fields = {"data": data, "model": "english-ewt", **FULL}
    files = {name: (None, value) for name, value in fields.items()}
    upload = {**files, "data": ("book.txt", data.encode(), "application/octet-stream")}
    bare = "/api/process?tokenizer&tagger&parser"
    answers = [
        await ask(client, **fields),
        await client.get("/api/process", params=fields),
        await client.get(f"{bare}&{httpx.QueryParams(data=data)}"),
        await client.post("/api/process", data=fields),
        await client.post("/api/process", files=files),
        await client.post("/api/process", files=upload),
        await client.post(bare, data={"data": data}),
        await client.post("/api/process", params=fields | {"data": "other"}, data={"data": data}),
    ]
    assert [answer.status_code for answer in answers] == [200] * len(answers)
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].headers["content-type"] == "application/json"
    answer = answers[0].json()
    assert answer["model"] == "english-ewt"
    assert any("CC BY-SA" in line for line in answer["acknowledgements"])
    assert without_header(answer["result"]) == udpipe.tokenized(data, "", "conllu")


@pytest.mark.parametrize("output", ["conllu", "horizontal", "vertical", "plaintext", "matxin"])
@pytest.mark.parametrize(
    "options", ["", "ranges", "normalized_spaces", "presegmented", "presegmented;ranges"]
)
async def test_tokenized_text_is_as_udpipe_writes_it(
    client: httpx.AsyncClient, options: str, output: str
) -> None:
    for text in NASTY:
        ours = await result(
            client, data=text, tagger="", parser="", tokenizer=options, output=output
        )
        assert ours == udpipe.tokenized(text, options, output), text


@pytest.mark.parametrize(
    "output", ["conllu=v1", "horizontal=paragraphs", "plaintext=normalized_spaces", "epe"]
)
async def test_output_formats_have_options(client: httpx.AsyncClient, output: str) -> None:
    ours = await result(client, data=TEXT, output=output, **FULL)
    assert ours == udpipe.tokenized(TEXT, "", output)


@pytest.mark.slow
async def test_a_part_of_a_treebank_is_as_udpipe_writes_it(
    client: httpx.AsyncClient, data_dir: Path
) -> None:
    (path,) = (data_dir / "treebanks" / "UD_English-EWT").glob("*dev.conllu")
    parts = []  # as it stood on the page, paragraphs between blank lines
    for sentence in islice(read_conllu(path), 600):
        if any(line.startswith(("# newpar", "# newdoc")) for line in sentence.comments):
            parts.append("\n\n")
        parts.append(sentence.spelled_out())
    text = "".join(parts)
    for options in ("", "ranges", "normalized_spaces", "presegmented"):
        ours = await result(client, data=text, tagger="", parser="", tokenizer=options)
        assert ours == udpipe.tokenized(text, options, "conllu")


@pytest.mark.parametrize(
    ("tagger", "parser"), [(True, True), (True, False), (False, True), (False, False)]
)
async def test_only_the_columns_asked_for_are_filled(
    client: httpx.AsyncClient, tagger: bool, parser: bool
) -> None:
    fields = {"tagger": "" if tagger else "none"} | ({"parser": ""} if parser else {})
    ours = await result(client, data="I can't go.", tokenizer="", **fields)
    assert ours == udpipe.tokenized("I can't go.", "", "conllu", tagger, parser)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("horizontal", "I ca n't wait .\nNew\u00a0York is big\n\nThird\n"),
        ("vertical", "I\nca\tx\nn't\n\nNew York\nis\n\n\nThird\r\n"),
        ("generic_tokenizer", TEXT),
        ("generic_tokenizer=ranges;presegmented", TEXT),
        ("conllu", GIVEN),
        ("conllu", GIVEN.replace("\n", "\r\n")),
        ("conllu=v2", GIVEN),
    ],
)
async def test_data_with_tokens_is_annotated_as_by_udpipe(
    client: httpx.AsyncClient, form: str, data: str
) -> None:
    for tag, parse in ((True, True), (True, False), (False, False)):
        fields = ({"tagger": ""} if tag else {}) | ({"parser": ""} if parse else {})
        ours = await result(client, data=data, input=form, **fields)
        assert ours == udpipe.read(data, form, "conllu", tag, parse)


TAGGED = """# sent_id = 1
1\tTime\ttime\tVERB\tVB\tVerbForm=Inf\t_\t_\t_\t_
2\tflies\tfly\tNOUN\tNNS\tNumber=Plur\t_\t_\t_\t_
3\tlike\tlike\tADP\tIN\t_\t_\t_\t_\t_
4\tarrows\tarrow\tNOUN\tNNS\tNumber=Plur\t_\t_\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t_\t_\t_\t_

"""


async def test_a_parser_alone_follows_the_tags_that_are_given(client: httpx.AsyncClient) -> None:
    other = TAGGED.replace("VERB\tVB\tVerbForm=Inf", "NOUN\tNN\tNumber=Sing")
    found = set()
    for data in (TAGGED, other, GIVEN, TAGGED + other):
        ours = await result(client, data=data, input="conllu", parser="")
        assert ours == udpipe.read(data, "conllu", "conllu", tag=False)
        found.add(ours)
    assert len(found) == 4
    for text in NASTY:  # of running text there are none
        ours = await result(client, data=text, tokenizer="", parser="")
        assert ours == udpipe.tokenized(text, "", "conllu", tag=False)
    words = {"tokens": [["Time", "flies", "like", "arrows", "."]], "store": False}
    (item,) = (await client.post("/parse", json=words)).json()["items"]
    assert not item["cached"]  # nothing of it is in the store


async def test_a_form_is_decoded_as_browsers_encode_it() -> None:
    fields = {"data": "a+b c&d=%41 é\r\n日本%", "tokenizer": "", "x y": "z"}
    encoded = urlencode(fields).encode()
    assert read_fields(encoded, "", b"") == fields
    assert read_fields(b"data=query&q", "application/x-www-form-urlencoded", encoded) == {
        **fields,
        "q": "",
    }
    raw = "data=é%C3%A9%4g&&b".encode()
    assert read_fields(raw, "", b"") == {"data": "éé%4g", "b": ""}


async def test_offsets_count_the_composed_text(client: httpx.AsyncClient) -> None:
    data = "Cafe\u0301 e\u0301."
    conllu = await result(client, data=data, tokenizer="ranges")
    assert conllu == udpipe.tokenized(unicodedata.normalize("NFC", data), "ranges", "conllu", 0, 0)


async def test_the_length_of_the_words_is_announced(client: httpx.AsyncClient) -> None:
    response = await ask(client, data="I can't. Zoë", **FULL)
    assert response.headers["x-billing-input-nfc-len"] == str(len("I") + len("can't.") + len("Zoë"))


@pytest.mark.parametrize("data", ["", " \n\n\t", "\r\n"])
async def test_lindat_answers_empty_text(client: httpx.AsyncClient, data: str) -> None:
    for fields in (FULL, {"tokenizer": "presegmented"}, {"input": "horizontal", "tagger": ""}):
        response = await client.post("/api/process", data={"data": data, **fields})
        assert response.status_code == 200
        assert response.json()["result"] == ""


async def test_parses_are_those_of_every_other_route(client: httpx.AsyncClient) -> None:
    text = "A text that both interfaces see."
    await result(client, data=text, **FULL)
    (item,) = (await client.post("/parse", json={"text": text})).json()["items"]
    assert item["cached"]


@pytest.mark.slow
async def test_a_long_sentence_in_running_text_is_cut_and_marked(client: httpx.AsyncClient) -> None:
    conllu = await result(client, data="It works. " + "word " * 2_500, **FULL)
    sentences = list(parse_conllu(conllu))
    lengths = [len(sentence.words) for sentence in sentences]
    assert sum(lengths) == 2_503
    assert max(lengths) == 1_000
    assert conllu.count("ContinuedSentence=Yes") == len(sentences) - 2


@pytest.mark.slow
async def test_a_book_is_parsed_by_its_paragraphs(serve: Callable[..., Any]) -> None:
    paragraph = "It works. I can't wait!\nTime flies like an arrow.\n \n"
    book = "".join(f"{number} {paragraph}" for number in range(200))
    async with serve(
        max_chars_per_text=1_000, max_queued_words=800, workers=1, job_workers=0
    ) as client:
        conllu = await result(client, data=book, **FULL | {"tokenizer": "ranges"})
        plain = await result(client, data=book, output="plaintext", **FULL)
        (whole,) = (await client.post("/parse", json={"text": book})).json()["items"]
        too_long = await client.post("/api/process", data={"data": "word " * 300, **FULL})
    assert whole["error"]["error_type"] == "text_too_long"
    assert plain == book
    sentences = list(parse_conllu(conllu))
    assert [sentence.sent_id for sentence in sentences] == [
        str(number) for number in range(1, len(sentences) + 1)
    ]
    assert conllu.count("# newpar") == 200
    assert all(book[start:end] == form for form, start, end in ranges(sentences))
    assert too_long.status_code == 400
    assert "1500 characters" in too_long.text


def ranges(sentences: list[Sentence]) -> Iterator[tuple[str, int, int]]:
    """Form and character span of every token."""
    for sentence in sentences:
        for token in sentence.tokens:
            start, end = attribute(sentence.misc_of(token), "TokenRange").split(":")
            yield token.form, int(start), int(end)


WORDS = st.sampled_from(
    ["can't", "It", "works", ".", "\n", "\r\n", "\n\n", " ", "\t", "\u200b", "|"]
)


@given(st.lists(st.text(CHARACTERS, max_size=5) | WORDS, max_size=25).map("".join))
@settings(max_examples=60)
async def test_any_text_is_spaced_as_udpipe_spaces_it(english: Parser, text: str) -> None:
    for names in ((), ("presegmented", "ranges"), ("normalized_spaces",)):
        options = Tokenizer(**dict.fromkeys(names, True))
        parts = list(cut_lines(text) if options.presegmented else cut_text(text, 10_000))
        placed = [
            Placed(part.start, parse) for part in parts if (parse := found(english, part.item))
        ]
        ours = write(tokenized(text, placed, options, Shown(True, True)), "conllu")
        assert ours == udpipe.tokenized(text, ";".join(names), "conllu")


def found(parser: Parser, item: ParseInput) -> Parse | None:
    """The parse of a text; none if there is no word in it."""
    try:
        return parser.parse(item, Limits())
    except NoSentenceError:
        return None
