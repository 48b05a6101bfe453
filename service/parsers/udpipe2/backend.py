"""A UDPipe 2 service as a parser, by LINDAT's REST API.

A model is a file ``NAME.udpipe2``, a card with the service's ``url`` and its ``model``. Texts are
sent to this address alone, also where the service redirects elsewhere.

UDPipe's tokenizer cuts a text differently after another one, so that each text is tokenized in a
request of its own. Tagger and parser read sentences one by one: those of many texts are in one
request.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    attempt,
)
from service.parsers.bulk import BulkParser
from service.parsers.columns import Annotation, Columns
from service.parsers.languages import language_of
from service.parsers.records import model_card
from service.parsers.surface import Surface, joined_surface, with_words, within_limit
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError, UnparsableTextError, WorkError
from syntax.strict_json import parse_json

if TYPE_CHECKING:
    import httpx

BACKEND: Final = "udpipe2.v1"
FAMILY: Final = "udpipe2"

ANSWER_SECONDS: Final = 120.0
CONNECT_SECONDS: Final = 10.0

_RANGE: Final = re.compile(r"(?:^|\|)TokenRange=(\d+):(\d+)(?:\||$)")
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_SEPARATOR: Final = re.compile(r"[\t\r\n]")
_COLUMNS: Final = 10

_Row = list[str]
_Draft = tuple[list[str], Surface]
"""Forms of the words of a sentence, and its tokens."""


class RemoteParserError(WorkError):
    """A parser's service cannot be reached, or answers something else than parses."""


class UdpipeServiceParser(BulkParser):
    """A model of a UDPipe 2 service; ``url`` is that of its API, without ``/process``."""

    lot_words = 2_000  # in one request; LINDAT refuses bodies of some megabytes
    lot_texts = lot_words

    def __init__(self, url: str, model: str, identity: ParserIdentity) -> None:
        super().__init__(identity)
        self._url = url.rstrip("/")
        self._model = model

    def _together(self, items: Sequence[ParseInput], limits: Limits) -> list[Outcome]:
        try:
            return self._answered(items, limits.max_words_per_sentence)
        except RemoteParserError as error:  # no text's fault: a job tries again
            return [error] * len(items)

    def _answered(self, items: Sequence[ParseInput], limit: int) -> list[Outcome]:
        drafts = [self._drafted(item, limit) for item in items]
        sound = [forms for draft in drafts if isinstance(draft, list) for forms, _ in draft]
        answers = iter(self._analysed(sound) if sound else ())
        return [
            draft
            if isinstance(draft, ParsebankError)
            else attempt(_finished, item, [(one, next(answers)) for one in draft])
            for item, draft in zip(items, drafts, strict=True)
        ]

    def _drafted(self, item: ParseInput, limit: int) -> list[_Draft] | ParsebankError:
        try:
            return [piece for draft in self._found(item) for piece in _pieces(item, draft, limit)]
        except RemoteParserError:
            raise
        except ParsebankError as error:
            return error

    def _found(self, item: ParseInput) -> list[_Draft]:
        if item.mode == "raw":
            return self._tokenized(item.joined, "ranges")
        if item.mode == "pretokenized" and item.tokens is not None:
            return [(list(item.tokens), joined_surface(item.tokens))]
        # Line breaks are shown to UDPipe as spaces, 1:1.
        one = self._tokenized(_LINE_BREAK.sub(" ", item.joined), "ranges;presegmented")
        if item.mode == "tokens_mwt" and item.tokens is not None:
            return [with_words(item.tokens, one)]
        return one

    def _tokenized(self, text: str, options: str) -> list[_Draft]:
        found = [_draft(rows) for rows in self._ask(data=text, tokenizer=options)]
        spans = [span for _, tokens in found for span in zip(tokens.start, tokens.end, strict=True)]
        in_order = all(before[1] <= after[0] for before, after in pairwise(spans))
        if not in_order or any(not 0 <= start < end <= len(text) for start, end in spans):
            raise RemoteParserError(f"{self._url} answers ranges of tokens that are not the text's")
        return found

    def _analysed(self, sentences: Sequence[Sequence[str]]) -> list[Annotation | ParsebankError]:
        """Tag and parse sentences of given words."""
        rest = "\t_" * (_COLUMNS - 2)
        blocks = (
            "".join(
                f"{at}\t{_SEPARATOR.sub(' ', form)}{rest}\n" for at, form in enumerate(forms, 1)
            )
            for forms in sentences
        )
        data = "".join(f"{block}\n" for block in blocks)
        answers = self._ask(data=data, input="conllu", tagger="", parser="")
        if len(answers) != len(sentences):
            raise RemoteParserError(
                f"{self._url} answers {len(answers)} sentences for {len(sentences)}"
            )
        return [
            attempt(self._annotation, forms, [row for row in rows if row[0].isdecimal()])
            for forms, rows in zip(sentences, answers, strict=True)
        ]

    def _annotation(self, forms: Sequence[str], rows: Sequence[_Row]) -> Annotation:
        if [_plain(row[1]) for row in rows] != [*map(_plain, forms)]:
            raise UnparsableTextError(
                f"{self._identity.name} answers {len(rows)} words, not the {len(forms)} that it "
                "was sent; leave the text out, or use another parser",
                parser=self._identity.name,
            )
        _, _, lemma, upos, xpos, feats, head, deprel, _, _ = map(list, zip(*rows, strict=True))
        if not all(map(str.isdecimal, head)):
            raise RemoteParserError(f"{self._model} of {self._url} gives no heads; use another")
        return Annotation(list(forms), lemma, upos, xpos, feats, [*map(int, head)], deprel)

    def _ask(self, **fields: str) -> list[list[_Row]]:
        """The sentences of an answer, as rows of CoNLL-U."""
        url = f"{self._url}/process"
        data = {"model": self._model, **fields}
        return self._sentences(ask(self._client, "POST", url, "result", data))

    def _sentences(self, answer: dict[str, Any]) -> list[list[_Row]]:
        if answer.get("model") != self._model:
            raise RemoteParserError(
                f"{self._url} answers with the model {answer.get('model')!r} for {self._model!r}; "
                "add the model that it has now (`parsebank models add`)"
            )
        blocks = str(answer["result"]).split("\n\n")
        found = [
            [line.split("\t") for line in block.split("\n") if line and line[0] != "#"]
            for block in blocks
        ]
        if any(len(row) != _COLUMNS for rows in found for row in rows):
            raise RemoteParserError(f"{self._url} does not answer CoNLL-U")
        return [rows for rows in found if rows]

    @cached_property
    def _client(self) -> httpx.Client:
        """Made at the first text: a model is loaded before its workers are forked."""
        client = open_service()
        weakref.finalize(self, client.close)
        return client


def open_service() -> httpx.Client:
    """A client that follows no redirection; proxies are those of the environment."""
    import httpx

    timeouts = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    return httpx.Client(timeout=timeouts, headers={"User-Agent": "parsebank"})


def ask(
    client: httpx.Client, method: str, url: str, key: str, data: dict[str, str] | None = None
) -> dict[str, Any]:
    """The JSON object that an address answers, which has a key."""
    import httpx

    try:
        response = client.request(method, url, data=data)
    except httpx.TimeoutException as error:
        raise RemoteParserError(
            f"{url} took too long to answer ({type(error).__name__}); try again later"
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RemoteParserError(f"{url} cannot be reached: {error}") from None
    if response.status_code != 200:
        said = " ".join(response.text.split())[:200]
        raise RemoteParserError(
            f"{url} answers {response.status_code} {response.reason_phrase}: {said}",
            status=response.status_code,
        )
    try:
        answer = parse_json(response.text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or key not in answer:
        raise RemoteParserError(
            f"{url} is not of the API of a UDPipe service: its answer has no {key!r}"
        )
    return answer


def find_services(folder: Path) -> Iterator[ModelFile]:
    for path in sorted(folder.glob(f"*.{FAMILY}")):
        card: dict[str, Any] = {}
        problem = None
        try:
            card = model_card(path)
            _address(path, card)
        except ModelLoadError as error:
            problem = error.message
        lang = card.get("language") or language_of(path.stem)
        langs = (lang,) if lang else ()
        yield ModelFile(BACKEND, f"{FAMILY}/{path.stem}", path, langs, None, card, problem=problem)


def load_service(model: ModelFile, identity: ParserIdentity, device: str) -> UdpipeServiceParser:  # noqa: ARG001 - it runs elsewhere
    return UdpipeServiceParser(*_address(model.path, model_card(model.path)), identity)


def _address(path: Path, card: dict[str, Any]) -> tuple[str, str]:
    url, model = card.get("url"), card.get("model")
    if not (isinstance(url, str) and url.startswith(("http://", "https://"))):
        raise ModelLoadError(
            f"{path} names no service: `url` is {url!r}; expected https://HOST/PATH",
            path=str(path),
        )
    if not (isinstance(model, str) and model):
        raise ModelLoadError(
            f"{path} names no model: `model` is {model!r}; expected a name as {url} gives it",
            path=str(path),
        )
    return url, model


UDPIPE_SERVICE: Final = Backend(
    FAMILY, find_services, lambda: "1", load_service, bulk=True, remote=True
)


def _pieces(item: ParseInput, draft: _Draft, limit: int) -> Iterator[_Draft]:
    forms, surface = draft
    first = 0
    for piece in within_limit(item.joined, surface, limit, item.long_sentences):
        yield forms[first : first + piece.word_count], piece
        first += piece.word_count


def _draft(rows: Sequence[_Row]) -> _Draft:
    """Words and tokens of a tokenized sentence; words of a multiword token have no range."""
    forms: list[str] = []
    start: list[int] = []
    end: list[int] = []
    counts: list[int] = []
    covered = 0
    for name, form, *_, misc in rows:
        first, _, last = name.partition("-")
        if not last:
            forms.append(form)
        if int(last or first) <= covered:
            continue
        span = _RANGE.search(misc)
        if span is None:
            raise RemoteParserError(f"a token has no TokenRange, but {misc!r}; is it UDPipe 2?")
        start.append(int(span[1]))
        end.append(int(span[2]))
        counts.append(int(last or first) - int(first) + 1)
        covered = int(last or first)
    return forms, Surface(start, end, counts)


def _finished(
    item: ParseInput, sentences: Sequence[tuple[_Draft, Annotation | ParsebankError]]
) -> Parse:
    columns = Columns(item.joined)
    for (_, surface), words in sentences:
        if isinstance(words, ParsebankError):
            raise words
        columns.add(surface, words)
    return columns.parse()


def _plain(form: str) -> str:
    """A form without spaces, which UDPipe may trim, or write as another character."""
    return "".join(form.split())
