"""Which official models are known, and what a Stanza package needs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from service.models.catalogue import choose, udpipe_offers
from service.models.stanza import merged, stanza_records, without
from service.parsers.languages import ud_languages
from service.parsers.stanza.packages import needed_files
from syntax.errors import UnknownParserError

from .stanza_lists import official_excerpt


def test_packages_are_resolved_as_stanza_resolves_them() -> None:
    common = pytest.importorskip("stanza.resources.common")
    resources = official_excerpt()
    names = {record.name for record in stanza_records(resources, "1", None)}
    # Of packages with the same files only one can be told from the others afterwards.
    assert names == {"stanza/af", "stanza/af-default_fast", "stanza/af-default_accurate"}
    for package in ("default", "default_fast", "default_accurate"):
        chosen = {k: v for k, v in resources["af"]["packages"][package].items() if k != "ner"}
        ours = needed_files(resources["af"], chosen)
        theirs = common.maintain_processor_list(resources, "af", None, chosen)
        flat = common.flatten_processor_list(common.add_dependencies(resources, "af", theirs))
        # The identity is a lemmatizer without a file.
        assert {*ours, ("lemma", "identity")} == set(map(tuple, flat))


def test_parts_of_the_list_come_and_go_without_touching_each_other() -> None:
    parts = {
        record.name: record.resources or {}
        for record in stanza_records(official_excerpt(), "1", None)
    }
    both = merged(merged({}, parts["stanza/af"]), parts["stanza/af-default_fast"])
    assert set(both["af"]["packages"]) == {"default", "default_fast"}
    assert set(both["af"]["depparse"]) == {"afribooms_charlm", "afribooms_nocharlm"}
    fast = without(both, parts["stanza/af"])
    assert set(fast["af"]["depparse"]) == {"afribooms_nocharlm"}
    assert "forward_charlm" not in fast["af"]
    assert without(fast, parts["stanza/af-default_fast"]) == {}


def test_the_official_udpipe_models_are_known_by_name() -> None:
    offers = udpipe_offers()
    codes = {codes[0] for codes in ud_languages().values()}
    assert len(offers) == 94
    assert {offer.record.language for offer in offers} <= codes
    english = choose(offers, "english-ewt")
    assert english.record.treebank == "UD_English-EWT"
    assert english.sources(english.record.files[0])[-1] == (
        "https://lindat.mff.cuni.cz/repository/xmlui/bitstream/handle/11234/1-3131/"
        "english-ewt-ud-2.5-191206.udpipe"
    )
    assert choose(offers, "eu").record.name == "udpipe/basque-bdt-ud-2.5-191206"
    assert choose(offers, "udpipe/eus") == choose(offers, "basque") == choose(offers, "BASQ")
    with pytest.raises(UnknownParserError):
        choose(offers, "stanza/eu")
    with pytest.raises(UnknownParserError):
        choose(offers, "")


def test_checksums_in_the_catalogue_are_those_of_the_official_files(data_dir: Path) -> None:
    known = {file.path: file.sha256 for offer in udpipe_offers() for file in offer.record.files}
    for path in (data_dir / "models" / "udpipe").glob("*-ud-2.5-191206.udpipe"):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        assert known[f"udpipe/{path.name}"] == found


def test_of_two_versions_the_newest_is_taken() -> None:
    older, newer = (f"udpipe/afrikaans-afribooms-ud-{version}" for version in ("2.9", "2.10"))
    (offer,) = udpipe_offers()[:1]
    offers = [replace(offer, record=replace(offer.record, name=name)) for name in (newer, older)]
    assert choose(offers, "af").record.name == newer
    assert choose(offers, older).record.name == older
