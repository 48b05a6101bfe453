"""What UDPipe itself answers, and requests as its clients send them."""

from __future__ import annotations

from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.policy import HTTP
from functools import cache
from typing import Any

import httpx
import ufal.udpipe
from hypothesis import strategies as st

from service.parsers import find_parser
from service.settings import Settings

FULL = {"tokenizer": "", "tagger": "", "parser": ""}

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@cache
def english_model() -> Any:
    """The bundled model, loaded by the library itself."""
    return ufal.udpipe.Model.load(
        str(find_parser(Settings(store="unused"), "udpipe/english-ewt").path)
    )


def tokenized(text: str, options: str, output: str, tag: bool = True, parse: bool = True) -> str:
    """Text through UDPipe's tokenizer, tagger, parser and writer."""
    return _through(english_model().newTokenizer(options), text, output, tag, parse)


def read(text: str, form: str, output: str, tag: bool = True, parse: bool = True) -> str:
    """Sentences through UDPipe's reader, tagger, parser and writer."""
    return _through(ufal.udpipe.InputFormat.newInputFormat(form), text, output, tag, parse)


def _through(reader: Any, text: str, output: str, tag: bool, parse: bool) -> str:
    writer = ufal.udpipe.OutputFormat.newOutputFormat(output)
    reader.setText(text)
    written = []
    sentence = ufal.udpipe.Sentence()
    while reader.nextSentence(sentence):
        assert not tag or english_model().tag(sentence, "")
        assert not parse or english_model().parse(sentence, "")
        written.append(writer.writeSentence(sentence))
    return "".join([*written, writer.finishDocument()])


def client_body(fields: dict[str, str]) -> tuple[bytes, str]:
    """Body and content type as UDPipe 2's own Python client makes them.

    It builds a MIME message with a text part per parameter under the policy of HTTP, and sends
    what follows the message's headers; every line break in the data thereby becomes CR LF.
    """
    message = MIMEMultipart("form-data", policy=HTTP)
    for name, value in fields.items():
        part = MIMENonMultipart("text", "plain")
        part.add_header("Content-Disposition", f'form-data; name="{name}"')
        part.add_header("Content-Transfer-Encoding", "8bit")
        part.set_payload(value, charset="utf-8")
        message.attach(part)
    body = message.as_bytes().split(b"\r\n\r\n", maxsplit=1)[1]
    return body, str(message["Content-Type"])


async def ask(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    """Send a request as UDPipe 2's client does."""
    body, content_type = client_body(fields)
    return await client.post("/api/process", content=body, headers={"Content-Type": content_type})


async def result(client: httpx.AsyncClient, **fields: str) -> str:
    """The result without the comments that name the service."""
    response = await client.post("/api/process", data=fields)
    assert response.status_code == 200, response.text
    return without_header(response.json()["result"])


def without_header(conllu: str) -> str:
    names = ("# generator = Parsebank", "# udpipe_model")
    return "".join(line for line in conllu.splitlines(True) if not line.startswith(names))
