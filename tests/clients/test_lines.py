from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks.lines import decoded, numbered_lines
from syntax.errors import InputError, InvalidCharacterError


@pytest.fixture
def read(tmp_path):
    def read(content: bytes) -> list[tuple[int, bytes]]:
        path = tmp_path / "lines.txt"
        path.write_bytes(content)
        return list(numbered_lines(path))

    return read


def test_only_lf_ends_a_line(read):
    content = "a\u2028b\x0bc\x85d\re\nf".encode()
    assert read(content) == [(1, "a\u2028b\x0bc\x85d\re".encode()), (2, b"f")]


def test_a_last_line_feed_opens_no_further_line(read):
    assert read(b"a\n") == read(b"a") == [(1, b"a")]
    assert read(b"a\n\n") == [(1, b"a"), (2, b"")]
    assert read(b"") == []


def test_carriage_return_before_line_feed_belongs_to_the_file(read):
    assert read(b"a\r\nb\r\r\nc\r") == [(1, b"a"), (2, b"b\r"), (3, b"c")]


def test_byte_order_mark_is_dropped_from_the_first_line_only(read):
    mark = codecs.BOM_UTF8
    assert read(mark + b"a\n" + mark + b"b\n") == [(1, b"a"), (2, mark + b"b")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named(read, encoding):
    with pytest.raises(InputError, match=r"is UTF-16; convert it to UTF-8"):
        read("\ufeffa\nb\n".encode(encoding))


def test_invalid_bytes_are_named_with_line_and_position(tmp_path):
    with pytest.raises(InvalidCharacterError, match=r"x\.txt, line 7: byte 0xff at position 2"):
        decoded(b"ab\xffc", tmp_path / "x.txt", 7)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
def test_lines_come_back_as_written(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    texts = [text.removeprefix("\ufeff") for text in texts]
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    got = [decoded(raw, path, number) for number, raw in numbered_lines(path)]
    assert got == texts
