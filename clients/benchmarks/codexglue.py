"""CodeXGLUE (Lu et al. 2021), as PLBART reads it: its files, after its own preparing scripts.

White space of code is one space, as in the released fine-tuning scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.base import (
    Benchmark,
    Item,
    Part,
    attempt,
    files_like,
    named_parts,
    register,
)
from clients.benchmarks.documents import parsed_object, text_of
from clients.benchmarks.lines import Line, check_characters, numbered_lines
from clients.files import plain_path
from syntax.errors import EmptyTextError, ExampleError, InputError, LabelError, SpecError
from syntax.examples import Example, LabelSpec, Mode, Segment

TARGET: Final = LabelSpec("target", "string")
LABEL: Final = LabelSpec("label", "class", ("0", "1"))

_SPLITS: Final = r"(?P<split>train|dev|valid|test)"
_PAIR: Final = "java-cs"
_DATA: Final = "data.jsonl"


def _one_line(text: str, where: str) -> str:
    found = " ".join(text.split())
    if not found:
        raise EmptyTextError(f"{where} is empty; expected a text")
    return found


def _joined(record: dict[str, Any], key: str, where: str) -> str:
    """A text by its list of tokens, or as it stands."""
    tokens = record.get(f"{key}_tokens")
    if tokens is None:
        return text_of(record, key, where)
    if not (isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)):
        raise ExampleError(f"{where}: '{key}_tokens' is {tokens!r:.60}; expected a list of texts")
    found = " ".join(tokens)
    check_characters(found, f"{where}: '{key}_tokens'")
    return found


def _generated(example_id: str, source: str, target: str | None, where: str) -> Example:
    """Text to be written from another; an empty one is not labelled, as in Concode's test."""
    label = " ".join((target or "").split()) or None
    return Example(example_id, (Segment(text=_one_line(source, where)),), {TARGET.name: label})


def _summary(example_id: str, line: Line) -> Example:
    record = parsed_object(line.text(), line.where)
    code, comment = (_joined(record, key, line.where) for key in ("code", "docstring"))
    return _generated(example_id, code, comment, line.where)


def _program(example_id: str, line: Line) -> Example:
    record = parsed_object(line.text(), line.where)
    code = None if record.get("code") is None else text_of(record, "code", line.where)
    return _generated(example_id, text_of(record, "nl", line.where), code, line.where)


def _defect(example_id: str, line: Line) -> Example:
    record = parsed_object(line.text(), line.where)
    target = record.get("target")
    if target is not None and (isinstance(target, bool) or target not in (0, 1)):
        raise LabelError(f"{line.where}: 'target' is {target!r}; expected 0 or 1")
    code = _one_line(text_of(record, "func", line.where), line.where)
    label = None if target is None else str(int(target))
    return Example(example_id, (Segment(text=code),), {LABEL.name: label})


def _read_lines(part: Part, mode: Mode, make: Callable[[str, Line], Example]) -> Iterator[Item]:  # noqa: ARG001
    for path in part.files:
        for line in numbered_lines(path):
            yield attempt(f"{part.split}-{line.number}", make, line)


def _read_clones(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    beside = files_like(path.parent, _DATA)
    if not beside:
        raise SpecError(f"{path} has no {_DATA} beside it, which has the functions of its pairs")
    functions = dict(_functions(beside[0]))
    for line in numbered_lines(path):
        yield attempt(f"{part.split}-{line.number}", _clone, line, functions)


def _functions(path: Path) -> Iterator[tuple[str, str | InputError]]:
    """Functions by their number, or what is wrong with them."""
    for line in numbered_lines(path):
        try:
            record = parsed_object(line.text(), line.where)
        except InputError as error:
            raise SpecError(f"{error.message}; the numbers of its pairs lead here") from None
        try:
            yield str(record.get("idx")), _one_line(text_of(record, "func", line.where), line.where)
        except InputError as error:
            yield str(record.get("idx")), error


def _clone(example_id: str, line: Line, functions: dict[str, str | InputError]) -> Example:
    *numbers, label = line.fields(("function", "function", "label"))
    if label not in LABEL.names:
        raise LabelError(f"{line.where} has the label {label!r}; expected 0 or 1")
    segments = []
    for number in numbers:
        found = functions.get(number)
        if found is None:
            raise ExampleError(f"{line.where}: {_DATA} has no function {number!r}")
        if isinstance(found, InputError):
            raise found
        segments.append(Segment(text=found))
    return Example(example_id, tuple(segments), {LABEL.name: label})


def _read_translations(part: Part, mode: Mode, source: str, target: str) -> Iterator[Item]:  # noqa: ARG001
    (path,) = part.files
    stem = plain_path(path).name.removesuffix(f".{source}")
    others = files_like(path.parent, f"{stem}.{target}")
    if not others:
        raise SpecError(f"{path} has no {stem}.{target} beside it; give the folder of both")
    both = zip_longest(numbered_lines(path), numbered_lines(others[0]))
    for number, lines in enumerate(both, 1):
        yield attempt(f"{part.split}-{number}", _translation, lines, (path, others[0]), number)


def _translation(
    example_id: str, lines: tuple[Line | None, Line | None], files: Sequence[Path], number: int
) -> Example:
    source, target = lines
    if source is None or target is None:
        raise ExampleError(
            f"{files[lines.index(None)].name} has no line {number:,}, but the other file does; "
            "lines before this may not fit either"
        )
    translation = _one_line(target.text(), target.where)
    return _generated(example_id, source.text(), translation, source.where)


_SOURCE: Final = "CodeXGLUE, https://github.com/microsoft/CodeXGLUE"
_REJECTS: Final = {
    "example": "a line that is not a record, or lacks a text",
    "invalid_character": "a line that is not UTF-8",
    "empty_text": "a text without characters",
}
_QUIRKS: Final = ("the language of a part is the user's: that of the parser to read code with",)


def _reader(
    name: str,
    labels: tuple[LabelSpec, ...],
    pattern: str,
    layout: str,
    licence: str,
    read: Callable[[Part, Mode], Iterator[Item]],
    fields: tuple[str, ...] = ("source",),
    rejects: dict[str, str] | None = None,
    quirks: tuple[str, ...] = (),
) -> Benchmark:
    return register(
        Benchmark(
            name=f"codexglue_{name}",
            fields=fields,
            labels=labels,
            modes=("sentence", "raw"),
            layout=layout,
            source=_SOURCE,
            licence=licence,
            find=partial(named_parts, patterns=(pattern,)),
            read_part=read,
            ids="{split}-{line}",
            rejects=_REJECTS | (rejects or {}),
            quirks=(*_QUIRKS, *quirks),
            general=True,
            named_only=True,
        )
    )


_BLIND: Final = ("an empty or missing target is unlabelled",)
_NO_LABEL: Final = {"label": "another label than 0 and 1"}

SUMMARIZATION: Final = _reader(
    "summarization",
    (TARGET,),
    rf"{_SPLITS}\.jsonl",
    "a folder of files {split}.jsonl with code_tokens or code, and docstring_tokens or docstring",
    "CodeSearchNet's: that of each repository",
    partial(_read_lines, make=_summary),
    quirks=_BLIND,
)
GENERATION: Final = _reader(
    "generation",
    (TARGET,),
    rf"{_SPLITS}\.jsonl?",
    "a folder of files {split}.json (Concode) of lines with nl and code",
    "not stated; see https://github.com/sriniiyer/concode",
    partial(_read_lines, make=_program),
    quirks=_BLIND,
)
DEFECT: Final = _reader(
    "defect",
    (LABEL,),
    rf"{_SPLITS}\.jsonl",
    "a folder of files {split}.jsonl with func and target (1: vulnerable)",
    "not stated; see https://sites.google.com/view/devign",
    partial(_read_lines, make=_defect),
    fields=("code",),
    rejects=_NO_LABEL,
)
CLONE: Final = _reader(
    "clone",
    (LABEL,),
    rf"{_SPLITS}\.txt",
    "a folder of data.jsonl with idx and func, and files {split}.txt of two numbers and a label "
    "(1: clones), separated by TAB",
    "not stated; see https://github.com/clonebench/BigCloneBench",
    _read_clones,
    fields=("first", "second"),
    rejects=_NO_LABEL,
)
JAVA_TO_CS, CS_TO_JAVA = (
    _reader(
        f"{source}_to_{target}",
        (TARGET,),
        rf"{_SPLITS}\.{_PAIR}\.txt\.{source}",
        f"a folder of files {{split}}.{_PAIR}.txt.java and .cs, line by line translations",
        "that of each project: Apache-2.0 and others",
        partial(_read_translations, source=source, target=target),
    )
    for source, target in (("java", "cs"), ("cs", "java"))
)
