"""Universal Dependencies treebanks: every CoNLL-U sentence is an example with its gold tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Part, attempt, register
from clients.benchmarks.lines import Line, blocks
from clients.files import plain_path
from syntax.errors import ConlluError
from syntax.examples import Example, Mode, Segment
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.conllu.treebank import readme_metadata
from syntax.trees.sentence import Sentence

_FILE_NAME = re.compile(r"(?P<lang>[^_]+)_.+-ud-(?P<split>[^-]+)\.conllu")
_SENT_ID = re.compile(rb"# *sent_id *= *(?P<id>.+)")

Lines = list[bytes]

Make = Callable[[str, str, Sentence, Mode], Example]

REJECTS: Final = {
    "conllu": "a sentence that breaks the format, or (gold) whose `# text` is not its tokens'",
    **dict.fromkeys(
        ("no_root", "multiple_roots", "cycle", "head_out_of_range", "missing_head", "empty_tree"),
        "a sentence whose heads form no tree",
    ),
    "invalid_character": "a sentence with a line that is not UTF-8",
}


def find_treebanks(folder: Path) -> Sequence[Part]:
    named = ((_FILE_NAME.fullmatch(plain_path(path).name), path) for path in folder.iterdir())
    return [Part(match["split"], match["lang"], (path,)) for match, path in named if match]


def read_sentences(part: Part, mode: Mode, *, make: Make) -> Iterator[Item]:
    for path in part.files:
        for first, lines in blocks(path):
            example_id = _sent_id(lines) or f"{part.split}-{first}"
            yield attempt(example_id, _example, lines, path, first, mode, make)


def _sent_id(lines: Lines) -> str | None:
    found = (match for match in map(_SENT_ID.fullmatch, lines) if match)
    match = next(found, None)
    return match["id"].decode("utf-8", "backslashreplace").strip() if match else None


def _example(
    example_id: str, lines: Lines, path: Path, first: int, mode: Mode, make: Make
) -> Example:
    texts = [Line(path, number, raw).text() for number, raw in enumerate(lines, first)]
    conllu = "\n".join(texts) + "\n\n"
    sentence = _only_sentence(conllu, path, first)
    if mode == "gold":
        # Storing it would refuse a tree whose words cannot be found in its text.
        try:
            parse_from_sentences([sentence])
        except ConlluError as error:
            raise ConlluError(f"{path.name}, line {first}: {error.message}", line=first) from None
    return make(example_id, conllu, sentence, mode)


def _plain(example_id: str, conllu: str, sentence: Sentence, mode: Mode) -> Example:
    return Example(example_id, (SEGMENTS[mode](conllu, sentence),))


def _only_sentence(conllu: str, path: Path, first: int) -> Sentence:
    """The sentence, whose faults are named before anything is sent."""
    try:
        sentences = list(parse_conllu(conllu, path.name))
    except ConlluError as error:
        # The same error, its line counted through the whole file.
        within = error.detail["line"]
        line = first + within - 1
        fault = error.message.removeprefix(f"{path.name}:{within}: ")
        raise ConlluError(f"{path.name}:{line}: {fault}", path=str(path), line=line) from None
    if len(sentences) != 1:
        raise ConlluError(f"{path.name}, line {first}: these lines are no sentence")
    _ = sentences[0].tree
    return sentences[0]


def _raw(_: str, sentence: Sentence) -> Segment:
    return Segment(text=sentence.text)


def _tokens(_: str, sentence: Sentence) -> Segment:
    return Segment(tokens=tuple(token.form for token in sentence.tokens))


SOURCE: Final = "Universal Dependencies, https://universaldependencies.org"
LICENCE: Final = "as the treebank's (see its README)"


def origin_of(parts: Sequence[Part]) -> tuple[str, str]:
    files = [file for part in parts for file in part.files]
    names = dict.fromkeys(file.stem.partition("-ud-")[0] for file in files)
    stated = (readme_metadata(folder) for folder in dict.fromkeys(file.parent for file in files))
    licences = dict.fromkeys(said["License"] for said in stated if "License" in said)
    return f"{SOURCE}: {', '.join(names)}", "; ".join(licences) or LICENCE


SEGMENTS: Final[dict[Mode, Callable[[str, Sentence], Segment]]] = {
    "gold": lambda conllu, _: Segment(conllu=conllu),
    "raw": _raw,
    "sentence": _raw,
    "pretokenized": _tokens,
    "retokenize": _tokens,
    "tokens_mwt": _tokens,
}

LAYOUT: Final = "a .conllu file, or a folder of files {lang}_{treebank}-ud-{split}.conllu"
IDS: Final = "sent_id, or {split}-{line} of a sentence without one"

UD: Final = register(
    Benchmark(
        name="ud",
        fields=("text",),
        labels=(),
        modes=tuple(SEGMENTS),
        layout=LAYOUT,
        source=SOURCE,
        licence=LICENCE,
        origin=origin_of,
        find=find_treebanks,
        read_part=partial(read_sentences, make=_plain),
        ids=IDS,
        rejects=REJECTS,
        quirks=("each sentence is an example; documents are not joined",),
    )
)
