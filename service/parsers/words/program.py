"""The programs of a parser of given words: sentences in, trees and tags out.

Letters in shapes: ``B`` sentences, ``W`` words, ``H`` heads: ROOT and the words, ``R`` relations,
``D`` width, ``T`` tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.parsers.columns import Annotation
from service.parsers.onnx import open_program
from service.parsers.words.encoding import Sentence, padded
from service.parsers.words.folder import TAGS, ParserCard
from syntax.parsing.folder import RELATIONS, WORDS
from syntax.trees.mst import are_root, best_relations, spanning_tree

_REMEDY: Final = "add the model again with this release"


class Program:
    """An exported parser, loaded."""

    def __init__(self, folder: Path, card: ParserCard, *, gpu: bool) -> None:
        self._card = card
        self._words = open_program(folder / WORDS, _REMEDY, gpu=gpu)
        self._relations = open_program(folder / RELATIONS, _REMEDY, gpu=gpu)
        self._is_root_R = are_root(card.relations)

    def annotations(self, sentences: Sequence[Sentence]) -> list[Annotation]:
        """Tree and tags of each sentence; the sentences are one batch."""
        arrays = padded(sentences, self._card.special_tokens.pad_id)
        states_BWD, arcs_BWH, *tags = self._words.run(None, arrays._asdict())
        heads_BW = self._heads(sentences, arcs_BWH)
        (relations_BWR,) = self._relations.run(None, {"states": states_BWD, "heads": heads_BW})
        tag_ids = [scores_BWT.argmax(-1) for scores_BWT in tags]
        relations_BW = relations_BWR.argmax(-1)
        if self._card.single_root:
            relations_BW = best_relations(relations_BWR, heads_BW == 0, self._is_root_R)
        return [
            self._annotation(one, heads_BW[row], relations_BW[row], [ids[row] for ids in tag_ids])
            for row, one in enumerate(sentences)
        ]

    def _heads(self, sentences: Sequence[Sentence], arcs_BWH: NDArray[Any]) -> NDArray[np.int64]:
        """Best tree of each sentence, 0 on padding. *Shape:* (B, W)."""
        heads_BW = np.zeros(arcs_BWH.shape[:2], np.int64)
        for row, one in enumerate(sentences):
            size = len(one.form)
            scores_WH = arcs_BWH[row, :size, : size + 1]
            heads_BW[row, :size] = spanning_tree(scores_WH, self._card.single_root)
        return heads_BW

    def _annotation(
        self,
        one: Sentence,
        heads: NDArray[np.int64],
        relations: NDArray[np.int64],
        tags: Sequence[NDArray[np.int64]],
    ) -> Annotation:
        size = len(one.form)
        columns: dict[str, Sequence[str | None]] = {
            column: [None] * size for column in ("lemma", *TAGS)
        }
        for (column, names), ids in zip(self._card.tags.items(), tags, strict=True):
            columns[column] = [names[tag] for tag in ids[:size].tolist()]
        return Annotation(
            form=one.form,
            head=heads[:size].tolist(),
            deprel=[self._card.relations[relation] for relation in relations[:size].tolist()],
            **columns,
        )
