"""What can be fetched: the official models, or those of a mirror.

The names of the official UDPipe models are data of this package (``resources/catalogue``); Stanza's
list is fetched from where Stanza keeps it. A mirror is a models folder, as ``pull`` makes it,
copied to a disk or served by any web server: its registry file says what it offers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any, Final

from service.models.download import Downloader, is_url
from service.models.stanza import FOLDER, read_resources, resources_version, stanza_records
from service.parsers.discovery import split_version
from service.parsers.languages import language_code
from service.parsers.records import FILE_NAME, ModelRecord, parse_records
from service.parsers.stanza.packages import RESOURCES
from syntax.errors import DownloadError, SpecError, UnknownParserError
from syntax.strict_json import parse_json

_SHOWN: Final = 12


class AmbiguousModelError(SpecError):
    """Several models could be meant; the message lists them."""


@dataclass(frozen=True)
class Offer:
    """A model that can be fetched.

    Attributes:
        record: What is known about it.
        sources: For each of its files, where it can be fetched from.
    """

    record: ModelRecord
    sources: tuple[tuple[str, ...], ...]


def offers_for(name: str, source: str | None, downloader: Downloader) -> list[Offer]:
    """The offers among which a name is to be looked up.

    Without a mirror, only names that begin with ``stanza/`` make Stanza's list be fetched.

    Raises:
        DownloadError: A list cannot be fetched.
        MissingExtraError: A Stanza model is requested, and Stanza is not installed.
    """
    if source is not None:
        return mirror_offers(source, downloader)
    if name.lower().startswith("stanza/"):
        return stanza_offers(downloader)
    return udpipe_offers()


def udpipe_offers(source: str | None = None) -> list[Offer]:
    """The UDPipe models that this package knows by name, from their archive or a plain copy."""
    text = _resource("udpipe.json")
    urls = parse_json(text)["urls"]
    if source is not None:
        urls = [join(source, "{file}"), join(source, "udpipe/{file}")]
    return [
        Offer(record, tuple(_filled(urls, file.path) for file in record.files))
        for record in parse_records(text, "udpipe.json").values()
    ]


def stanza_offers(downloader: Downloader, url: str | None = None) -> list[Offer]:
    """Stanza's own packages, for the Stanza that is installed.

    Args:
        downloader: Fetches the list.
        url: Where the list is, with ``{version}`` for that of its format; by default Stanza's own.

    Raises:
        MissingExtraError: Stanza is not installed.
        DownloadError: The list cannot be fetched.
    """
    official = parse_json(_resource("stanza.json"))
    version = resources_version()
    where = (url or official["url"]).replace("{version}", version)
    text = downloader.fetch_text(where)
    if text is None:
        raise DownloadError(f"there is no list of Stanza's models at {where}", url=where)
    resources = read_resources(text, where)
    template = str(resources.get("url", ""))
    return [
        Offer(record, tuple(_stanza_url(template, version, file.path) for file in record.files))
        for record in stanza_records(resources, version, official["licence"])
    ]


def mirror_offers(source: str, downloader: Downloader) -> list[Offer]:
    """What a mirror offers: what its registry file says, else what it seems to be a copy of.

    Args:
        source: URL or path of a models folder, of a Stanza folder, or of a folder of UDPipe's
            files.
        downloader: Fetches the lists.

    Raises:
        DownloadError: The mirror cannot be reached.
        ModelLoadError: Its registry file cannot be read.
    """
    where = join(source, FILE_NAME)
    if (text := downloader.fetch_text(where)) is not None:
        return [
            Offer(record, tuple((join(source, file.path),) for file in record.files))
            for record in parse_records(text, where).values()
        ]
    return [*_stanza_copy(source, downloader), *udpipe_offers(source)]


def choose(offers: Sequence[Offer], name: str) -> Offer:
    """The offer for a full name, the beginning of one, or a language code.

    Of several versions of one model the newest is taken.

    Raises:
        AmbiguousModelError: Several models could be meant.
        UnknownParserError: None.
    """
    for matches in _matchers(name.lower()):
        found = _newest(offer for offer in offers if matches(offer.record))
        if len(found) == 1:
            return found[0]
        if found:
            names = [offer.record.name for offer in found]
            raise AmbiguousModelError(
                f"{name!r} may be {_listed(names)}; give one name in full", candidates=names
            )
    known = [offer.record.name for offer in offers]
    near = get_close_matches(name.lower(), [*known, *map(_short, known)], n=3)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UnknownParserError(
        f"there is no model {name!r} to fetch. {hint}`parsebank models list --remote` lists what "
        "there is; Stanza's packages are named stanza/...",
        name=name,
        near=near,
    )


def join(source: str, path: str) -> str:
    """A path under a URL or a folder."""
    return f"{source.rstrip('/')}/{path}" if source != "/" or is_url(source) else f"/{path}"


def _matchers(wanted: str) -> Iterator[Callable[[ModelRecord], bool]]:
    """Ways to match a name, the strictest first."""
    family, slash, rest = wanted.rpartition("/")
    code = language_code(rest)

    def within(matches: Callable[[str, ModelRecord], bool]) -> Callable[[ModelRecord], bool]:
        def match(record: ModelRecord) -> bool:
            found, _, short = record.name.lower().partition("/")
            return (not slash or found == family) and matches(short, record)

        return match

    if slash:
        yield within(lambda short, _: short in (rest, code))
    yield within(lambda _, record: language_code(record.language or "") == code)
    yield within(lambda short, _: short == rest)
    yield within(lambda short, _: split_version(short)[0] == rest)
    yield within(lambda short, _: short.startswith(f"{rest}-"))
    yield within(lambda short, _: bool(rest) and short.startswith(rest))


def _newest(offers: Iterable[Offer]) -> list[Offer]:
    """One offer per model: that of its newest version."""
    newest: dict[str, Offer] = {}
    for offer in offers:
        base, version = split_version(offer.record.name)
        before = newest.get(base)
        if before is None or version > split_version(before.record.name)[1]:
            newest[base] = offer
    return list(newest.values())


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} or {more} more" if more > 0 else shown


def _short(name: str) -> str:
    return name.partition("/")[2]


def _resource(name: str) -> str:
    return (files("service") / "resources" / "catalogue" / name).read_text(encoding="utf-8")


def _filled(urls: Iterable[str], path: str) -> tuple[str, ...]:
    return tuple(url.replace("{file}", PurePosixPath(path).name) for url in urls)


def _stanza_url(template: str, version: str, path: str) -> tuple[str, ...]:
    _, lang, filename = path.split("/", 2)
    filled = template.replace("{resources_version}", version)
    return (filled.replace("{lang}", lang).replace("{filename}", filename),)


def _stanza_copy(source: str, downloader: Downloader) -> list[Offer]:
    """Offers of a copied Stanza folder: the files lie beside its ``resources.json``."""
    for root in (source, join(source, FOLDER)):
        where = join(root, RESOURCES)
        text = downloader.fetch_text(where)
        if text is not None:
            records = stanza_records(read_resources(text, where), None, None)
            return [_beside(record, root) for record in records]
    return []


def _beside(record: ModelRecord, root: str) -> Offer:
    paths: list[Any] = [file.path.partition("/")[2] for file in record.files]
    return Offer(record, tuple((join(root, path),) for path in paths))
