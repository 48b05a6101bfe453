"""The exported programs of a parser: sentences in, scores and trees out.

Letters in shapes: ``B`` sentences, ``W`` words, ``H`` heads: ROOT and the words, ``D`` width,
``R`` relations, ``T`` tags.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.parsers.columns import Annotation
from service.parsers.own.encoding import Sentence, padded
from service.parsers.own.folder import RELATIONS, TAGS, WORDS, ParserCard
from syntax.errors import ModelLoadError
from syntax.extras import missing_extra
from syntax.trees.mst import are_root, best_relations, spanning_tree


class Program:
    """An exported parser, loaded onto a device.

    Args:
        folder: Of the exported parser.
        card: What its ``parser.json`` says.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, folder: Path, card: ParserCard, device: str) -> None:
        self._card, self._device = card, device
        self._words = _loaded(folder / WORDS, device)
        self._relations = _loaded(folder / RELATIONS, device)
        self._is_root_R = are_root(card.relations)

    def annotations(self, sentences: Sequence[Sentence]) -> list[Annotation]:
        """Tree and tags of each sentence; the sentences are one batch."""
        import torch

        arrays = padded(sentences, self._card.special_tokens.pad_id)
        with torch.inference_mode():
            tensors = [torch.from_numpy(array).to(self._device) for array in arrays]
            states_BWD, arcs_BWH, *tags = self._words(*tensors)
            heads_BW = self._heads(sentences, arcs_BWH.float().cpu().numpy())
            heads = torch.from_numpy(heads_BW).to(self._device)
            relations_BWR = self._relations(states_BWD, heads).float().cpu().numpy()
            tag_ids = [scores_BWT.argmax(-1).cpu().numpy() for scores_BWT in tags]
        relations_BW = relations_BWR.argmax(-1)
        if self._card.single_root:
            relations_BW = best_relations(relations_BWR, heads_BW == 0, self._is_root_R)
        return [
            self._annotation(one, heads_BW[row], relations_BW[row], [ids[row] for ids in tag_ids])
            for row, one in enumerate(sentences)
        ]

    def _heads(self, sentences: Sequence[Sentence], arcs_BWH: NDArray[Any]) -> NDArray[np.int64]:
        """The best tree of each sentence, 0 on padding. *Shape:* (B, W)."""
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


def _loaded(path: Path, device: str) -> Any:
    """A program as a function."""
    try:
        import torch
        from torch.export.passes import move_to_device_pass
    except ImportError as error:
        problem = f"models of Parsebank's own need torch, which cannot be imported ({error})"
        raise missing_extra(problem, "train") from None
    # One thread per process: the workers are the cores, and threads would not survive the fork.
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.load(path)
            if device != "cpu":
                program = move_to_device_pass(program, device)
            return program.module()
    except Exception as error:
        # Torch has no error of its own for a damaged file: zip, pickle and JSON raise anything.
        raise ModelLoadError(
            f"torch cannot load {path} on {device}: {type(error).__name__}: {str(error)[:300]}; "
            "add the model again with this release",
            path=str(path),
        ) from error
