"""``usl.v1``: trees of pieces, for the parser inside UD-PrLM (universal syntax learning).

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words, ``C`` labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syntax.batches import IGNORE
from syntax.batches.words import WordLayout
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.trees.mst import spanning_tree
from trainer.batch import SyntaxBatch
from trainer.metrics.dependency import AttachmentScores
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.parser_targets import column_ids, learned_rows
from trainer.nn.piece_parser import RESERVED, PieceScores, piece_loss
from trainer.tasks.base import Arrays, Head, Task
from trainer.tasks.dependency import DependencyScorer, check_gold
from trainer.tasks.options import UslOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig

HEADS: Final = "usl_heads"
LABELS: Final = "usl_labels"
FIRST: Final = "usl_first"
SENTENCES: Final = "usl_sentences"


class Usl(Task):
    """Heads and labels of pieces."""

    def __init__(self, options: UslOptions, labels: Mapping[str, LabelSpec]) -> None:  # noqa: ARG002
        self.metric: str = options.metric
        self._options = options

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """Targets of pieces (`piece_targets`), and the first piece and sentence of each word."""
        layout: WordLayout = arrays["word_layout"]
        first_BL = first_pieces(layout)
        first_BW = np.full(layout.words.shape, -1, np.int64)
        row, column = np.nonzero(first_BL)
        first_BW[row, layout.pieces[row, column]] = column
        heads_BL, labels_BL = piece_targets(self._options, arrays)
        sentences_BW = layout.sentences.astype(np.int64)
        return {HEADS: heads_BL, LABELS: labels_BL, FIRST: first_BW, SENTENCES: sentences_BW}

    def scorer(self, data: FeatureDataset | None) -> UslScorer:
        options = self._options
        check_gold(data, options.trees)
        return UslScorer(options.labels, options.trees, options.metric, HEADS)


def first_pieces(layout: WordLayout) -> NDArray[np.bool_]:
    """The first piece of each word that has one. *Shape:* (B, L)."""
    first_BL = np.zeros(layout.pieces.shape, bool)
    for row, words in enumerate(layout.pieces):
        number, at = np.unique(words, return_index=True)
        first_BL[row, at[number >= 0]] = True
    return first_BL


def piece_targets(
    options: UslOptions, arrays: Arrays
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The head of each position, a position, and its label, (B, L) each; -100 for nothing to learn.

    The root of a sentence hangs from position 0, and so do special tokens, with the label ``_``. A
    piece that hangs from its own word has the label ``APP``; any other, the relation of its word.
    Nothing is learned of a sentence of which something was cut.
    """
    layout: WordLayout = arrays["word_layout"]
    shape = layout.pieces.shape
    heads_BL, labels_BL = (np.full(shape, IGNORE, np.int64) for _ in range(2))
    if "parses" not in arrays or not layout.words.shape[1]:
        return heads_BL, labels_BL
    word_BL = np.maximum(layout.pieces, 0)
    whole_BL = np.take_along_axis(layout.whole, word_BL, 1) & (layout.pieces >= 0)
    learned_BL = whole_BL & learned_rows(arrays, options.trees)[:, None]
    above_BL = np.maximum(arrays["parents"], 0).astype(np.int64)
    relations_BW = column_ids(arrays, "deprel", options.labels)
    relations_BL = np.take_along_axis(relations_BW, word_BL, 1)
    own_BL = np.take_along_axis(layout.pieces, above_BL, 1) == layout.pieces
    appended_BL = own_BL & ~first_pieces(layout)
    found_BL = np.where(appended_BL, RESERVED.index("APP"), relations_BL)
    heads_BL[learned_BL], labels_BL[learned_BL] = above_BL[learned_BL], found_BL[learned_BL]
    if options.specials_in_loss:
        special_BL = arrays["attention_mask"].astype(bool) & arrays["special_tokens_mask"]
        special_BL = special_BL & learned_BL.any(1, keepdims=True)
        heads_BL[special_BL], labels_BL[special_BL] = 0, RESERVED.index("_")
    return heads_BL, labels_BL


class UslHead(Head):
    """The loss of the encoder's parser, and the trees of words that it gives; it has no weights."""

    needs = frozenset({"tree_scores"})

    options: UslOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        self._of_model: list[int] = []

    def connect(self, encoder: Encoder) -> None:
        known = list(getattr(encoder, "labels", ()))
        if not known:
            raise SpecError(
                "usl.v1 trains the parser inside udprlm.v1, and this model has none; set "
                "model.name=udprlm.v1 and model.use_syntax=true"
            )
        if unknown := sorted(set(self.options.labels) - set(known)):
            raise SpecError(
                f"the trees have the labels {', '.join(unknown)}, which the parser of the model "
                "does not know; train it on trees that have them, or set task.labels"
            )
        self._of_model = [known.index(name) for name in self.options.labels]

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """The loss, and in evaluation the trees of words; int64.

        ``heads`` (B, W): 0 for ROOT, i for the i-th word of the sequence, -1 of a word without a
        piece. ``relations`` (B, W). ``reserved`` (B, W): 1 where the best of all labels is not a
        word's. ``repaired`` (B,): sentences whose best heads are not a tree.
        """
        scores = encoding.tree_scores
        assert scores is not None
        of_model_C = torch.tensor(self._of_model, device=batch.labels[LABELS].device)
        labels_BL = batch.labels[LABELS]
        ours_BL = torch.where(labels_BL < 0, labels_BL, of_model_C[labels_BL.clamp(min=0)])
        loss = piece_loss(scores, batch.labels[HEADS], ours_BL)
        return HeadOutput({} if self.training else self._decoded(scores, batch, of_model_C), loss)

    def _decoded(
        self, scores: PieceScores, batch: SyntaxBatch, of_model_C: Tensor
    ) -> dict[str, Tensor]:
        first_BW = batch.labels[FIRST]
        arcs_BLH = scores.arcs_BLH.detach().float().cpu().numpy()
        rows = zip(arcs_BLH, first_BW.cpu().numpy(), batch.labels[SENTENCES].cpu(), strict=True)
        found = [word_heads(arcs, first, sentences.numpy()) for arcs, first, sentences in rows]
        device = first_BW.device
        heads_BW = torch.from_numpy(np.stack([heads for heads, _ in found])).to(device)
        # The position of each word's head; of ROOT and of no head, [CLS].
        above_BW = first_BW.gather(1, (heads_BW - 1).clamp(min=0)).clamp(min=0)
        above_BW = torch.where(heads_BW > 0, above_BW, 0)
        at_BW = first_BW.clamp(min=0)
        heads_BL = torch.zeros_like(batch.input_ids_BL).scatter(1, at_BW, above_BW)
        labels_BLC = scores.of_heads(heads_BL).index_select(2, of_model_C)
        labels_BWC = labels_BLC.gather(1, at_BW[..., None].expand(-1, -1, len(of_model_C)))
        best_BW, reserved = labels_BWC.argmax(2), len(RESERVED)
        is_reserved_BW = (best_BW < reserved) & (first_BW >= 0)
        if self.options.mask_reserved:
            best_BW = reserved + labels_BWC[..., reserved:].argmax(2)
        repaired_B = torch.tensor([count for _, count in found], device=device)
        return {
            "heads": heads_BW,
            "relations": best_BW,
            "reserved": is_reserved_BW.long(),
            "repaired": repaired_B,
        }


def word_heads(
    arcs_LH: NDArray[np.float32], first_W: NDArray[np.int64], sentences_W: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """The heads of the words of a sequence (0 for ROOT, -1 for none), and the trees searched for.

    Each word takes its best head in its sentence, or ROOT; only where this makes no tree with one
    root, the best tree is looked for. ``first_W`` is -1 of words without a piece.
    """
    heads_W, repaired = np.full(len(first_W), -1, np.int64), 0
    for sentence in np.unique(sentences_W[sentences_W >= 0]).tolist():
        words = np.flatnonzero((sentences_W == sentence) & (first_W >= 0))
        if not len(words):
            continue
        at = first_W[words]
        scores = arcs_LH[np.ix_(at, np.concatenate([[0], at]))].astype(np.float64)
        others = scores.copy()
        others[np.arange(len(words)), np.arange(len(words)) + 1] = -np.inf
        best = others.argmax(1)
        if not is_tree(best):
            best, repaired = spanning_tree(scores), repaired + 1
        heads_W[words] = np.concatenate([[0], words + 1])[best]
    return heads_W, repaired


def is_tree(heads: NDArray[np.integer[Any]]) -> bool:
    """True of heads, 1-based and 0 for ROOT, that make a tree with one word below ROOT."""
    above = np.concatenate([[0], heads])
    reached = above.copy()
    for _ in range(len(heads)):
        reached = above[reached]
    return bool((heads == 0).sum() == 1 and not reached.any())


@dataclass(frozen=True, slots=True)
class UslScores(AttachmentScores):
    """Scores of trees of words; a sentence is repaired whose best heads are not a tree."""

    reserved_words: int = 0
    repaired_sentences: int = 0


class UslScorer(DependencyScorer):
    """Collects trees, example by example, and counts reserved labels and repaired sentences."""

    _reserved = _repaired = 0

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        super().add(output, batch)
        self._reserved += int(output.logits["reserved"].sum())
        self._repaired += int(output.logits["repaired"].sum())

    def scores(self) -> UslScores:
        return UslScores(
            **asdict(super().scores()),
            reserved_words=self._reserved,
            repaired_sentences=self._repaired,
        )
