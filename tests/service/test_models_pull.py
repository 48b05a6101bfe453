"""``parsebank models pull|verify|remove`` as typed, with real models from a real file server."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from clients.cli import build_app
from service.models.catalogue import stanza_offers
from service.models.download import Downloader, open_client
from service.models.pull import STAGING
from service.models.stanza import stanza_records
from service.parsers import Limits, ParseInput, find_parser, identify, list_models, load_parser
from service.parsers.files import locked
from service.parsers.records import read_records
from service.settings import Settings

from .file_server import FileServer, file_server
from .stanza_lists import official_excerpt

pytestmark = pytest.mark.slow

PARTUT = "udpipe/french-partut-ud-2.5-191206"
PARTUT_PATH = "/french-partut-ud-2.5-191206.udpipe"
PARTUT_SHA256 = "c41b8569ddbc317b8ed78937b3eaf1e6f2ae2b066cdd44ac0dcd056c4a7b1465"

Run = Callable[..., Result]


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture(scope="module")
def command_line() -> typer.Typer:
    return build_app()


@pytest.fixture
def run(command_line: typer.Typer, models_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``parsebank models ...`` with that folder."""
    monkeypatch.setenv("PARSEBANK_MODELS_DIR", str(models_dir))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(command_line, ["models", *arguments])

    return invoke


@pytest.fixture(scope="module")
def archive(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of UDPipe files under the names of the 2.5 collection.

    French ParTUT and Coptic are the official files; French Spoken, whose checksum our catalogue
    does not know, is the Coptic one under its name; French GSD is damaged.
    """
    folder = tmp_path_factory.mktemp("archive")
    for name in ("french-partut", "coptic-scriptorium"):
        shutil.copy(data_dir / "models/udpipe" / f"{name}-ud-2.5-191206.udpipe", folder)
    coptic = folder / "coptic-scriptorium-ud-2.5-191206.udpipe"
    shutil.copy(coptic, folder / "french-spoken-ud-2.5-191206.udpipe")
    (folder / "french-gsd-ud-2.5-191206.udpipe").write_bytes(coptic.read_bytes()[:100_000])
    return folder


@pytest.fixture
def server(archive: Path) -> Iterator[FileServer]:
    with file_server(archive) as files:
        yield files


@pytest.fixture(scope="module")
def stanza_folder(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The French Stanza pipeline with a list that has the right checksums."""
    folder = tmp_path_factory.mktemp("stanza")
    shutil.copytree(data_dir / "models/stanza/fr", folder / "fr")
    resources = json.loads((data_dir / "models/stanza/resources.json").read_text())
    for kind in ("tokenize", "mwt", "pos", "lemma", "depparse"):
        content = (folder / "fr" / kind / "partut.pt").read_bytes()
        resources["fr"][kind]["partut"]["md5"] = hashlib.md5(content).hexdigest()
    (folder / "resources.json").write_text(json.dumps(resources))
    return folder


def files_in(folder: Path) -> set[str]:
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {path for path in found if not path.endswith(".lock")}


def text_of(result: Result) -> str:
    """What was printed, on one line: long messages wrap."""
    return " ".join((result.output + result.stderr).split())


def test_a_model_is_pulled_checked_tried_and_recorded(
    run: Run, server: FileServer, models_dir: Path
) -> None:
    result = run("pull", "French-ParTUT", "--from", server.url)
    assert result.exit_code == 0, result.output
    assert "licence CC BY-NC-SA 4.0" in result.stdout
    assert "first use" not in result.stdout
    assert files_in(models_dir) == {"registry.json", f"{PARTUT}.udpipe"}
    record = read_records(models_dir)[PARTUT]
    assert (record.language, record.treebank) == ("fr", "UD_French-ParTUT")
    assert (record.sha256, record.size) == (PARTUT_SHA256, 3_887_903)
    assert record.source == server.url + PARTUT_PATH
    model = find_parser(Settings(models_dir=models_dir), lang="fra")
    parse = load_parser(model).parse(ParseInput("raw", "Il pleut."), Limits())
    assert parse.form == ["Il", "pleut", "."]
    assert model.card["licence"] == "CC BY-NC-SA 4.0"


def test_what_is_there_is_not_fetched_again_and_what_is_damaged_or_gone_is(
    run: Run, server: FileServer, models_dir: Path
) -> None:
    run("pull", "french-partut", "--from", server.url)
    server.asked.clear()
    again = run("pull", PARTUT, "--from", server.url)
    assert again.stdout == f"{PARTUT} is there already, whole\n"
    assert not [path for path, _ in server.asked if path.endswith(".udpipe")]
    with (models_dir / f"{PARTUT}.udpipe").open("r+b") as file:
        file.write(b"damage")
    assert run("verify", PARTUT).exit_code == 1
    repaired = run("pull", PARTUT, "--from", server.url)
    assert repaired.stdout.startswith(f"pulled {PARTUT} from")
    assert run("verify", PARTUT).exit_code == 0
    (models_dir / f"{PARTUT}.udpipe").unlink()
    gone = run("verify", PARTUT)
    assert gone.exit_code == 1
    assert f"FAILED {PARTUT}: it is in the registry file, but" in text_of(gone)
    assert run("remove", PARTUT).exit_code == 0
    assert "unknown model" in text_of(run("verify", PARTUT))


def test_a_pull_that_broke_off_goes_on_the_next_time(
    run: Run, server: FileServer, models_dir: Path
) -> None:
    server.faults[PARTUT_PATH] = ["break:2000000", "status:403"]
    broken = run("pull", "french-partut", "--from", server.url)
    assert broken.exit_code == 1
    assert "403 Forbidden" in text_of(broken)
    assert list_models(Settings(models_dir=models_dir))[0].name == "parsebank/english"
    assert not (models_dir / "udpipe").exists()
    server.asked.clear()
    assert run("pull", "french-partut", "--from", server.url).exit_code == 0
    (again,) = [given for asked, given in server.asked if asked == PARTUT_PATH]
    assert again is not None
    assert int(again.removeprefix("bytes=").removesuffix("-")) > 1_000_000
    assert files_in(models_dir / STAGING) == set()


def test_another_file_than_the_official_one_is_refused(
    run: Run, server: FileServer, models_dir: Path
) -> None:
    server.files[PARTUT_PATH] = server.files["/coptic-scriptorium-ud-2.5-191206.udpipe"]
    result = run("pull", "french-partut", "--from", server.url)
    assert result.exit_code == 1
    assert f"but {PARTUT_SHA256} was expected; nothing was kept" in text_of(result)
    assert "french-partut" not in str(files_in(models_dir))


def test_a_checksum_may_be_given_or_is_trusted_and_said_to_be(
    run: Run, archive: Path, models_dir: Path
) -> None:
    spoken = "udpipe/french-spoken-ud-2.5-191206"
    source = ("--from", str(archive))
    wrong = run("pull", spoken, "--sha256", "0" * 64, *source)
    assert "was expected" in text_of(wrong)
    trusted = run("pull", spoken, *source)
    assert "the source gives no checksum: this one is trusted and recorded" in trusted.stdout
    recorded = read_records(models_dir)[spoken].sha256
    run("remove", spoken)
    given = run("pull", spoken, "--sha256", str(recorded), *source)
    assert given.exit_code == 0, given.output
    assert "first use" not in given.stdout
    two = run("pull", "french-partut", "coptic", "--sha256", "0" * 64, *source)
    assert "name one model of a single file" in text_of(two)


def test_invalid_model_is_installed_only_when_forced(
    run: Run, archive: Path, models_dir: Path
) -> None:
    damaged = "udpipe/french-gsd-ud-2.5-191206"
    result = run("pull", damaged, "--from", str(archive))
    assert result.exit_code == 1
    assert "came, but cannot be loaded" in text_of(result)
    assert "Nothing was installed" in text_of(result)
    assert read_records(models_dir) == {}
    assert not (models_dir / "udpipe").exists()
    assert run("pull", damaged, "--no-check", "--from", str(archive)).exit_code == 0
    checked = run("verify")
    assert checked.exit_code == 1
    assert f"FAILED {damaged}" in text_of(checked)
    assert "ok udpipe/english-ewt" in text_of(checked)


def test_an_ambiguous_name_lists_the_candidates_and_an_unknown_one_the_nearest(run: Run) -> None:
    ambiguous = text_of(run("pull", "fr"))
    assert "'fr' may be udpipe/french-gsd-ud-2.5-191206, udpipe/french-partut" in ambiguous
    assert "give one name in full" in ambiguous
    unknown = text_of(run("pull", "frensh-partut"))
    assert "Did you mean french-partut-ud-2.5-191206" in unknown
    assert "parsebank models list --remote" in unknown


def test_without_a_models_folder_the_error_says_how_to_name_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PARSEBANK_MODELS_DIR")
    for action in ("pull", "remove"):
        told = text_of(run(action, "french-partut"))
        assert "--models-dir, or set PARSEBANK_MODELS_DIR" in told


@pytest.mark.parametrize("how", ["--offline", "PARSEBANK_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_only_folders_are_sources(
    run: Run, archive: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    options = [how] if how.startswith("--") else []
    if not options:
        monkeypatch.setenv(how, "1")
    for source in ([], ["--from", server.url]):
        refused = run("pull", "french-partut", *source, *options)
        assert refused.exit_code == 1
        assert "no model is fetched from the network" in text_of(refused)
    assert server.asked == []
    assert run("pull", "french-partut", "--from", str(archive), *options).exit_code == 0
    listed = run("list", "--remote", "--lang", "cop", *options)
    assert "udpipe/coptic-scriptorium-ud-2.5-191206" in listed.stdout
    assert "without Stanza's models" in listed.stderr


def test_the_mirror_may_be_a_setting(
    run: Run, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARSEBANK_MODELS_URL", server.url)
    assert run("pull", "french-partut").exit_code == 0
    row = next(line for line in run("list", "--remote").stdout.splitlines() if PARTUT in line)
    assert row.split()[-1] == "yes"
    assert "french-gsd" not in run("list", "--remote", "--lang", "de").stdout


def test_a_served_models_folder_is_a_mirror_of_all_that_is_in_it(
    run: Run, archive: Path, stanza_folder: Path, models_dir: Path, tmp_path: Path
) -> None:
    run("pull", "french-spoken", "--from", str(archive))
    run("pull", "stanza/fr", "--no-check", "--from", str(stanza_folder))
    mirror = models_dir.rename(tmp_path / "mirror")
    with file_server(mirror) as server:
        names = ("french-spoken", "stanza/fr")
        result = run("pull", *names, "--no-check", "--from", server.url)
        listed = run("list", "--remote", "--from", server.url).stdout
        both = text_of(run("pull", "fra", "--from", server.url))
    assert result.exit_code == 0, result.output
    assert "'fra' may be stanza/fr, udpipe/french-spoken-ud-2.5-191206; give one name" in both
    # The mirror has a checksum of what was trusted when it was made.
    assert "first use" not in result.stdout
    assert len(listed.splitlines()) == 3
    assert files_in(models_dir) == files_in(mirror)
    models = list_models(Settings(models_dir=models_dir))
    bundled = ["parsebank/english", "udpipe/english-ewt"]
    pulled = ["udpipe/french-spoken-ud-2.5-191206", "stanza/fr"]
    assert [model.name for model in models] == pulled + bundled
    assert all(identify(model).content["sha256"] == model.sha256 for model in models[:2])


def test_paths_that_lead_out_of_the_folder_are_refused(
    run: Run, tmp_path: Path, models_dir: Path
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    for path in ("../evil.udpipe", "/etc/evil", "a/../../evil", "a//b", "", "a\\b"):
        entry = {"backend": "udpipe.v1", "files": [{"path": path}]}
        content = {"format": 1, "models": {"udpipe/evil": entry}}
        (mirror / "registry.json").write_text(json.dumps(content))
        result = run("pull", "udpipe/evil", "--from", str(mirror))
        assert "files 0 path is" in text_of(result)
    assert not models_dir.exists()


def test_a_stanza_package_brings_its_part_of_the_list_and_leaves_the_others(
    run: Run, stanza_folder: Path, models_dir: Path
) -> None:
    other = {"xx": {"lang_name": "Other", "packages": {"default": {}}}}
    (models_dir / "stanza").mkdir(parents=True)
    (models_dir / "stanza" / "resources.json").write_text(json.dumps(other))
    with file_server(stanza_folder) as server:
        result = run("pull", "stanza/fra", "--from", server.url)
        assert result.exit_code == 0, result.output
        assert "first use" not in result.stdout
        assert run("pull", "stanza/fr", "--from", server.url).stdout.endswith("whole\n")
    resources = json.loads((models_dir / "stanza" / "resources.json").read_text())
    assert resources["xx"] == other["xx"]
    assert resources["fr"]["packages"]["default"]["depparse"] == "partut"
    model = find_parser(Settings(models_dir=models_dir), "stanza/fr")
    assert model.sha256 == read_records(models_dir)["stanza/fr"].sha256
    removed = run("remove", "stanza/fr")
    assert removed.exit_code == 0, removed.output
    assert json.loads((models_dir / "stanza" / "resources.json").read_text()) == other
    assert files_in(models_dir) == {"registry.json", "stanza/resources.json"}


def test_stanzas_own_address_and_list_are_understood(stanza_folder: Path, models_dir: Path) -> None:
    resources = json.loads((stanza_folder / "resources.json").read_text())
    with file_server(stanza_folder) as server, open_client(10.0) as client:
        # As in the official list, whose host is another one.
        resources["url"] = server.url + "/stanza-{lang}/v{resources_version}/models/{filename}"
        resources["french"] = {"alias": "fr"}
        server.files["/resources_1.json"] = json.dumps(resources).encode()
        downloader = Downloader(client)
        (offer,) = stanza_offers(downloader, f"{server.url}/resources_1.json")
    version = offer.record.version
    assert offer.record.licence == "Apache-2.0"
    first = offer.sources(offer.record.files[0])
    assert first == [f"{server.url}/stanza-fr/v{version}/models/tokenize/partut.pt"]
    assert [file.path for file in offer.record.files][-1] == "stanza/fr/depparse/partut.pt"
    assert all(file.md5 for file in offer.record.files)


def test_shared_files_stay_as_long_as_a_package_needs_them(
    run: Run, models_dir: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    resources = official_excerpt()
    for record in stanza_records(resources, "1", None):
        for file in record.files:
            path = source / file.path.partition("/")[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
            kind, name = path.parent.name, path.stem
            resources["af"][kind][name]["md5"] = hashlib.md5(path.name.encode()).hexdigest()
    (source / "resources.json").write_text(json.dumps(resources))
    with file_server(source) as server:
        arguments = ("--no-check", "--from", server.url)
        assert run("pull", "stanza/af", *arguments).exit_code == 0
        server.asked.clear()
        assert run("pull", "stanza/af-default_fast", *arguments).exit_code == 0
        # What the first package has brought already is not fetched again.
        fetched = {path for path, _ in server.asked if path.endswith(".pt")}
        assert fetched == {"/af/pos/afribooms_nocharlm.pt", "/af/depparse/afribooms_nocharlm.pt"}
    removed = run("remove", "stanza/af").stdout
    assert "depparse/afribooms_charlm.pt" in removed
    assert "tokenize/afribooms.pt" not in removed
    assert "pretrain/fasttextwiki.pt" not in removed
    assert "tokenize/afribooms.pt" in run("remove", "stanza/af-default_fast").stdout
    assert files_in(models_dir) == {"registry.json"}


def test_only_one_process_pulls_a_model_at_a_time(
    run: Run, archive: Path, models_dir: Path
) -> None:
    lock = models_dir / STAGING / f"{PARTUT.replace('/', '_')}.lock"
    lock.parent.mkdir(parents=True)
    with locked(lock):
        result = run("pull", "french-partut", "--from", str(archive))
    assert "another process is fetching" in text_of(result)
    assert run("pull", "french-partut", "--from", str(archive)).exit_code == 0


def test_bundled_models_stay_and_names_must_be_whole(run: Run, archive: Path) -> None:
    assert "ships with Parsebank and cannot be removed" in text_of(run("remove", "english-ewt"))
    run("pull", "french-partut", "--from", str(archive))
    assert f"Did you mean '{PARTUT}'" in text_of(run("remove", "udpipe/french-partut"))
    assert "unknown model 'nothing'" in text_of(run("remove", "nothing"))
    assert "unknown model 'nothing'" in text_of(run("verify", "nothing"))


def test_a_model_put_there_by_hand_is_not_overwritten_and_removed_with_its_cards(
    run: Run, archive: Path, models_dir: Path
) -> None:
    models_dir.mkdir()
    for name in ("own.udpipe", "french-partut-ud-2.5-191206.udpipe"):
        shutil.copy(archive / "coptic-scriptorium-ud-2.5-191206.udpipe", models_dir / name)
    (models_dir / "own.json").write_text('{"language": "cop"}')
    (models_dir / "own.md").write_text("# own")
    refused = run("pull", "french-partut", "--from", str(archive))
    assert "put there by hand; remove it first" in text_of(refused)
    assert "no checksum is recorded" in text_of(run("verify", "own"))
    assert run("remove", "Own").exit_code == 0
    assert files_in(models_dir) == {"french-partut-ud-2.5-191206.udpipe", "registry.json"}
