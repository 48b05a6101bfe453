"""Every reader of the registry keeps the same promises."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS, Item, Part
from clients.benchmarks.base import canonical_split
from syntax.errors import InputError, SpecError, UnknownNameError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, Rejection, Segment
from syntax.trees.conllu import parse_conllu
from tests.clients.packed import PACKERS, pack_folder

FOLDERS = {
    "xnli": "pairs",
    **{name: "pronto" for name in BENCHMARKS if name.startswith("pronto_")},
    **{name: "senteval" for name in BENCHMARKS if name.startswith("senteval_")},
    "ud_probe_shift": "ud_probe",
    "codexglue_java_to_cs": "codexglue_translation",
    "codexglue_cs_to_java": "codexglue_translation",
}
"""Fixtures of a reader, where they are not in a folder of its name."""


@pytest.fixture(params=list(BENCHMARKS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def place(name: str, benchmark_files: Path) -> tuple[Path | None, str, str]:
    reader = BENCHMARKS[name]
    path = None if reader.bundled else benchmark_files / FOLDERS.get(name, name)
    first = reader.parts(path)[0]
    return path, first.split.replace("*", "dev"), first.lang.replace("*", "en")


def test_reader_states_what_it_is(name):
    reader = BENCHMARKS[name]
    assert reader.name == name
    assert reader.fields
    assert reader.modes
    assert reader.source
    assert reader.licence
    assert reader.layout
    assert reader.ids
    assert reader.rejects
    assert sorted(set(reader.langs)) == list(reader.langs)
    assert all(label.field in (None, *reader.fields) for label in reader.labels)


def test_reasons_are_names_of_errors(name):
    assert set(BENCHMARKS[name].rejects) <= _error_types(InputError)


def _error_types(error: type[InputError]) -> set[str]:
    return {error.error_type}.union(*map(_error_types, error.__subclasses__()))


def test_spec_repeats_the_statement_and_takes_a_name_and_mode(name, place):
    reader, path = BENCHMARKS[name], place[0]
    spec = reader.spec("dev", "en", path=path, name="mine", mode=reader.modes[-1])
    assert (spec.name, spec.split, spec.lang) == ("mine", "dev", "en")
    assert (spec.fields, spec.mode) == (reader.fields, reader.modes[-1])
    assert spec.labels == reader.labels_of(path)
    assert reader.spec("dev", "en", path=path).name == name
    assert reader.spec("dev", "en", path=path).mode == reader.modes[0]
    assert reader.spec("validation", "en", path=path).split == "dev"


def test_every_label_fits_its_column(name, place):
    reader = BENCHMARKS[name]
    examples = [x for x in reader.read(*place) if isinstance(x, Example)]
    for label in reader.labels_of(place[0]):
        for example in examples:
            _check_label(label, example, reader.fields)


def _check_label(label: LabelSpec, example: Example, fields: tuple[str, ...]) -> None:
    value = example.labels[label.name]
    if value is None:
        return
    segment = example.segments[0 if label.field is None else fields.index(label.field)]
    if label.kind == "class":
        assert value in label.names
    elif label.kind == "tags":
        assert set(value) <= set(label.names)
        assert len(value) == _tokens(segment)
    elif label.kind == "spans":
        assert all(0 <= start < end <= segment.characters for start, end, _ in value)
        assert not label.names or {span.label for span in value} <= set(label.names)
    else:
        assert isinstance(value, float if label.kind == "float" else str)


def _tokens(segment: Segment) -> int:
    if segment.tokens is not None:
        return len(segment.tokens)
    return sum(len(sentence.tokens) for sentence in parse_conllu(segment.conllu, "gold"))


def test_every_rejection_has_a_stated_reason(name, place):
    reader, path = BENCHMARKS[name], place[0]
    for part in reader.parts(path):
        items = reader.read_part(part, reader.modes[0])
        assert {x.reason for x in items if isinstance(x, Rejection)} <= set(reader.rejects)


def test_label_names_do_not_depend_on_the_order_of_the_files(name, place):
    reader = BENCHMARKS[name]
    if reader.names_in is not None:
        parts = reader.parts(place[0])
        assert reader.names_in(parts) == reader.names_in(parts[::-1])
        assert all(label.names for label in reader.labels_of(place[0]))


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


@pytest.mark.parametrize("ending", list(PACKERS))
def test_packed_files_are_read_as_the_files_in_them(name, place, ending, tmp_path):
    reader, (path, split, lang) = BENCHMARKS[name], place
    if path is not None:
        pack_folder(path, tmp_path, ending)
        plain, packed = (list(reader.read(x, split, lang)) for x in (path, tmp_path))
        assert [_unnamed(item) for item in packed] == [_unnamed(item) for item in plain]
        assert reader.labels_of(tmp_path) == reader.labels_of(path)


def _unnamed(item: Item) -> Item:
    """Without the message of a rejection, which has the name of the file."""
    return replace(item, message="") if isinstance(item, Rejection) else item


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n \n\t\n"])
def test_files_without_content_are_an_error_or_rejected(name, place, content, tmp_path):
    reader, (path, split, lang) = BENCHMARKS[name], place
    for file in path.rglob("*") if path is not None else ():
        target = tmp_path / file.relative_to(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file():
            target.write_bytes(content)
    items: list[Item] = []
    with suppress(InputError, UnknownNameError):
        items = list(reader.read(tmp_path, split, lang)) if path is not None else []
        assert items or path is None
    assert all(isinstance(item, Rejection) for item in items)


def test_every_mode_can_be_read(name, place):
    reader = BENCHMARKS[name]
    for mode in reader.modes:
        examples = [x for x in reader.read(*place, mode) if isinstance(x, Example)]
        assert examples
        forms = {"gold": "conllu"} | dict.fromkeys(TOKEN_MODES, "tokens")
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


def test_paws_and_pawsx_share_one_reader():
    assert BENCHMARKS["paws"] is BENCHMARKS["pawsx"]


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        *[(x, "dev") for x in ("dev", "valid", "validation", "val", "testa")],
        *[("testb", "test"), ("training", "train"), ("validation_matched", "dev_matched")],
        *[("test", "test"), ("odd", "odd"), ("my_testa", "my_testa"), ("extra", "extra")],
    ],
)
def test_split_names_are_canonical(name, canonical):
    assert canonical_split(name) == canonical


def test_parts_are_chosen_by_split_and_language(benchmark_files):
    wikiann, folder = BENCHMARKS["wikiann"], benchmark_files / "wikiann"
    assert [(x.split, x.lang) for x in wikiann.chosen(folder)] == [
        ("dev", "de"),
        ("dev", "en"),
        ("test", "xx"),
    ]
    assert [x.lang for x in wikiann.chosen(folder, split="validation")] == ["de", "en"]
    assert [x.split for x in wikiann.chosen(folder, lang="xx")] == ["test"]


def test_a_file_is_one_part_of_any_name(benchmark_files):
    file = benchmark_files / "wikiann" / "dev-en.tsv"
    assert BENCHMARKS["wikiann"].parts(file) == [Part("*", "*", (file,))]
    assert BENCHMARKS["wikiann"].chosen(file, "valid", "en") == [Part("dev", "en", (file,))]


def test_unknown_split_and_language_list_those_found(benchmark_files):
    folder = benchmark_files / "pairs"
    with pytest.raises(UnknownNameError, match=r"unknown split of \w+ 'tset'.* Known: dev"):
        BENCHMARKS["xnli"].read(folder, "tset", "en")
    with pytest.raises(UnknownNameError, match=r"unknown language .* 'fr'\. Known: de, en"):
        BENCHMARKS["xnli"].read(folder, "dev", "fr")


def test_a_file_is_read_as_the_split_and_language_that_the_user_states(benchmark_files):
    file = benchmark_files / "pairs" / "dev-de.tsv"
    ids = [item.example_id for item in BENCHMARKS["xnli"].read(file, "odd", "tlh")]
    assert ids == ["odd-1", "odd-2", "odd-3"]


def test_two_files_that_claim_one_part_are_refused(tmp_path):
    for treebank in ("ewt", "gum"):
        (tmp_path / f"en_{treebank}-ud-dev.conllu").touch()
    with pytest.raises(SpecError, match="several files hold dev in 'en'"):
        BENCHMARKS["ud"].read(tmp_path, "dev", "en")


def test_long_listings_are_cut(tmp_path):
    for number in range(12):
        (tmp_path / f"{number:02}.bin").touch()
    with pytest.raises(UnknownNameError, match=r"found 00\.bin, .*09\.bin and 2 more"):
        BENCHMARKS["xnli"].parts(tmp_path)
