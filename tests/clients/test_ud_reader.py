from __future__ import annotations

from shutil import copy

import pytest

from clients.benchmarks import BENCHMARKS
from syntax import read_conllu
from syntax.examples import Example, Rejection
from syntax.trees.conllu import parse_conllu

UD = BENCHMARKS["ud"]


def test_gold_mode_keeps_sentences_unchanged(benchmark_files):
    path = benchmark_files / "ud" / "en_tiny-ud-dev.conllu"
    items = list(UD.read(benchmark_files / "ud", "dev", "en"))
    assert [item.example_id for item in items] == ["tiny-1", "dev-10"]
    assert "".join(item.segments[0].conllu for item in items) == path.read_text("utf-8")


def test_other_modes_take_text_or_surface_tokens(benchmark_files):
    folder = benchmark_files / "ud"
    raw = next(UD.read(folder, "dev", "en", "raw"))
    assert raw.segments[0].text == "Dogs don't fly."
    pretokenized = next(UD.read(folder, "dev", "en", "pretokenized"))
    assert pretokenized.segments[0].tokens == ("Dogs", "don't", "fly", ".")


@pytest.mark.parametrize(
    ("fault", "reasons", "message"),
    [
        ("cycle", ["cycle", None], "the heads of words [1, 2] form a cycle"),
        ("missing-column", [None, "conllu"], "missing-column.conllu:6:"),
        ("no-words", ["conllu", None], "no-words.conllu"),
    ],
)
def test_a_bad_sentence_is_rejected_alone_and_named(benchmark_files, fault, reasons, message):
    items = list(UD.read(benchmark_files / "ud/bad" / f"{fault}.conllu", "dev", "en"))
    assert [getattr(item, "reason", None) for item in items] == reasons
    (bad,) = (item for item in items if isinstance(item, Rejection))
    assert message in bad.message


def test_text_that_differs_from_its_tokens_rejects_only_gold_mode(tmp_path):
    file = tmp_path / "x.conllu"
    line = "1\tA\ta\tX\t_\t_\t0\troot\t_\t_\n"
    file.write_text(f"# text = A\n{line}\n# text = B\n{line}\n", "utf-8")
    good, bad = UD.read(file, "dev", "en")
    assert isinstance(good, Example)
    assert (bad.example_id, bad.reason) == ("dev-4", "conllu")
    assert "x.conllu, line 4: " in bad.message
    assert all(isinstance(item, Example) for item in UD.read(file, "dev", "en", "pretokenized"))


def test_invalid_bytes_reject_their_sentence(tmp_path):
    line = b"1\tA\ta\tX\t_\t_\t0\troot\t_\t_\n"
    file = tmp_path / "x.conllu"
    file.write_bytes(b"# sent_id = s\xff\n" + line + b"\n" + line.replace(b"A", b"B"))
    bad, good = UD.read(file, "dev", "en")
    assert (bad.example_id, bad.reason) == ("s\\xff", "invalid_character")
    assert good.example_id == "dev-4"


def test_source_and_licence_are_those_of_the_treebanks(benchmark_files, tmp_path):
    for name in ("en_tiny", "en_small", "fr_tiny"):
        copy(benchmark_files / "ud" / "en_tiny-ud-dev.conllu", tmp_path / f"{name}-ud-dev.conllu")
    unread = UD.spec("dev", "fr", path=tmp_path)
    assert unread.source.endswith(": fr_tiny")
    assert unread.licence == UD.licence
    readme = "# Tiny\n\n=== Machine-readable metadata ===\nLicense: CC BY-SA 4.0\nGenre: news\n"
    (tmp_path / "README.md").write_text(readme, "utf-8")
    assert UD.spec("dev", "fr", path=tmp_path).licence == "CC BY-SA 4.0"
    file = tmp_path / "en_small-ud-dev.conllu"
    assert UD.spec("dev", "en", path=file).source.endswith(": en_small")


def test_windows_line_ends_and_byte_order_mark_are_dropped(tmp_path):
    line = "1\tA\ta\tX\t_\t_\t0\troot\t_\t_\r\n"
    file = tmp_path / "x.conllu"
    file.write_bytes(f"\ufeff# sent_id = s\r\n{line}\r\n".encode())
    (item,) = UD.read(file, "dev", "en")
    assert item.example_id == "s"
    assert item.segments[0].conllu == f"# sent_id = s\n{line}".replace("\r", "") + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["UD_English-EWT/en_ewt-ud-dev.conllu", "UD_Vietnamese-VTB/vi_vtb-ud-dev.conllu"],
)
def test_every_real_sentence_is_read(data_dir, path):
    file = data_dir / "treebanks" / path
    items = list(UD.read(file, "dev", "xx"))
    assert all(isinstance(item, Example) for item in items)
    read = [sentence for item in items for sentence in parse_conllu(item.segments[0].conllu)]
    assert read == list(read_conllu(file))
    assert [item.example_id for item in items] == [s.sent_id for s in read]
