from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks.lines import (
    MOST_LINES,
    Line,
    blocks,
    encoding_of,
    numbered_lines,
)
from syntax.errors import ExampleError, InputError, InvalidCharacterError


@pytest.fixture
def read(tmp_path):
    def read(content: bytes) -> list[tuple[int, bytes]]:
        path = tmp_path / "lines.txt"
        path.write_bytes(content)
        return [(line.number, line.raw) for line in numbered_lines(path)]

    return read


def test_only_lf_ends_a_line(read):
    content = "a\u2028b\x0bc\x85d\re\nf".encode()
    assert read(content) == [(1, "a\u2028b\x0bc\x85d\re".encode()), (2, b"f")]


def test_final_line_feed_adds_no_line(read):
    assert read(b"a\n") == read(b"a") == [(1, b"a")]
    assert read(b"a\n\n") == [(1, b"a"), (2, b"")]
    assert read(b"") == []


def test_carriage_return_before_line_feed_belongs_to_the_file(read):
    assert read(b"a\r\nb\r\r\nc\r") == [(1, b"a"), (2, b"b\r"), (3, b"c")]


def test_byte_order_mark_is_dropped_from_the_first_line_only(read):
    mark = codecs.BOM_UTF8
    assert read(mark + b"a\n" + mark + b"b\n") == [(1, b"a"), (2, mark + b"b")]


def test_a_file_whose_lines_end_with_cr_alone_is_named(read):
    with pytest.raises(InputError, match="ends its lines with CR alone; convert them to LF"):
        read(b"a O\rb O\r")


def test_invalid_bytes_are_named_with_line_and_position(tmp_path):
    with pytest.raises(InvalidCharacterError, match=r"x\.txt, line 7: byte 0xff at position 2"):
        Line(tmp_path / "x.txt", 7, b"ab\xffc").text()


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
def test_lines_come_back_as_written(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    texts = [text.removeprefix("\ufeff") for text in texts]
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    got = [line.text() for line in numbered_lines(path)]
    assert got == texts


def test_blocks_are_separated_by_blank_lines(tmp_path):
    path = tmp_path / "blocks.txt"
    path.write_bytes(b"\n\na\nb\n\n\n c\n \nd")
    assert list(blocks(path)) == [(3, [b"a", b"b"]), (7, [b" c", b" ", b"d"])]
    by_space = [(3, [b"a", b"b"]), (7, [b" c"]), (9, [b"d"])]
    assert list(blocks(path, lambda raw: not raw.strip())) == by_space
    path.write_bytes(b"\n")
    assert list(blocks(path)) == []


def test_overlong_block_is_split(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"a\n" * (MOST_LINES + 1))
    assert [(first, len(lines)) for first, lines in blocks(path)] == [
        (1, MOST_LINES),
        (MOST_LINES + 1, 1),
    ]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"plain", "utf-8"),
        ("señor".encode(), "utf-8"),
        ("señor".encode("latin-1"), "latin-1"),
        ("señor\n".encode() * 2 + "León\n".encode("latin-1"), "utf-8"),
        ("señor\n".encode("latin-1") * 2 + "León\n".encode(), "latin-1"),
    ],
)
def test_the_encoding_is_that_of_most_lines_beyond_ascii(tmp_path, content, encoding):
    path = tmp_path / "old.txt"
    path.write_bytes(content)
    assert encoding_of(path, ("utf-8", "latin-1")) == encoding
    assert encoding_of(path, ("utf-8",)) == "utf-8"


def test_fields_are_counted_and_quotation_marks_are_text(tmp_path):
    path = tmp_path / "x.tsv"
    assert Line(path, 3, b'"a\tb"').fields(("x", "y")) == ['"a', 'b"']
    with pytest.raises(
        ExampleError, match=r"x\.tsv, line 3 has 1 fields; expected 2 separated by TAB: x, y"
    ):
        Line(path, 3, b"a").fields(("x", "y"))
