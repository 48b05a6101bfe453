"""The Stanza backend: packages on disk, real answers, no network, forked workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from service.parsers import Limits, ParseInput, Parser, find_parser, identify, load_parser
from service.parsers.stanza.backend import StanzaParser, load_stanza
from service.parsers.stanza.packages import find_stanza, package_of
from service.parsers.stanza.processors import StanzaProcessors, quietly
from service.settings import Settings
from syntax import Parse, read_conllu
from syntax.errors import ModelLoadError, UnparsableTextError

ROOT = Path(__file__).parents[2]
LIMITS = Limits()


@pytest.fixture(scope="session")
def folder(data_dir: Path) -> Path:
    """A Stanza model folder with one small French package."""
    path = data_dir / "models" / "stanza"
    if not path.is_dir():
        pytest.skip(f"needs a Stanza package in {path}")
    return path


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """The same in a folder that may be changed."""
    return Path(shutil.copytree(folder, tmp_path / "stanza", copy_function=shutil.copyfile))


def pipeline(folder: Path, **options: Any) -> Any:
    """Stanza's own pipeline over the same files."""
    with quietly():
        import stanza

        return stanza.Pipeline(
            "fr",
            dir=str(folder),
            package=None,
            processors=dict.fromkeys(("tokenize", "mwt", "pos", "lemma", "depparse"), "partut"),
            download_method=None,
            device="cpu",
            logging_level="CRITICAL",
            **options,
        )


def rows(parse: Parse) -> list[tuple[Any, ...]]:
    columns = (parse.form, parse.upos, parse.feats, parse.lemma, parse.head, parse.deprel)
    return list(zip(*columns, strict=True))


@pytest.mark.slow
def test_answers_are_those_of_stanzas_own_pipeline(
    stanza_french: Parser, folder: Path, data_dir: Path
) -> None:
    treebank = data_dir / "treebanks/UD_French-Sequoia/fr_sequoia-ud-test.conllu"
    texts = [one.text for one, _ in zip(read_conllu(treebank), range(36), strict=False)]
    texts = [" ".join(texts[at : at + 3]) for at in range(0, 36, 3)]
    own = pipeline(folder)
    for text, parse in zip(texts, many(stanza_french, texts), strict=True):
        with quietly():
            document = own(text)
        words = [word for sentence in document.sentences for word in sentence.words]
        assert rows(parse) == [
            (word.text, word.upos, word.feats, word.lemma, word.head, word.deprel) for word in words
        ]
        tokens = [token for sentence in document.sentences for token in sentence.tokens]
        assert list(zip(parse.token_start, parse.token_end, strict=True)) == [
            (token.start_char, token.end_char) for token in tokens
        ]
        assert len(parse.sentence_start) == len(document.sentences)


def many(parser: Parser, texts: list[str]) -> list[Parse]:
    outcomes = parser.parse_many([ParseInput("raw", text=text) for text in texts], LIMITS)
    return [outcome for outcome in outcomes if isinstance(outcome, Parse)]


def test_a_word_that_stanza_hides_from_its_models_has_no_lemma(stanza_french: Parser) -> None:
    parse = stanza_french.parse(ParseInput("raw", text=f"Voici {'x' * 3000} ici."), LIMITS)
    assert parse.lemma[parse.form.index("x" * 3000)] is None
    assert "<UNK>" not in [*parse.form, *parse.lemma]
    spelled = stanza_french.parse(ParseInput("pretokenized", tokens=("<UNK>", "dort")), LIMITS)
    assert spelled.form == ["<UNK>", "dort"]


def test_line_breaks_at_the_edges_do_not_matter(stanza_french: Parser) -> None:
    plain = stanza_french.parse(ParseInput("raw", text="Je dors. Tu dors."), LIMITS)
    edged = stanza_french.parse(ParseInput("raw", text="\n \x85Je dors. Tu dors.\n\n"), LIMITS)
    assert rows(edged) == rows(plain)
    assert edged.word_start == [start + 3 for start in plain.word_start]


def test_a_failure_on_one_text_is_that_texts_alone(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def break_down(sentences: list[list[str]]) -> list[list[str]]:
        if any("panne" in words for words in sentences):
            raise ValueError("a defect in the library")
        return sentences

    (model,) = find_stanza(folder)
    processors = StanzaProcessors(pipeline(folder, tokenize_postprocessor=break_down))
    parser = StanzaParser(package_of(model), identify(model), "cpu", processors)
    texts = ["Je dors.", "Tu es en panne .", "Il dort."]
    items = [ParseInput("sentence", text=text) for text in texts]
    first, broken, last = parser.parse_many(items, LIMITS)
    assert [parse.text for parse in (first, last) if isinstance(parse, Parse)] == texts[::2]
    assert isinstance(broken, UnparsableTextError)
    assert "a defect in the library" in broken.message
    with pytest.raises(UnparsableTextError):
        parser.parse(items[1], LIMITS)
    assert "panne" not in "".join(capfd.readouterr())


def test_a_package_is_found_by_name_prefix_and_language(folder: Path) -> None:
    settings = Settings(store="unused", models_dir=folder)
    (model,) = find_stanza(folder)
    assert (model.name, model.langs, model.path) == ("stanza/fr", ("fr",), folder)
    assert model.card == {"language": "fr", "treebank": "partut"}
    assert model.size == sum(path.stat().st_size for path in folder.rglob("*.pt"))
    for name, lang in (("stanza/fr", None), ("stanza", None), ("fr", None), (None, "fr")):
        assert find_parser(settings, name, lang).name == "stanza/fr"


def test_the_fingerprint_covers_every_file(copied: Path) -> None:
    (model,) = find_stanza(copied)
    before = identify(model)
    assert before.content["backend"] == "stanza.v1"
    assert len(model.parts) == 5
    for path in model.parts:
        changed = path.read_bytes() + b"\0"
        path.write_bytes(changed)
        os.utime(path, ns=(1, 1))
        after = identify(model)
        assert after.fingerprint != before.fingerprint
        before = after


@pytest.mark.parametrize("kind", ["tokenize", "mwt", "pos", "lemma", "depparse"])
def test_a_damaged_file_is_a_named_error(copied: Path, kind: str) -> None:
    (model,) = find_stanza(copied)
    path = copied / "fr" / kind / "partut.pt"
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"version https://git-lfs.github.com/spec/v1"):
        path.write_bytes(damaged)
        with pytest.raises(ModelLoadError, match="stanza/fr"):
            load_parser(model, "cpu")
    path.unlink()
    with pytest.raises(ModelLoadError, match="missing"):
        load_parser(model, "cpu")


def test_without_a_lemmatizer_the_lemma_is_the_word(copied: Path) -> None:
    path = copied / "resources.json"
    resources = json.loads(path.read_text())
    del resources["fr"]["packages"]["default"]["lemma"]
    path.write_text(json.dumps(resources))
    shutil.rmtree(copied / "fr" / "lemma")
    (model,) = find_stanza(copied)
    assert len(model.parts) == 4
    parse = load_parser(model, "cpu").parse(ParseInput("raw", text="Le chat du voisin."), LIMITS)
    assert parse.lemma == parse.form == ["Le", "chat", "de", "le", "voisin", "."]


def test_a_gpu_that_is_not_there_is_a_named_error(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (model,) = find_stanza(folder)
    with pytest.raises(ModelLoadError, match="no GPU"):
        load_stanza(model, identify(model), "cuda")


OFFLINE = """
import os, socket, sys

def refuse(*_):
    raise AssertionError("the network was used")

socket.getaddrinfo = socket.socket.connect = refuse
from pathlib import Path
from service.parsers import Limits, ParseInput, identify
from service.parsers.stanza.backend import StanzaParser, load_stanza
from service.parsers.stanza.packages import find_stanza, package_of

model, = find_stanza(Path(sys.argv[1]))
assert "torch" not in sys.modules and "stanza" not in sys.modules
identity = identify(model)
loaded = load_stanza(model, identity, "auto")
# As on a GPU: every process loads for itself.
alone = StanzaParser(package_of(model), identity, "cpu")
items = [ParseInput("raw", text="Le chat du voisin dort. Il rêve."), ParseInput("raw", text="Oui.")]
expected = list(loaded.parse_many(items, Limits()))
assert [len(parse.form) for parse in expected] == [10, 2]

for parser in (loaded, loaded, alone):
    pid = os.fork()
    if pid == 0:
        try:
            same = list(parser.parse_many(items, Limits())) == expected
            os._exit(0 if same else 3)
        finally:
            os._exit(4)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
print("ok")
"""


@pytest.mark.slow
def test_no_network_is_needed_and_forked_processes_answer_the_same(folder: Path) -> None:
    done = run_python(OFFLINE, str(folder))
    assert (done.stdout, done.stderr) == ("ok\n", "")


ON_GPU = """
import os, sys
from pathlib import Path
from service.parsers import Limits, ParseInput, identify
from service.parsers.stanza.backend import load_stanza
from service.parsers.stanza.packages import find_stanza

model, = find_stanza(Path(sys.argv[1]))
items = [ParseInput("raw", text=text) for text in ("Le chat du voisin dort. Il rêve.", "Oui.")]
expected = [parse.form for parse in load_stanza(model, identify(model), "cpu").parse_many(
    items, Limits())]
parser = load_stanza(model, identify(model), "auto")
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        try:
            found = [parse.form for parse in parser.parse_many(items, Limits())]
            import torch
            os._exit(0 if found == expected and torch.cuda.memory_allocated() else 3)
        finally:
            os._exit(4)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
print("ok")
"""


def test_forked_processes_use_a_gpu_where_there_is_one(folder: Path) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    assert run_python(ON_GPU, str(folder)).stdout == "ok\n"


WITHOUT = """
import sys
from pathlib import Path
from service.parsers import identify
from service.parsers.stanza.backend import load_stanza
from service.parsers.stanza.packages import find_stanza
from syntax.errors import MissingExtraError

model, = find_stanza(Path(sys.argv[1]))
for attempt in (lambda: identify(model), lambda: load_stanza(model, None, "auto")):
    try:
        attempt()
    except MissingExtraError as error:
        assert "[stanza]'" in error.message, error
    else:
        raise AssertionError("Stanza was found")
print("ok")
"""


@pytest.mark.slow
def test_without_the_extra_the_error_has_the_install_line(folder: Path, tmp_path: Path) -> None:
    installed = Path(sysconfig.get_paths()["purelib"])
    for path in installed.iterdir():
        if not path.name.startswith("stanza"):
            (tmp_path / path.name).symlink_to(path)
    done = run_python(WITHOUT, str(folder), options=["-S"], path=[str(tmp_path)])
    assert (done.stdout, done.stderr) == ("ok\n", "")


def run_python(
    code: str, *arguments: str, options: list[str] | None = None, path: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with the repository on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *(path or [])])}
    return subprocess.run(
        [sys.executable, *(options or []), "-c", code, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
