"""Where models are found, what is recorded about them, and which one a name selects."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.lindat.models import names_of
from service.models.stanza import add_resources, drop_resources
from service.parsers import find_parser, identify, list_models
from service.parsers.languages import language_code, language_of, ud_languages
from service.parsers.records import (
    ModelRecord,
    RecordedFile,
    changed_records,
    read_records,
    write_records,
)
from service.parsers.udpipe.backend import model_in
from service.settings import Settings
from service.training.cards import note_trained
from syntax.errors import ModelLoadError, UnknownLanguageError
from syntax.fingerprint import file_sha256
from tests.word_parser import run_command

ENGLISH = "udpipe/english-ewt"
BUNDLED = ("parsebank/english", ENGLISH)


def put(folder: Path, bundled: Path, *names: str) -> None:
    """Put models into a folder, each under its name."""
    for name in names:
        path = folder / f"{name}.udpipe"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(bundled)


def settings_for(folder: Path, **fields: object) -> Settings:
    return Settings(store="unused", models_dir=folder, **fields)  # type: ignore[arg-type]


def names_in(folder: Path) -> list[str]:
    """Names of the folder's own models, in order."""
    found = [model.name for model in list_models(settings_for(folder))]
    return [name for name in found if name not in BUNDLED]


def settle() -> None:
    """Let the folder's last change grow old enough for what was found to be remembered."""
    time.sleep(0.15)


# Discovery


def test_the_folder_and_its_direct_sub_folders_are_searched(tmp_path: Path, bundled: Path) -> None:
    put(tmp_path, bundled, "de-a", "udpipe/fr-b", "other/es-c")
    put(tmp_path, bundled, "udpipe/deep/x", ".hidden/x", "name.work/x")
    assert names_in(tmp_path) == ["udpipe/de-a", "udpipe/es-c", "udpipe/fr-b"]
    assert names_in(tmp_path / "absent") == []


def test_models_are_listed_by_name_and_the_newest_version_first(
    tmp_path: Path, bundled: Path
) -> None:
    put(tmp_path, bundled, "english-ewt-small", "english-ewt-ud-2.9-1", "english-ewt-ud-2.10-1")
    put(tmp_path, bundled, "basque-bdt-ud-2.5-191206")
    assert names_in(tmp_path) == [
        "udpipe/basque-bdt-ud-2.5-191206",
        "udpipe/english-ewt-ud-2.10-1",
        "udpipe/english-ewt-ud-2.9-1",
        "udpipe/english-ewt-small",
    ]


def test_model_in_models_dir_precedes_the_bundled_one(tmp_path: Path, bundled: Path) -> None:
    put(tmp_path, bundled, "a/x", "x", "b/english-ewt")
    models = {model.name: model.path for model in list_models(settings_for(tmp_path))}
    assert models["udpipe/x"] == tmp_path / "x.udpipe"
    assert models[ENGLISH] == tmp_path / "b" / "english-ewt.udpipe"


def test_model_changes_are_seen_at_once(tmp_path: Path, bundled: Path) -> None:
    put(tmp_path, bundled, "x")
    for _ in range(2):
        settle()
        assert names_in(tmp_path) == ["udpipe/x"]
    put(tmp_path, bundled, "sub/y")
    assert names_in(tmp_path) == ["udpipe/x", "udpipe/y"]
    settle()
    assert names_in(tmp_path) == ["udpipe/x", "udpipe/y"]
    put(tmp_path, bundled, "sub/z")
    assert names_in(tmp_path) == ["udpipe/x", "udpipe/y", "udpipe/z"]
    (tmp_path / "x.json").write_text('{"language": "xx"}')
    assert find_parser(settings_for(tmp_path), "x").langs == ("xx",)
    settle()
    list_models(settings_for(tmp_path))
    # In place: the folder's own time stamp does not change.
    (tmp_path / "x.json").write_text('{"language": "yy"}')
    assert find_parser(settings_for(tmp_path), "x").langs == ("yy",)
    shutil.rmtree(tmp_path / "sub")
    assert names_in(tmp_path) == ["udpipe/x"]


def test_changes_within_a_tick_of_the_clock_are_seen(tmp_path: Path, bundled: Path) -> None:
    for at in range(20):
        put(tmp_path, bundled, f"m{at:02}")
        assert len(names_in(tmp_path)) == at + 1


def test_both_backends_serve_one_folder(data_dir: Path) -> None:
    settings = settings_for(data_dir / "models")
    backends = {"parsebank.v2", "udpipe.v1", "stanza.v1"}
    assert {model.backend for model in list_models(settings)} == backends
    assert find_parser(settings, "stanza/fr").langs[0] == "fr"
    # UDPipe is registered first, so it answers for a language that both have.
    assert find_parser(settings, lang="fr").name.startswith("udpipe/")
    chosen = settings_for(data_dir / "models", parsers={"fra": "stanza/fr"})
    assert find_parser(chosen, lang="fr").backend == "stanza.v1"


def test_lindat_model_names_resolve_to_their_models(data_dir: Path) -> None:
    settings = settings_for(data_dir / "models")
    names = names_of(settings)
    assert names["stanza/fr"] == "stanza/fr"
    assert names["udpipe/telugu-mtg-ud-2.5-191206"] == "telugu-mtg-ud-2.5-191206"
    assert all(find_parser(settings, told).name == name for name, told in names.items())


# Selection


@pytest.fixture
def several(tmp_path: Path, bundled: Path) -> Settings:
    put(tmp_path, bundled, "english-ewt-ud-2.5-191206", "english-ewt-small", "english-gum-ud-2.5-1")
    put(tmp_path, bundled, "spanish-gsd-ud-2.5-1", "estonian-edt-ud-2.5-1", "basque-bdt")
    put(tmp_path, bundled, "norwegian-bokmaal-ud-2.5-1", "norwegian-nynorsk-ud-2.5-1")
    return settings_for(tmp_path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("UDPipe/English-EWT-Small", "udpipe/english-ewt-small"),
        # A whole name goes before the beginning of another.
        ("english-ewt", ENGLISH),
        ("english-gum", "udpipe/english-gum-ud-2.5-1"),
        ("english-ewt-ud", "udpipe/english-ewt-ud-2.5-191206"),
        ("english", "parsebank/english"),
        ("en", "udpipe/english-ewt-ud-2.5-191206"),
        ("ENG", "udpipe/english-ewt-ud-2.5-191206"),
        # A code is a code first: "es" is Spanish, although Estonian begins so.
        ("es", "udpipe/spanish-gsd-ud-2.5-1"),
        ("eus", "udpipe/basque-bdt"),
        ("baq", "udpipe/basque-bdt"),
        ("span", "udpipe/spanish-gsd-ud-2.5-1"),
        ("nb", "udpipe/norwegian-bokmaal-ud-2.5-1"),
        ("nno", "udpipe/norwegian-nynorsk-ud-2.5-1"),
    ],
)
def test_names_are_matched_as_lindat_does(several: Settings, name: str, found: str) -> None:
    assert find_parser(several, name).name == found


def test_languages_go_by_any_of_their_codes(several: Settings) -> None:
    assert find_parser(several, lang="nor").name == "udpipe/norwegian-bokmaal-ud-2.5-1"
    assert find_parser(several, "english", "eng").langs == ("en",)
    with pytest.raises(UnknownLanguageError, match="serves en, not 'deu'"):
        find_parser(several, "english", "deu")


def test_codes_of_one_language_are_one_and_no_code_is_two_languages() -> None:
    assert {language_code(code) for code in ("fr", "fra", "fre", "FR")} == {"fr"}
    assert (language_code("cmn"), language_code("zh-Hans")) == ("zh", "zh")
    assert language_code("not-a-code") == "not-a-code"
    assert language_of("Norwegian-NynorskLIA-ud-2.5") == "nn"
    owners: dict[str, str] = {}
    for codes in ud_languages().values():
        for code in codes:
            assert owners.setdefault(code, codes[0]) == codes[0]


# Records


def entries(models: dict[str, object]) -> str:
    return json.dumps({"format": 1, "models": models})


def record(name: str, path: str, **facts: object) -> ModelRecord:
    return ModelRecord(name, "udpipe.v1", (RecordedFile(path),), **facts)  # type: ignore[arg-type]


def test_a_record_goes_before_the_card_beside_the_file(tmp_path: Path, bundled: Path) -> None:
    put(tmp_path, bundled, "udpipe/own")
    card = {"language": "xx", "licence": "unknown", "recipe": "mine", "sha256": "0" * 64}
    (tmp_path / "udpipe" / "own.json").write_text(json.dumps(card))
    facts = {"language": "en", "licence": "CC0", "sha256": file_sha256(bundled)}
    write_records(tmp_path, {"udpipe/own": record("udpipe/own", "udpipe/own.udpipe", **facts)})
    model = find_parser(settings_for(tmp_path), "own")
    assert model.langs == ("en",)
    assert (model.card["licence"], model.card["recipe"]) == ("CC0", "mine")
    assert identify(model).langs == ("en",)
    # A record is about the file it names, not about another that took its name.
    put(tmp_path, bundled, "own")
    assert find_parser(settings_for(tmp_path), "own").langs == ()


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    files = (RecordedFile("stanza/fr/pos/x.pt", "a" * 64, "b" * 32, 5),)
    resources = {"fr": {"packages": {"default": {"pos": "x"}}}}
    whole = ModelRecord("stanza/fr", "stanza.v1", files, language="fr", resources=resources)
    plain = record("udpipe/é", "é.udpipe", licence="CC BY-SA 4.0", size=7)
    write_records(tmp_path, {whole.name: whole, plain.name: plain})
    assert read_records(tmp_path) == {whole.name: whole, plain.name: plain}
    assert read_records(tmp_path / "absent") == {}


def test_a_model_trained_into_the_folder_is_recorded(bundled: Path, tmp_path: Path) -> None:
    card = {"language": "cop", "treebank": "UD_Coptic", "treebank_version": "r1", "licence": "CC0"}
    models_dir = tmp_path / "models"
    settings = Settings(models_dir=models_dir)
    for folder in (models_dir / "own", tmp_path / "elsewhere"):
        folder.mkdir(parents=True)
        shutil.copy(bundled, folder / "own.udpipe")
    assert not note_trained(settings, model_in(tmp_path / "elsewhere" / "own.udpipe"), card)
    assert note_trained(settings, model_in(models_dir / "own" / "own.udpipe"), card)
    (record,) = read_records(models_dir).values()
    assert (record.name, record.version) == ("udpipe/own", "r1")
    assert find_parser(settings, "own").sha256 == record.sha256
    # The folder is what others pull from.
    run_command(
        *("models", "pull", "own", "--from", models_dir),
        *("--models-dir", tmp_path / "pulled"),
    )
    (pulled,) = read_records(tmp_path / "pulled").values()
    assert (pulled.name, pulled.sha256, pulled.licence) == ("udpipe/own", record.sha256, "CC0")
    assert names_in(tmp_path / "pulled") == ["udpipe/own"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is []: Input should be"),
        ('{"format": 2, "models": {}}', "format is 2: Input should be 1"),
        (entries({"../x": {"backend": "x", "files": [{"path": "x"}]}}), "name is '../x'"),
        (entries({"a/b": {"backend": "x", "files": []}}), "a/b files is []"),
        (entries({"a/b": {"backend": "x", "files": [{"path": "x/.."}]}}), "leads out of"),
        (entries({"a/b": {"backend": "x", "files": [{"path": "x", "md5": 1}]}}), "md5 is 1"),
    ],
)
def test_unreadable_registry_affects_only_its_folder(
    tmp_path: Path, bundled: Path, content: str, problem: str
) -> None:
    put(tmp_path, bundled, "own")
    (tmp_path / "registry.json").write_text(content)
    with pytest.raises(ModelLoadError) as caught:
        read_records(tmp_path)
    assert problem in caught.value.message
    assert caught.value.detail["path"] == str(tmp_path / "registry.json")
    models = list_models(settings_for(tmp_path))
    assert {model.name: model.problem for model in models} == {
        "udpipe/own": caught.value.message,
        "parsebank/english": None,
        ENGLISH: None,
    }
    with pytest.raises(ModelLoadError, match=re.escape(problem)):
        identify(models[0])


def test_a_card_that_says_something_else_than_texts_is_a_named_error(
    tmp_path: Path, bundled: Path
) -> None:
    put(tmp_path, bundled, "own")
    (tmp_path / "own.json").write_text('{"language": ["en", "de"]}')
    model, *_ = list_models(settings_for(tmp_path))
    with pytest.raises(ModelLoadError, match=r"gives \['en', 'de'\] as language; a text is"):
        identify(model)


def test_failed_change_leaves_the_registry_unchanged(tmp_path: Path) -> None:
    write_records(tmp_path, {"a/b": record("a/b", "b")})

    def fail() -> None:
        with changed_records(tmp_path) as records:
            records.clear()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(read_records(tmp_path)) == ["a/b"]
    assert {path.name for path in tmp_path.iterdir()} == {"registry.json", "registry.json.lock"}


def test_several_processes_may_record_at_once(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from service.parsers.records import ModelRecord, RecordedFile, changed_records
for at in range(25):
    name = f"a/{sys.argv[2]}-{at}"
    with changed_records(Path(sys.argv[1])) as records:
        records[name] = ModelRecord(name, "udpipe.v1", (RecordedFile("x"),))
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    writers = [subprocess.Popen([*command, who]) for who in ("one", "two", "three")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(read_records(tmp_path)) == 75


def test_a_damaged_list_of_packages_is_named_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "stanza" / "resources.json"
    path.parent.mkdir()
    path.write_text('{"fr"')
    resources = {"fr": {"lang_name": "French"}}
    record = ModelRecord("stanza/fr", "stanza.v1", (RecordedFile("x"),), resources=resources)
    for edit in (add_resources, drop_resources):
        with pytest.raises(ModelLoadError, match=r"resources\.json is not JSON"):
            edit(tmp_path, record)
    assert path.read_text() == '{"fr"'
