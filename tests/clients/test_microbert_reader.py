"""The corpora of MicroBERT: a bundled page or three, and the real ones."""

from __future__ import annotations

import io
import math
import random
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS, Part
from clients.benchmarks.lines import MOST_BYTES
from clients.benchmarks.microbert import divided
from clients.files import DamagedFileError
from syntax.errors import UnknownNameError
from syntax.examples import Example, Rejection
from tests.clients.packed import PACKERS

MICROBERT = BENCHMARKS["microbert"]


@pytest.fixture
def pages(benchmark_files) -> Path:
    return benchmark_files / "microbert"


def archived(pages: dict[str, bytes]) -> bytes:
    """A tar archive with a folder, and with another file beside the pages."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        folder = tarfile.TarInfo("corpora")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, page in {"README.md": b"pages\n", **pages}.items():
            file = tarfile.TarInfo(f"corpora/{name}")
            file.size = len(page)
            archive.addfile(file, io.BytesIO(page))
    return content.getvalue()


def numbered(count: int) -> dict[str, bytes]:
    return {f"wo_x__{n}.html": f"<p>Page {n}.</p>".encode() for n in range(count)}


def test_a_page_is_read_as_the_recipe_says(pages):
    items = list(MICROBERT.read(pages, "train", "wo"))
    examples = [item for item in items if isinstance(item, Example)]
    assert [(x.example_id, " ".join(x.segments[0].tokens)) for x in examples] == [
        ("wo_example__2-1", "The mill"),
        ("wo_example__2-2", "The mill stands by the river & grinds corn."),
        ("wo_example__2-3", "It is 3."),
        ("wo_example__2-4", "5 m high!"),
        ("wo_example__2-5", '"Nobody works there?"'),
        ("wo_example__2-6", "(Not since May.)"),
        ("wo_example__2-7", "The mill in winter"),
        ("wo_example__2-8", "The wheel turns"),
        ("wo_example__2-9", "Xam-xamu ñi: làkk yi, ŋaam <ëtt>…"),
        ("wo_example__9-1", "Bees"),
        ("wo_example__9-2", "queen worker"),
        ("wo_example__9-3", "They dance."),
    ]
    (bad,) = [item for item in items if isinstance(item, Rejection)]
    assert (bad.example_id, bad.reason) == ("wo_example__10.html", "invalid_character")
    assert "byte 0xe9 at position 50 is not UTF-8" in bad.message


@pytest.mark.parametrize("count", [1, 3, 10, 2240])
def test_documents_are_divided_as_published(count):
    names = [f"wo_x__{n}" for n in range(count)]
    parts = divided(names[::-1])
    random.seed(1337)
    indices = list(range(count))
    random.shuffle(indices)
    train = math.ceil(0.9 * count)
    assert parts["train"] == [f"wo_x__{n}" for n in sorted(indices[:train])]
    assert parts["dev"] == [f"wo_x__{n}" for n in sorted(indices[train:])]


def test_numbers_are_sorted_as_numbers():
    assert divided(["wo__10", "wo__9", "wo__2"])["train"] == ["wo__2", "wo__9", "wo__10"]
    assert divided(["b", "wo__10", "wo__9"])["train"] == ["b", "wo__10", "wo__9"]


def test_each_language_is_divided_by_itself(tmp_path):
    for lang, count in (("wo", 10), ("mt", 20)):
        (tmp_path / lang).mkdir()
        for number in range(count):
            (tmp_path / lang / f"{lang}_x__{number}.html").write_text("<p>One.</p>", "utf-8")
    sizes = {(part.split, part.lang): len(part.files) for part in MICROBERT.parts(tmp_path)}
    assert sizes == {("train", "wo"): 9, ("dev", "wo"): 1, ("train", "mt"): 18, ("dev", "mt"): 2}


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_an_archive_is_read_as_the_folder_in_it(tmp_path, ending):
    content = numbered(20)
    (tmp_path / "pages").mkdir()
    for name, page in content.items():
        (tmp_path / "pages" / name).write_bytes(page)
    archive = tmp_path / f"pages.tar{ending}"
    packed = archived(content)
    archive.write_bytes(PACKERS[ending](packed) if ending else packed)
    for split, count in (("train", 18), ("dev", 2)):
        items = list(MICROBERT.read(archive, split, "wo"))
        assert len(items) == count
        assert items == list(MICROBERT.read(tmp_path / "pages", split, "wo"))
    assert MICROBERT.parts(archive) == [Part("*", "*", (archive,))]
    assert len(list(MICROBERT.read(archive, "whole", "wo"))) == 20


def test_bad_pages_are_named_and_the_others_read(tmp_path):
    content = {
        "wo_x__1.html": b"<p></p>",
        "wo_x__2.html": b"<p>" + b"a" * MOST_BYTES,
        "wo_x__3.html": b"<p>good \xff</p>",
        "wo_x__4.html": b"<p>good</p>",
    }
    archive = tmp_path / "pages.tar"
    archive.write_bytes(archived(content))
    items = list(MICROBERT.read(archive, "train", "wo"))
    assert [getattr(item, "reason", item.example_id) for item in items] == [
        "empty_text",
        "text_too_long",
        "invalid_character",
        "wo_x__4-1",
    ]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "wo_x__5.html").write_text("<p>good</p>", "utf-16")
    (item,) = MICROBERT.read(tmp_path / "folder", "train", "wo")
    assert (item.example_id, item.reason) == ("wo_x__5.html", "input")


def test_another_file_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("One.\n", "utf-8")
    with pytest.raises(UnknownNameError, match=r"neither a web page \(\.html\) nor a tar archive"):
        list(MICROBERT.read(tmp_path / "a.txt", "train", "wo"))


def test_a_truncated_archive_is_an_error(tmp_path):
    content = archived({**numbered(20), "wo_x__99.html": b"<p>text " * 5000})
    for name, whole in (("a.tar", content), ("a.tar.xz", PACKERS[".xz"](content))):
        path = tmp_path / name
        path.write_bytes(whole[: len(whole) * 2 // 3])
        with pytest.raises(DamagedFileError):
            list(MICROBERT.read(path, "train", "wo"))


@pytest.mark.slow
def test_an_archive_is_not_unpacked_into_memory(tmp_path):
    page = b"<p>" + b"bees " * 20_000
    archive = tmp_path / "pages.tar.gz"
    archive.write_bytes(PACKERS[".gz"](archived({f"wo_x__{n}.html": page for n in range(100)})))
    tracemalloc.start()
    try:
        count = sum(1 for _ in MICROBERT.read(archive, "train", "wo"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 90
    assert peak < 5 * 2**20  # the archive has 10 MB


@pytest.mark.slow
def test_wolof_has_the_published_size(data_dir):
    archive = data_dir / "corpora" / "microbert" / "wolof-wikipedia-html.tar.xz"
    items = list(MICROBERT.read(archive, "train", "wo"))
    found = [item.segments[0].tokens for item in items if isinstance(item, Example)]
    tokens = [token for sentence in found for token in sentence]
    # Published (Gessler, Zeldes 2022): 517,237 tokens and 59,137 types.
    assert (len(tokens), len(set(tokens)), len(found)) == (517_992, 59_190, 34_064)
