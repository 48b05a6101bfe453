"""A tokenizer and the vectors of its pieces, for the texts that are to be read.

Half of a small encoder, and most of a multilingual one, are vectors of pieces that one language
never has. What is left out is written with shorter pieces; single characters stay. A script that
the encoder never saw, such as Coptic's, gets pieces, whose vectors are drawn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import tokenizers
import torch
from tokenizers import Regex, models, pre_tokenizers, trainers
from torch import nn

from syntax.batches import SpecialTokens
from syntax.errors import SpecError
from syntax.strict_json import parse_json

_CONTINUED: Final = "##"
_SPACE: Final = "▁"


_APART: Final = (
    r"[[\p{P}\p{S}]&&[^▁]]"
    r"|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
"""Punctuation and symbols, but for what stands for a space, and scripts without spaces."""


def separated(tokenizer: Any) -> Any:
    """A tokenizer whose pieces end where a token may.

    Unigram's pieces join punctuation (``),``) and Chinese characters, so that up to 9 % of the
    tokens of a treebank would end within a piece. BERT's tokenizer keeps both apart already.
    """
    made = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    if parse_json(made.to_str())["model"]["type"] == "Unigram":
        apart = pre_tokenizers.Split(Regex(_APART), "isolated")
        before = [] if made.pre_tokenizer is None else [made.pre_tokenizer]
        made.pre_tokenizer = pre_tokenizers.Sequence([*before, apart])
    return made


_NEW_PIECES: Final = 2_000
_OFTEN: Final = 10
"""Times that a character without a piece must occur to get one."""


def extended(tokenizer: Any, words: Iterable[str]) -> Any:
    """A Unigram tokenizer with further pieces, the last ones, for characters that it lacks.

    They are learned from words, so that few of them cross the words of a multiword token (Kudo
    2018, https://aclanthology.org/P18-1007). Other tokenizers stay as they are.
    """
    content = parse_json(tokenizer.to_str())
    if content["model"]["type"] != "Unigram":
        return tokenizer
    runs = _unknown_runs(tokenizer, words, content["model"]["unk_id"])
    counts = Counter("".join(runs))
    runs = [run for run in runs if all(counts[character] >= _OFTEN for character in run)]
    if not runs:
        return tokenizer
    learned = tokenizers.Tokenizer(models.Unigram())
    trainer = trainers.UnigramTrainer(vocab_size=_NEW_PIECES, show_progress=False)
    learned.train_from_iterator(runs, trainer)
    pieces = parse_json(learned.to_str())["model"]["vocab"]
    # Threads sum in any order: scores are equal to about 15 digits, and come in any order.
    content["model"]["vocab"] += sorted([name, round(score, 6)] for name, score in pieces)
    return tokenizers.Tokenizer.from_str(json.dumps(content, ensure_ascii=False))


def _unknown_runs(tokenizer: Any, words: Iterable[str], unknown: int) -> list[str]:
    found = []
    for word in words:
        encoding = tokenizer.encode(word, add_special_tokens=False)
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        found += [word[start:end] for piece, (start, end) in spans if piece == unknown]
    return found


def used_pieces(tokenizer: Any, texts: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for text in texts:
        found.update(tokenizer.encode(text, add_special_tokens=False).ids)
    return found


def trimmed(
    tokenizer: Any, special: SpecialTokens, used: set[int]
) -> tuple[Any, SpecialTokens, list[int]]:
    """A tokenizer of fewer pieces, its special tokens, and the former id of each of its pieces."""
    content = parse_json(tokenizer.to_str())
    model = content["model"]
    if model["type"] == "WordPiece":
        names = sorted(model["vocab"], key=model["vocab"].__getitem__)
        ids = [model["vocab"][name] for name in names]
    elif model["type"] == "Unigram":
        names = [name for name, _ in model["vocab"]]
        ids = list(range(len(names)))
    else:
        raise SpecError(
            f"a tokenizer of the kind {model['type']} cannot be trimmed; give --whole-vocabulary"
        )
    stays = used | _ids_of(special) | {one["id"] for one in content["added_tokens"]}
    kept = [
        (name, at)
        for name, at in zip(names, ids, strict=True)
        if at in stays or len(name.removeprefix(_CONTINUED).removeprefix(_SPACE)) == 1
    ]
    number = {at: new for new, (_, at) in enumerate(kept)}
    added = [one for one in content["added_tokens"] if one["id"] in number]
    content["added_tokens"] = [{**one, "id": number[one["id"]]} for one in added]
    content["post_processor"] = None  # it names ids; special tokens are told apart from it
    if model["type"] == "WordPiece":
        model["vocab"] = {name: number[at] for name, at in kept}
    else:
        model["vocab"] = [model["vocab"][at] for _, at in kept]
        model["unk_id"] = number[model["unk_id"]]
    made = tokenizers.Tokenizer.from_str(json.dumps(content, ensure_ascii=False))
    return made, _renumbered(special, number), [at for _, at in kept]


def keep_rows(encoder: Any, ids: Sequence[int], known: int | None = None) -> None:
    """Reduce an encoder to the vectors of some pieces, in that order.

    Those from the id ``known`` on, by default from the end of the encoder's table, are drawn, with
    the mean and the deviation of the others. Some tables have more rows than pieces.
    """
    table = encoder.get_input_embeddings().weight.detach()[:known]
    new = max(0, max(ids) + 1 - len(table))
    drawn = table.mean(0) + table.std(0) * torch.randn(new, table.shape[1])
    rows = torch.cat([table, drawn])[torch.tensor(ids)].clone()
    encoder.set_input_embeddings(nn.Embedding.from_pretrained(rows, freeze=False))
    encoder.config.vocab_size = len(ids)


def _ids_of(special: SpecialTokens) -> set[int]:
    named = (special.pad_id, special.mask_id, special.unk_id)
    framing = (*special.prefix, *special.separator, *special.suffix)
    return {*framing, *(one for one in named if one is not None)}


def _renumbered(special: SpecialTokens, number: dict[int, int]) -> SpecialTokens:
    return SpecialTokens(
        prefix=tuple(number[one] for one in special.prefix),
        separator=tuple(number[one] for one in special.separator),
        suffix=tuple(number[one] for one in special.suffix),
        pad_id=number[special.pad_id],
        vocab_size=len(number),
        segment_type_ids=special.segment_type_ids,
        mask_id=None if special.mask_id is None else number[special.mask_id],
        unk_id=None if special.unk_id is None else number[special.unk_id],
    )
