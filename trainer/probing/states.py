"""States of all layers of an encoder, of words and of whole texts, computed in one pass.

A word's state is the mean of its pieces'. Texts are cut at the length that the encoder reads.

Letters in shapes: ``K`` layers, ``N`` examples, ``T`` words of all examples, ``B`` examples of a
batch, ``L`` wordpieces, ``W`` words, ``D`` width of the states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.data import MATRICES_OF_A_BATCH, assembly_of, matrices_of
from trainer.nn.stock import run_pieces
from trainer.probing.words import Encoded
from trainer.systems.frozen.options import FrozenOptions
from trainer.systems.frozen.states import BATCH, piece_means, stock_encoder, window_of
from trainer.systems.frozen.words import word_arrays

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.evaluation.trained import TrainedRun
    from trainer.probing.options import Pool

Layers = list[Tensor]
"""States of the pieces, of each layer. *Shape:* (B, L, D) each."""


class LayeredEncoder(Protocol):
    """An encoder that gives the states of all its layers."""

    def batches(self, data: FeatureDataset) -> Iterator[tuple[dict[str, Any], Layers]]:
        """The arrays of each batch, with ``first_pieces``, and the states of its pieces."""
        ...


class StockLayers:
    """A stock encoder of transformers, as it is."""

    def __init__(self, options: FrozenOptions, data: FeatureDataset) -> None:
        self._model = stock_encoder(options, data)
        self._model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]

    @torch.no_grad()
    def batches(self, data: FeatureDataset) -> Iterator[tuple[dict[str, Any], Layers]]:
        assembly = AssemblySpec(
            max_length=window_of(self._model) + data.special_tokens.count(1),
            matrices=(),
            joint_root=False,
            separator_edge="none",
            first_pieces=True,
        )
        for arrays in data.stream(batch_size=BATCH, shuffle=False, assembly=assembly):
            names = ("input_ids", "attention_mask", "token_type_ids")
            pieces = (torch.as_tensor(arrays[name]).to(self._model.device) for name in names)
            output = run_pieces(self._model, *pieces, output_hidden_states=True)
            yield arrays, [states.float().cpu() for states in output.hidden_states]


class RunLayers:
    """The encoder of a finished run, which may read the trees of the dataset.

    A model's own layers above the stock encoder count as one more layer. Models that read stored
    states, and examples of several sequences, are refused.
    """

    def __init__(self, run: TrainedRun) -> None:
        if run.recipe.model.reads_words:
            raise SpecError(
                f"{run.recipe.model.name} reads the states of another encoder; probe that one"
            )
        if run.recipe.data.rearranges:
            raise SpecError(
                "the run divides examples (data.template, data.stride, data.level), and a probe "
                "reads an example as one sequence"
            )
        self._run = run

    @torch.no_grad()
    def batches(self, data: FeatureDataset) -> Iterator[tuple[dict[str, Any], Layers]]:
        model, recipe = self._run.model, self._run.recipe
        model.eval()  # type: ignore[no-untyped-call]
        recipe = replace(recipe, data=replace(recipe.data, matrices="host"))
        extras = [
            *recipe.model.extras(),
            *(name for name in matrices_of(recipe) if name not in MATRICES_OF_A_BATCH),
        ]
        wanted = {"output_hidden_states": True} if "hidden_states" in model.encoder.gives else {}
        assembly = replace(assembly_of(recipe), first_pieces=True)
        for given in data.stream(batch_size=BATCH, shuffle=False, assembly=assembly):
            arrays = dict(recipe.model.arrays(given))
            batch = SyntaxBatch.from_numpy(arrays, extras=extras).to(model.device)
            encoding = model.encoder(batch, **wanted)
            layers = list(encoding.hidden_states or ())
            last = encoding.last_hidden_state
            if not layers or not torch.equal(layers[-1], last):
                layers.append(last)
            yield arrays, [states.float().cpu() for states in layers]


_OF_WORDS: Final = ("upos", "deprel", "sentence_ids")


def encode(encoder: LayeredEncoder, data: FeatureDataset, pool: Pool) -> Encoded:
    parts: list[dict[str, Any]] = []
    before = 0
    for arrays, layers in encoder.batches(data):
        part = _of_batch(arrays, layers, pool)
        part["parents"] = np.where(part["parents"] < 0, -1, part["parents"] + before)
        before += len(part["parents"])
        parts.append(part)
    count = len(parts[0]["words"])
    joined = {
        name: np.concatenate([part[name] for part in parts])
        for name in ("counts", "parents", *_OF_WORDS)
    }
    return Encoded(
        words=[np.concatenate([part["words"][at] for part in parts]) for at in range(count)],
        vectors=[np.concatenate([part["vectors"][at] for part in parts]) for at in range(count)],
        starts=np.concatenate([[0], np.cumsum(joined["counts"])]),
        pieces=[word for part in parts for word in part["pieces"]],
        parents=joined["parents"],
        upos=joined["upos"],
        deprel=joined["deprel"],
        sentences=joined["sentence_ids"],
        dataset=data,
    )


def _of_batch(arrays: Mapping[str, Any], layers: Layers, pool: Pool) -> dict[str, Any]:
    words, owner_BL = word_arrays(arrays), owners(arrays)
    counts_B = words["lengths"].astype(np.int64)
    starts_B = np.cumsum(counts_B) - counts_B
    real_BW = np.arange(words["word_ids"].shape[1]) < counts_B[:, None]
    row, column = np.nonzero(owner_BL >= 0)
    target = starts_B[row] + owner_BL[row, column]
    size = int(counts_B.sum())
    pieces: list[list[int]] = [[] for _ in range(size)]
    for word, piece in zip(target.tolist(), arrays["input_ids"][row, column].tolist(), strict=True):
        pieces[word].append(piece)
    parents_BW = np.where(words["parents"] < 0, -1, words["parents"] + starts_B[:, None])
    target_P = torch.as_tensor(target)
    text_BL = torch.as_tensor(arrays["attention_mask"] & ~arrays["special_tokens_mask"])
    return {
        "counts": counts_B,
        "parents": parents_BW[real_BW],
        "pieces": [tuple(word) for word in pieces],
        "words": [piece_means(states[row, column], target_P, size).numpy() for states in layers],
        "vectors": [pooled(states, text_BL, pool) for states in layers],
        **{name: words[name][real_BW] for name in _OF_WORDS},
    }


def owners(arrays: Mapping[str, Any]) -> NDArray[np.int64]:
    """The word of each piece, (B, L), counted in its row; -1 of special tokens and padding."""
    first_BL = arrays["first_pieces"]
    number_BL = np.cumsum(first_BL, axis=1) - 1
    begun_BL = np.maximum.accumulate(np.where(first_BL, np.arange(first_BL.shape[1]), -1), axis=1)
    same_BL = begun_BL >= 0
    for name in ("word_ids", "segment_ids"):
        own_BL = arrays[name]
        same_BL &= np.take_along_axis(own_BL, np.maximum(begun_BL, 0), axis=1) == own_BL
    found: NDArray[np.int64] = np.where(same_BL, number_BL, -1)
    return found


def pooled(states_BLD: Tensor, text_BL: Tensor, pool: Pool) -> NDArray[np.float16]:
    """Vectors of texts, float16, (B, D); zeros for a text without pieces in ``text_BL``."""
    if pool == "cls":
        vectors_BD = states_BLD[:, 0]
    elif pool == "mean":
        weights_BL1 = text_BL[:, :, None].float()
        vectors_BD = (states_BLD * weights_BL1).sum(1) / weights_BL1.sum(1).clamp(min=1)
    else:
        vectors_BD = states_BLD.masked_fill(~text_BL[:, :, None], -torch.inf).amax(1)
        vectors_BD = vectors_BD.masked_fill(vectors_BD.isinf(), 0.0)
    most = torch.finfo(torch.float16).max
    found: NDArray[np.float16] = vectors_BD.clamp(-most, most).half().numpy()
    return found
