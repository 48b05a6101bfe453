"""Phrase and tree samples of small batches, and the contrastive losses by loops, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from syntax.contrast import read_sampler
from trainer.batch import SyntaxBatch
from trainer.models.model import SyntaxModel
from trainer.nn.attention import LayerAttention, LocalAttention
from trainer.nn.rows import AttentionRows

HEADS = 2
Vector = list[float]


def with_samples(batch: SyntaxBatch, *samplers: str, seed: int = 0) -> SyntaxBatch:
    """The batch with the samples that its stream would give it."""
    keys = [f"example-{row}" for row in range(len(batch))]
    extras = dict(batch.extras)
    for sampler in samplers:
        found = read_sampler(sampler).sample(batch.arrays, keys, seed, 0)
        extras |= {name: torch.from_numpy(array) for name, array in found.items()}
    return replace(batch, extras=extras)


def learned(model: SyntaxModel, batch: SyntaxBatch, name: str) -> tuple[float, float]:
    """An objective's loss before and after 40 steps on the same batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(40):
        loss = model(batch).objectives[name]
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses[0], losses[-1]


def rows_of(states: torch.Tensor, batch: SyntaxBatch, **parts: Any) -> AttentionRows:
    """Rows of a layer whose queries and keys are the states, cut into heads."""
    B, L, D = states.shape
    query = states.view(B, L, HEADS, D // HEADS).transpose(1, 2)
    rows = AttentionRows()
    mask = batch.attention_mask_BL[:, None, None]
    rows.record(LayerAttention(query, 0.5 * query.roll(1, 1), mask, **parts))
    return rows


def mean_weights(rows: AttentionRows) -> np.ndarray:
    """What each piece attends to, a mean over heads, by loops. *Shape:* (B, L, L), float64."""
    layer = rows.layer
    query, key = (states.detach().double().numpy() for states in (layer.query, layer.key))
    B, N, L, D = query.shape
    mask = layer.mask.expand(B, N, L, L).numpy()
    found = np.zeros((B, L, L))
    for b in range(B):
        for n in range(N):
            for i in range(L):
                scores = [
                    query[b, n, i] @ key[b, n, j] / math.sqrt(D) if mask[b, n, i, j] else -math.inf
                    for j in range(L)
                ]
                weights = softmax(scores)
                if layer.local is not None:
                    weights = mixed(weights, scores, layer.local, b, i)
                found[b, i] += np.array(weights) / N
    return found


def mixed(every: Vector, scores: Vector, local: LocalAttention, b: int, i: int) -> Vector:
    """Li et al. 2021, equation 8."""
    share = float(local.weight_BL[b, i])
    near = softmax(
        [score if local.mask_BLL[b, i, j] else -math.inf for j, score in enumerate(scores)]
    )
    return [(1 - share) * one + share * other for one, other in zip(every, near, strict=True)]


def softmax(scores: Vector) -> Vector:
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return [weight / sum(weights) for weight in weights]


def samples_of(batch: SyntaxBatch, name: str, *fields: str) -> Iterator[tuple[Any, ...]]:
    """Example of each sample, and its fields; cells of -1 are left out."""
    offsets = batch.extra(f"{name}_offsets").tolist()
    arrays = [batch.extra(f"{name}_{field}").tolist() for field in fields]
    for example in range(len(offsets) - 1):
        for at in range(offsets[example], offsets[example + 1]):
            yield (example, *(_filled(array[at]) for array in arrays))


def _filled(value: Any) -> Any:
    """A list without its unused cells, and without lists that have only such."""
    if not isinstance(value, list):
        return value
    kept = [_filled(one) for one in value if one != -1]
    return [one for one in kept if one != []]


def divergence(x: Vector, y: Vector, real: list[int], epsilon: float = 0.0) -> float:
    """Jensen-Shannon, in nats; ``epsilon`` stands in both logarithms."""

    def kl(a: Vector, b: Vector) -> float:
        return sum(a[k] * math.log((a[k] + epsilon) / (b[k] + epsilon)) for k in real if a[k] > 0)

    middle = [(a + b) / 2 for a, b in zip(x, y, strict=True)]
    return (kl(x, middle) + kl(y, middle)) / 2


def info_nce(positive: float, negatives: Vector, tau: float = 0.1) -> float:
    total = sum(math.exp(one / tau) for one in (positive, *negatives))
    return -math.log(math.exp(positive / tau) / total)


def published(positive: float, negatives: Vector) -> float:
    return info_nce(-positive, [-one for one in negatives])


def synclm(positive: float, negatives: Vector) -> float:
    return -info_nce(positive, negatives)


PHRASE_LOSSES: dict[str, Callable[[float, Vector], float]] = {
    "as_published": published,
    "synclm": synclm,
    "lr_sib": info_nce,
}


def slow_phrase_loss(
    batch: SyntaxBatch, rows: AttentionRows, form: str, per_position: bool | None = None
) -> float:
    """Equations 10 and 11 of Gessler and Schneider (2023), or one of the released functions."""
    weights, losses = mean_weights(rows), []
    for example, anchor, positive, negatives in samples_of(
        batch, "phrase", "anchor", "positive", "negatives"
    ):
        real = np.flatnonzero(batch.attention_mask_BL[example].numpy()).tolist()
        own = weights[example]
        if form == "lr_sib":
            own = own.clip(min=1e-6)
        epsilon = 1e-6 if form == "synclm" else 0.0
        found = [divergence(own[anchor], own[i], real, epsilon) for i in (positive, *negatives)]
        if form == "lr_sib" if per_position is None else per_position:
            found = [one / len(real) for one in found]
        losses.append(PHRASE_LOSSES[form](found[0], found[1:]))
    return float(np.mean(losses)) if losses else 0.0


def slow_similarity(states: np.ndarray, root: int, members: list[int], with_root: bool) -> float:
    """Cosine of the root's state with the sum of the members', weighted by their products."""
    chosen = [j for j in members if with_root or j != root]
    weights = softmax([float(states[root] @ states[j]) for j in chosen])
    whole = sum(weight * states[j] for weight, j in zip(weights, chosen, strict=True))
    return float(states[root] @ whole / np.linalg.norm(states[root]) / np.linalg.norm(whole))


def slow_tree_loss(
    batch: SyntaxBatch, states: torch.Tensor, tree_root: str = "out", tree_topk: str = "masked"
) -> float:
    """Equation 12 of Gessler and Schneider (2023), and lr-sib's choice of negatives."""
    found = list(samples_of(batch, "tree", "root", "positive", "negatives"))
    columns = max((len(negatives) for *_, negatives in found), default=0)
    losses = []
    for example, root, positive, negatives in found:
        own = states[example].detach().double().numpy()
        near, *far = (
            slow_similarity(own, root, members, tree_root == "in")
            for members in (positive, *negatives)
        )
        if tree_topk == "released":
            padded = [*far, *[0.0] * (columns - len(far))]
            hardest = sorted(padded, reverse=True)[: min(3, len(far))]
        else:
            hardest = sorted(far, reverse=True)[:3]
        losses.append(info_nce(near, hardest))
    return float(np.mean(losses)) if losses else 0.0
