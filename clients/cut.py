"""Cutting of tokens to the pieces that a sequence may have, before they are parsed.

A stream cuts sequences after the parse, and keeps the matrices of the whole tree. MicroBERT
(Gessler, Zeldes 2022, as released for lr-sib) removes the first word that makes a sequence too
long and all words after it, and parses the rest as a sentence of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clients.client.staging import Sent
from syntax.errors import SpecError, TextTooLongError
from syntax.examples import TOKEN_MODES, DatasetSpec, Example, Rejection, Segment
from syntax.strict_json import parse_json
from syntax.trees.conllu import parse_conllu

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CUT: Final = "cut"


def cut_items(
    spec: DatasetSpec, items: Iterable[Sent], tokenizer: Path, max_pieces: int
) -> Iterator[Sent]:
    """Examples whose sequences have at most ``max_pieces`` pieces, special tokens included.

    Each token is encoded alone. A cut example has the repair `CUT`, and its tags are cut too.
    Gold trees that are too long, and examples of which nothing is left, become rejections. The
    examples must have one field, of tokens or gold trees, and no spans.
    """
    _check(spec)
    backend = piece_counter(tokenizer)
    room = max_pieces - backend.num_special_tokens_to_add(False)

    def sizes(tokens: Sequence[str]) -> list[int]:
        encodings = backend.encode_batch(list(tokens), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    return (_cut(spec, item, sizes, room) if isinstance(item, Example) else item for item in items)


def _check(spec: DatasetSpec) -> None:
    if spec.mode not in (*TOKEN_MODES, "gold") or len(spec.fields) != 1:
        raise SpecError(
            f"`max_pieces` cuts examples of one field of tokens; {spec.name} has the mode "
            f"{spec.mode!r} and {len(spec.fields)} fields. Choose the mode pretokenized, or let "
            "the stream cut (truncation, stride)"
        )
    spans = [label.name for label in spec.labels if label.kind == "spans"]
    if spans:
        raise SpecError(f"`max_pieces` would cut texts that the label {spans[0]} has spans of")


def piece_counter(folder: Path) -> Tokenizer:
    """Tokenizer of a folder, by its ``tokenizer.json`` or as BERT's by its ``vocab.txt``."""
    from tokenizers import BertWordPieceTokenizer, Tokenizer

    path, vocabulary = folder / "tokenizer.json", folder / "vocab.txt"
    if not path.is_file() and not vocabulary.is_file():
        raise SpecError(
            f"`max_pieces` counts with a tokenizer's own files, and there is no {path} and no "
            f"{vocabulary.name} beside it; name the folder of a tokenizer"
        )
    try:
        if path.is_file():
            backend = Tokenizer.from_file(str(path))
        else:
            said = folder / "tokenizer_config.json"
            config: Any = parse_json(said.read_text("utf-8")) if said.is_file() else {}
            backend = BertWordPieceTokenizer(
                vocab=str(vocabulary),
                lowercase=config.get("do_lower_case", True),
                strip_accents=config.get("strip_accents"),
                handle_chinese_chars=config.get("tokenize_chinese_chars", True),
            )._tokenizer
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise SpecError(f"the tokenizer in {folder} cannot be read ({error})") from None
    backend.no_truncation()
    backend.no_padding()
    return backend


def _cut(
    spec: DatasetSpec, example: Example, sizes: Callable[[Sequence[str]], list[int]], room: int
) -> Example | Rejection:
    (segment,) = example.segments
    tokens = _tokens(segment)
    kept, used = 0, 0
    for size in sizes(tokens):
        used += size
        if used > room:
            break
        kept += 1
    if kept == len(tokens):
        return example
    if spec.mode == "gold" or not kept:
        what = "its gold tree is not cut" if spec.mode == "gold" else "so has its first token"
        message = f"the text has more than the {room} pieces that a sequence holds, and {what}"
        return Rejection(example.example_id, TextTooLongError.error_type, message)
    labels = {
        label.name: value[:kept] if isinstance(value, tuple) else value
        for label in spec.labels
        for value in (example.labels[label.name],)
    }
    short = Segment(tokens=tuple(tokens[:kept]))
    return replace(example, segments=(short,), labels=labels, repairs=(*example.repairs, CUT))


def _tokens(segment: Segment) -> Sequence[str]:
    if segment.tokens is not None:
        return segment.tokens
    sentences = parse_conllu(segment.conllu or "")
    return [token.form for sentence in sentences for token in sentence.tokens]
