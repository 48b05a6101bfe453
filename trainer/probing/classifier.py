"""SentEval's classifier of vectors: one hidden layer, or logistic regression.

Conneau and Kiela 2018, "SentEval: An Evaluation Toolkit for Universal Sentence Representations".
Size, dropout and L2 are chosen on dev, and so is the pass at which training ends.

Letters in shapes: ``I`` items, ``D`` width of the vectors, ``C`` classes.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.probing.options import Activation, ClassifierOptions


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors, (I, D), float32, and their classes, (I,), int64."""

    inputs_ID: Tensor
    gold_I: Tensor

    @classmethod
    def of(cls, inputs: NDArray[np.float32], gold: NDArray[np.int64]) -> Vectors:
        """Vectors on the first GPU, if there is one."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(torch.as_tensor(inputs, device=device), torch.as_tensor(gold, device=device))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained classifier, its accuracy on dev, and the options that were chosen."""

    accuracy: float
    hidden: int
    dropout: float
    l2: float
    model: nn.Module

    @torch.no_grad()
    def right(self, items: Vectors) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = _right(self.model, items).cpu().numpy()
        return found


def new_classifier(
    width: int, classes: int, hidden: int, dropout: float, activation: Activation
) -> nn.Sequential:
    if not hidden:
        return nn.Sequential(nn.Linear(width, classes))
    # Dropout before the activation, as SentEval has it.
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.Dropout(dropout),
        nn.Sigmoid() if activation == "sigmoid" else nn.ReLU(),
        nn.Linear(hidden, classes),
    )


def fit(
    train: Vectors, dev: Vectors, classes: int, options: ClassifierOptions, seed: int
) -> Fitted:
    """The classifier that is best on dev, among those of all sizes, dropouts and L2."""
    choices = product(options.hidden, options.dropout, options.l2)
    tried = (
        _fit(train, dev, classes, hidden, dropout, l2, options, seed)
        for hidden, dropout, l2 in dict.fromkeys(
            (size, dropout if size else 0.0, l2) for size, dropout, l2 in choices
        )
    )
    return max(tried, key=lambda one: one.accuracy)


def _fit(
    train: Vectors,
    dev: Vectors,
    classes: int,
    hidden: int,
    dropout: float,
    l2: float,
    options: ClassifierOptions,
    seed: int,
) -> Fitted:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        width = train.inputs_ID.shape[1]
        model = new_classifier(width, classes, hidden, dropout, options.activation)
        model.to(train.inputs_ID.device)
        optimizer = torch.optim.Adam(
            model.parameters(), options.learning_rate, weight_decay=l2, fused=True
        )
        best, kept, without_better, epoch = -1.0, model, 0, 0
        while epoch < options.max_epochs and without_better <= options.tenacity:
            for _ in range(options.epoch_size):
                _pass(model, optimizer, train, options.batch_size)
            epoch += options.epoch_size
            with torch.no_grad():
                accuracy = float(_right(model, dev).float().mean())
            if accuracy > best:
                best, kept = accuracy, copy.deepcopy(model)
            else:  # looks without a better one are counted through, as SentEval does
                without_better += 1
    return Fitted(best, hidden, dropout, l2, kept)


def _pass(
    model: nn.Module, optimizer: torch.optim.Optimizer, items: Vectors, batch_size: int
) -> None:
    model.train()
    for chosen in torch.randperm(len(items.gold_I)).split(batch_size):
        at = chosen.to(items.gold_I.device)
        loss = F.cross_entropy(model(items.inputs_ID[at]), items.gold_I[at])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


def _right(model: nn.Module, items: Vectors) -> Tensor:
    model.eval()
    parts = items.inputs_ID.split(4096)
    predicted = torch.cat([model(part).argmax(-1) for part in parts])
    return predicted == items.gold_I
