"""Models to fetch: the official ones, or those of a mirror.

The names of UDPipe models are data of this package; Stanza's list is fetched. A mirror is a models
folder, as ``pull`` makes it, copied to a disk or served by any web server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from typing import Final

from service.models.download import Downloader, is_url
from service.models.stanza import FOLDER, read_resources, resources_version, stanza_records
from service.parsers.discovery import split_version
from service.parsers.languages import language_code
from service.parsers.records import FILE_NAME, ModelRecord, RecordedFile, parse_records
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
        templates: URLs or paths of its files, tried in turn. ``{path}`` stands for the path in a
            models folder, ``{file}`` for its last part; of ``stanza/fr/pos/partut.pt``, ``{lang}``
            is ``fr`` and ``{filename}`` the rest, as in Stanza's own list.
    """

    record: ModelRecord
    templates: tuple[str, ...]

    def sources(self, file: RecordedFile) -> list[str]:
        _, _, inner = file.path.partition("/")
        lang, _, filename = inner.partition("/")
        parts = {"path": file.path, "file": file.path.rpartition("/")[2]}
        parts |= {"lang": lang, "filename": filename}
        found = []
        for source in self.templates:
            for key, part in parts.items():
                source = source.replace(f"{{{key}}}", part)
            found.append(source)
        return found


def offers_for(name: str, source: str | None, downloader: Downloader) -> list[Offer]:
    """Offers to look a name up in; only names that begin with ``stanza/`` need Stanza's list."""
    if source is not None:
        return mirror_offers(source, downloader)
    if name.lower().startswith("stanza/"):
        return stanza_offers(downloader)
    return udpipe_offers()


def udpipe_offers(source: str | None = None) -> list[Offer]:
    text = _resource("udpipe.json")
    urls = parse_json(text)["urls"]
    if source is not None:
        urls = [join(source, "{file}"), join(source, "udpipe/{file}")]
    return [Offer(record, tuple(urls)) for record in parse_records(text, "udpipe.json").values()]


def stanza_offers(downloader: Downloader, url: str | None = None) -> list[Offer]:
    """Packages for the installed Stanza; ``url`` may have ``{version}`` of the list's format."""
    official = parse_json(_resource("stanza.json"))
    version = resources_version()
    where = (url or official["url"]).replace("{version}", version)
    text = downloader.fetch_text(where)
    if text is None:
        raise DownloadError(f"there is no list of Stanza's models at {where}", url=where)
    resources = read_resources(text, where)
    template = str(resources.get("url", "")).replace("{resources_version}", version)
    records = stanza_records(resources, version, official["licence"])
    return [Offer(record, (template,)) for record in records]


def mirror_offers(source: str, downloader: Downloader) -> list[Offer]:
    """Offers of a registry file, else of a Stanza folder, or of a folder of UDPipe's files."""
    where = join(source, FILE_NAME)
    if (text := downloader.fetch_text(where)) is not None:
        records = parse_records(text, where).values()
        return [Offer(record, (join(source, "{path}"),)) for record in records]
    for root in (source, join(source, FOLDER)):
        where = join(root, RESOURCES)
        if (text := downloader.fetch_text(where)) is not None:
            packages = stanza_records(read_resources(text, where), None, None)
            template = join(root, "{lang}/{filename}")
            return [*(Offer(record, (template,)) for record in packages), *udpipe_offers(source)]
    return udpipe_offers(source)


def choose(offers: Sequence[Offer], name: str) -> Offer:
    """Offer for a full name, the beginning of one, or a language code; the newest version."""
    family, slash, wanted = name.lower().rpartition("/")
    code = language_code(wanted)
    # Whether it is meant, by its name without the family and its language: the strictest way first.
    ways: tuple[Callable[[str, str], bool], ...] = (
        lambda short, _: bool(slash) and short in (wanted, code),
        lambda _, lang: lang == code,
        lambda short, _: short == wanted,
        lambda short, _: split_version(short)[0] == wanted,
        lambda short, _: short.startswith(f"{wanted}-"),
        lambda short, _: bool(wanted) and short.startswith(wanted),
    )
    candidates = []
    for offer in offers:
        kind, _, short = offer.record.name.lower().partition("/")
        if not slash or kind == family:
            candidates.append((offer, short, language_code(offer.record.language or "")))
    for is_meant in ways:
        found = _newest(offer for offer, short, lang in candidates if is_meant(short, lang))
        if len(found) == 1:
            return found[0]
        if found:
            names = [offer.record.name for offer in found]
            more = f" or {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise AmbiguousModelError(
                f"{name!r} may be {', '.join(names[:_SHOWN])}{more}; give one name in full",
                candidates=names,
            )
    known = [offer.record.name for offer in offers]
    near = get_close_matches(
        name.lower(), [*known, *(full.partition("/")[2] for full in known)], n=3
    )
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UnknownParserError(
        f"there is no model {name!r} to fetch. {hint}`parsebank models list --remote` lists what "
        "there is; Stanza's packages are named stanza/...",
        name=name,
        near=near,
    )


def join(source: str, path: str) -> str:
    return f"{source.rstrip('/')}/{path}" if source != "/" or is_url(source) else f"/{path}"


def _newest(offers: Iterable[Offer]) -> list[Offer]:
    newest: dict[str, Offer] = {}
    for offer in offers:
        base, version = split_version(offer.record.name)
        if base not in newest or version > split_version(newest[base].record.name)[1]:
            newest[base] = offer
    return list(newest.values())


def _resource(name: str) -> str:
    return (files("service") / "resources" / "catalogue" / name).read_text(encoding="utf-8")
