"""Attention, matrices and pieces of a trained model on one example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from syntax.registry import unknown_name
from trainer.data import Source, device_batches, matrices_of
from trainer.evaluation.pictures import Panel
from trainer.evaluation.trained import TrainedRun

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore
    from trainer.batch import SyntaxBatch

_ATTENTION: Final = "attention.self"


@dataclass(frozen=True, slots=True)
class Inspected:
    """One sequence of an example.

    Attributes:
        labels: Text of each of the L positions; later pieces of a word begin with ``##``.
        attention: Weights by number of the layer; those of a layer on top of the encoder, such as
            SG-Net's, come last. *Shape:* (N, L, L) for N heads, rows attend.
        matrices: By name. *Shape:* (L, L), or (L,).
    """

    labels: list[str]
    attention: Mapping[int, NDArray[np.float32]]
    matrices: Mapping[str, NDArray[Any]]

    def attention_panel(self, layer: int | None = None, head: int | None = None) -> Panel:
        """The attention of a layer, the last by default, of one head or their mean."""
        chosen = max(self.attention) if layer is None else layer
        if chosen not in self.attention:
            known = ", ".join(map(str, self.attention))
            raise SpecError(f"there is no layer {layer}; there are {known}")
        weights_NLL = self.attention[chosen]
        if head is None:
            return Panel(f"attention, layer {chosen}", weights_NLL.mean(0))
        if not 0 <= head < len(weights_NLL):
            raise SpecError(f"there is no head {head}; layer {chosen} has {len(weights_NLL)}")
        return Panel(f"attention, layer {chosen}, head {head}", weights_NLL[head])

    def matrix_panel(self, name: str) -> Panel:
        """One of the matrices; blank where there is no path."""
        values = self.matrices[name]
        if values.dtype.kind == "u" and values.ndim == 2:
            values = np.where(values == np.iinfo(values.dtype).max, np.nan, values)
        return Panel(name, np.atleast_2d(values.astype(np.float32)))


def inspect_example(
    run: TrainedRun,
    store: FeatureStore,
    source: Source,
    example_id: str,
    matrices: Sequence[str] = ("distance",),
    sequence: int = 0,
) -> Inspected:
    """Run the model on one stored example.

    The run's model has the attention implementation ``eager``. The matrices are names of
    `syntax.matrices.MATRICES`, beside those that the model reads.
    """
    if run.recipe.model.reads_words:
        raise SpecError(
            f"{run.recipe.model.name} reads words of a frozen encoder: it has no layer that gives "
            "attention weights over pieces"
        )
    data = _only(store, source.dataset, example_id)
    names = tuple(dict.fromkeys((*matrices, *matrices_of(run.recipe))))
    recipe = replace(run.recipe, data=replace(run.recipe.data, matrices="host"))
    stream = source.evaluation_stream(recipe, data, matrices=names)
    (batch,) = device_batches(stream, recipe, source.task, run.model.device)
    if not 0 <= sequence < len(batch):
        raise SpecError(f"{example_id!r} is {len(batch)} sequences; there is no {sequence}")
    length = int(batch.lengths_B[sequence])
    known = _shown(data)
    ids = batch.arrays["input_ids"][sequence, :length].tolist()
    padded = {name: batch.arrays[name][sequence] for name in names}
    return Inspected(
        labels=[known[piece] for piece in ids],
        attention=captured_attention(run.model, batch, sequence),
        matrices={name: of[(slice(length),) * of.ndim] for name, of in padded.items()},
    )


@torch.no_grad()
def captured_attention(
    model: nn.Module, batch: SyntaxBatch, sequence: int = 0
) -> dict[int, NDArray[np.float32]]:
    """Attention weights of every layer on one sequence of a batch, by the layer's number.

    The model has the attention implementation ``eager``. *Shape:* (N, L, L) each, for N heads and L
    real positions.
    """
    found: dict[int, NDArray[np.float32]] = {}
    length = int(batch.lengths_B[sequence])

    def keep(module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(output[1], Tensor):
            weights_NLL = output[1][sequence, :, :length, :length]
            found[cast(int, module.layer_idx)] = weights_NLL.float().cpu().numpy()

    model.eval()
    with _hooked(model, keep):
        model(batch)
    if not found:
        raise SpecError("the model has no layer that gives attention weights over pieces")
    return dict(sorted(found.items()))


@contextmanager
def _hooked(model: nn.Module, hook: Callable[[nn.Module, Any, Any], None]) -> Iterator[None]:
    layers = [module for name, module in model.named_modules() if name.endswith(_ATTENTION)]
    handles = [layer.register_forward_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _only(store: FeatureStore, data: FeatureDataset, example_id: str) -> FeatureDataset:
    from featurestore import FeatureDataset

    names = data.columns(["example_id"])["example_id"].to_pylist()
    if example_id not in names:
        raise unknown_name(f"example of {data.name}", example_id, names)
    rows = data.rows.select(np.array([names.index(example_id)], np.intp))
    return FeatureDataset(store, data.card, data.version, rows, data.reader)


def _shown(data: FeatureDataset) -> dict[int, str]:
    """The text of each token id of an example: its characters, or [CLS] or [SEP]."""
    (texts,) = data.columns(["texts"])["texts"].to_pylist()
    (whole,) = data.stream(
        batch_size=1, max_length=None, matrices=(), assembly=AssemblySpec(offsets=True)
    )
    special = data.special_tokens
    shown = dict.fromkeys((*special.separator, *special.suffix), "[SEP]")
    shown |= dict.fromkeys(special.prefix, "[CLS]")
    names = ("input_ids", "segment_ids", "word_ids", "offset_mapping")
    before = (-1, -1)
    for piece, segment, word, (start, end) in zip(
        *(whole[n][0].tolist() for n in names), strict=True
    ):
        if segment >= 0:
            later = word >= 0 and before == (segment, word)
            text = ("##" if later else "") + texts[segment][start:end]
            # One piece for texts that differ in case: the tokenizer lowers them.
            shown[piece] = text if shown.get(piece, text) == text else text.lower()
        before = (segment, word)
    return shown
