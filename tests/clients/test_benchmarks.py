"""Every reader of the registry keeps the same promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS, Part
from clients.benchmarks.base import _listing, attempt
from syntax.errors import EmptyTextError, SpecError, UnknownNameError
from syntax.examples import Example, Rejection, Segment

PLACES = {
    "xnli": ("pairs", "dev", "en"),
    "pawsx": ("pawsx", "dev", "en"),
    "ud": ("ud", "dev", "en"),
    "text": ("text", "dev", "en"),
    "sample": (None, "dev", "en"),
}


@pytest.fixture(params=list(BENCHMARKS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def place(name: str, benchmark_files: Path) -> tuple[Path | None, str, str]:
    folder, split, lang = PLACES[name]
    return (None if folder is None else benchmark_files / folder), split, lang


def test_reader_states_what_it_is(name):
    reader = BENCHMARKS[name]
    assert reader.name == name
    assert reader.fields
    assert reader.modes
    assert reader.source
    assert reader.licence
    assert reader.layout


def test_spec_repeats_the_statement_and_takes_a_name_and_mode(name):
    reader = BENCHMARKS[name]
    spec = reader.spec("dev", "en", name="mine", mode=reader.modes[-1])
    assert (spec.name, spec.split, spec.lang) == ("mine", "dev", "en")
    assert (spec.fields, spec.labels, spec.mode) == (reader.fields, reader.labels, reader.modes[-1])
    assert reader.spec("dev", "en").name == name
    assert reader.spec("dev", "en").mode == reader.modes[0]


def test_every_item_is_an_example_of_the_stated_shape_or_a_rejection(name, place):
    reader = BENCHMARKS[name]
    items = list(reader.read(*place))
    assert items
    for item in items:
        if isinstance(item, Example):
            assert len(item.segments) == len(reader.fields)
            assert set(item.labels) == {label.name for label in reader.labels}
    identities = [item.example_id for item in items]
    assert all(identities)
    assert len(set(identities)) == len(identities)


def test_reading_twice_gives_the_same(name, place):
    reader = BENCHMARKS[name]
    assert list(reader.read(*place)) == list(reader.read(*place))


def test_every_mode_can_be_read(name, place):
    reader = BENCHMARKS[name]
    for mode in reader.modes:
        examples = [x for x in reader.read(*place, mode) if isinstance(x, Example)]
        assert examples
        forms = {"gold": "conllu", "pretokenized": "tokens", "retokenize": "tokens"}
        form = forms.get(mode, "text")
        assert all(getattr(s, form) is not None for x in examples for s in x.segments)


def test_unknown_mode_lists_the_known_ones(name):
    with pytest.raises(SpecError, match="cannot be read in mode 'telepathy'"):
        BENCHMARKS[name].mode("telepathy")


def test_missing_path_names_path_and_layout(name, tmp_path):
    with pytest.raises(UnknownNameError, match=r"there is no file or folder .*nowhere; expected"):
        BENCHMARKS[name].read(tmp_path / "nowhere", "dev", "en")


def test_empty_folder_says_what_was_expected_and_found(name, tmp_path):
    (tmp_path / "README.md").touch()
    with pytest.raises(UnknownNameError, match=r"expected .*; found README\.md"):
        BENCHMARKS[name].read(tmp_path, "dev", "en")


def test_only_a_bundled_benchmark_needs_no_path(name):
    reader = BENCHMARKS[name]
    if reader.bundled is None:
        with pytest.raises(SpecError, match="needs a path"):
            reader.read(None, "dev", "en")
    else:
        assert list(reader.read(None, "dev", "en"))


def test_unknown_benchmark_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"unknown benchmark 'xnly'\. Did you mean 'xnli'"):
        BENCHMARKS["xnly"]


def test_unknown_split_and_language_list_those_found(benchmark_files):
    folder = benchmark_files / "pairs"
    with pytest.raises(UnknownNameError, match=r"unknown split 'tset'.* Known: dev"):
        BENCHMARKS["xnli"].read(folder, "tset", "en")
    with pytest.raises(UnknownNameError, match=r"unknown language .* 'fr'\. Known: de, en"):
        BENCHMARKS["xnli"].read(folder, "dev", "fr")


def test_parts_are_discovered_from_file_names(benchmark_files):
    folder = benchmark_files / "pairs"
    assert BENCHMARKS["pawsx"].parts(folder) == [
        Part("dev", "de", (folder / "dev-de.tsv",)),
        Part("dev", "en", (folder / "dev-en.tsv",)),
    ]


def test_a_file_is_read_as_the_split_and_language_that_the_user_states(benchmark_files):
    file = benchmark_files / "pairs" / "dev-de.tsv"
    ids = [item.example_id for item in BENCHMARKS["xnli"].read(file, "odd", "tlh")]
    assert ids == ["odd-1", "odd-2", "odd-3"]


def test_two_files_that_claim_one_part_are_refused(tmp_path):
    for treebank in ("ewt", "gum"):
        (tmp_path / f"en_{treebank}-ud-dev.conllu").touch()
    with pytest.raises(SpecError, match="several files hold dev in 'en'"):
        BENCHMARKS["ud"].read(tmp_path, "dev", "en")


def test_attempt_turns_a_named_error_into_a_rejection():
    def fail() -> Example:
        raise EmptyTextError("nothing there")

    assert attempt("x-1", fail) == Rejection("x-1", "empty_text", "nothing there")
    example = Example("x-1", (Segment(text="a"),))
    assert attempt("x-1", lambda: example) is example


def test_long_listings_are_cut(tmp_path):
    for number in range(12):
        (tmp_path / f"{number:02}.bin").touch()
    assert _listing(tmp_path).endswith("09.bin and 2 more")
