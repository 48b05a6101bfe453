"""Packed files are read as the files in them; a damaged one is an error, never a shorter file."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.lines import numbered_lines
from clients.files import DamagedFileError, open_file
from syntax.errors import InputError, SpecError
from tests.clients.packed import PACKERS, zipped

TEXT = "".join(f"{random.Random(seed).random()}\n" for seed in range(20_000)).encode()


@pytest.fixture(params=list(PACKERS))
def ending(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def write(tmp_path):
    def write(content: bytes, name: str = "lines.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def read(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


def test_a_file_is_unpacked_whatever_it_is_called(write, ending):
    packed = PACKERS[ending]
    assert read(write(packed(TEXT))) == read(write(packed(TEXT), f"a{ending}")) == TEXT
    assert read(write(packed(b""))) == b""


def test_a_plain_file_is_read_as_it_is(write):
    assert read(write(TEXT, "plain.gz")) == TEXT
    assert read(write(b"")) == b""


@pytest.mark.parametrize("between", [b"", bytes(8)])
def test_frames_one_after_another_are_one_file(write, ending, between):
    if ending != ".zip":
        frame = PACKERS[ending](TEXT)
        assert read(write(frame + between + frame + between)) == TEXT + TEXT


@pytest.mark.parametrize("kept", [0.001, 0.5, 0.999])
def test_a_packed_file_that_breaks_off_is_an_error(write, ending, kept):
    packed = PACKERS[ending](TEXT)
    with pytest.raises(DamagedFileError, match=r"is a damaged \w+ file"):
        read(write(packed[: max(10, int(kept * len(packed)))]))


def test_a_second_frame_that_breaks_off_is_an_error(write, ending):
    packed = PACKERS[ending](TEXT)
    with pytest.raises(DamagedFileError):
        read(write(packed + packed[:-9]))


def test_bytes_after_the_last_frame_are_an_error(write, ending):
    if ending != ".zip":
        with pytest.raises(DamagedFileError):
            read(write(PACKERS[ending](TEXT) + b"and more text"))


def test_a_changed_byte_is_an_error(write, ending):
    packed = bytearray(PACKERS[ending](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(DamagedFileError, match="fetch or pack it again"):
        read(write(bytes(packed)))


@pytest.mark.parametrize("names", [[], ["a.tsv", "b.tsv"], [f"{n}.tsv" for n in range(9)]])
def test_a_zip_archive_of_another_number_of_files_is_refused_with_their_names(write, names):
    with pytest.raises(InputError, match=f"is a zip archive of {len(names)} files .*unpack it"):
        open_file(write(zipped(dict.fromkeys(names, TEXT))))


def test_a_file_that_is_packed_twice_is_refused(write, ending):
    with pytest.raises(InputError, match="is packed twice"):
        open_file(write(PACKERS[ending](PACKERS[ending](TEXT))))


def test_a_tar_archive_is_refused(write, ending):
    tar = bytes(257) + b"ustar" + bytes(250)
    for content in (tar, PACKERS[ending](tar)):
        with pytest.raises(InputError, match="is a tar archive; unpack it first"):
            open_file(write(content))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_refused_packed_or_not(write, ending, encoding):
    text = "\ufeffa\tb\n".encode(encoding)
    for content in (text, PACKERS[ending](text)):
        with pytest.raises(InputError, match="is UTF-16; convert it to UTF-8"):
            open_file(write(content))


@pytest.mark.slow
def test_a_packed_file_is_not_unpacked_into_memory(write, ending):
    path = write(PACKERS[ending](b"a line of text that comes again\n".rjust(512) * 120_000))
    tracemalloc.start()
    try:
        count = sum(1 for _ in numbered_lines(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 120_000
    assert peak < 30 * 2**20  # the file has 61 MB


def test_a_damaged_json_document_is_an_error_and_no_drop(write):
    document = b'{"data": [' + b'{"paragraphs": []},' * 50_000 + b'{"paragraphs": []}]}'
    packed = PACKERS[".xz"](document)
    reader = BENCHMARKS["tydiqa"]
    with pytest.raises(DamagedFileError):
        list(reader.read(write(packed[: len(packed) // 2], "dev.json"), "dev", "en"))


def test_text_present_packed_and_unpacked_is_refused(tmp_path):
    for name in ("a.txt", "a.txt.gz"):
        (tmp_path / name).write_bytes(b"a\n")
    with pytest.raises(SpecError, match="are one file, packed and not; remove one"):
        BENCHMARKS["text"].parts(tmp_path)
