"""How fast the order-free graph parser trains: sentences a second, beside plain PyTorch.

    python -m benchmarks.graph_parser [--rounds 12] [--only selfatt,rnn]

Ours is the real loop over a real store with the published recipe, delexicalised. The plain version
is the same model as one would write it down: modules of torch, a padded batch, a loop over words
for LSTMs with variational dropout, vectors of all pairs' distances; nothing is stored or evaluated.
In each round both take a step over the same sentences (data, forward, backward, clipping, Adam) on
one thread; what counts is CPU time, and the median of the ratio over rounds. Sentences are those of
UD_English-EWT where PARSEBANK_DATA is set, else random trees.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.pretrain import GOLD, append, sentences
from benchmarks.result import write_result
from featurestore import FeatureStore, open_store
from syntax.trees.conllu import parse_from_sentences
from syntax.trees.parse import Parse
from syntax.trees.ud import UPOS
from trainer.loop import Run
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

RECIPE: Final = {"selfatt": "orderfree-selfatt-graph-delex", "rnn": "orderfree-rnn-graph-delex"}
LONGEST, DEV = 100, 16


# The plain version


class PlainAttention(nn.Module):
    """Self-attention with distances (Shaw et al. 2018, without the sign)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, 512) for _ in range(3))
        self.output, self.dropout = nn.Linear(512, width), nn.Dropout(0.2)
        self.keys, self.values = nn.Embedding(11, 64), nn.Embedding(11, 64)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """New states of words, padding not attended to."""
        batch, length, _ = states.shape
        query, key, value = (
            one(states).view(batch, length, 8, 64).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        places = torch.arange(length)
        distance = (places[None] - places[:, None]).abs().clamp(max=10)
        query = query / 8
        scores = query @ key.transpose(2, 3)
        scores = scores + torch.einsum("bnis,ijs->bnij", query, self.keys(distance))
        scores = scores.masked_fill(~real[:, None, None], float("-inf"))
        shares = self.dropout(scores.softmax(-1))
        context = shares @ value + torch.einsum("bnij,ijs->bnis", shares, self.values(distance))
        return self.output(context.transpose(1, 2).flatten(2))


class PlainSelfAtt(nn.Module):
    """Six pre-norm layers."""

    def __init__(self, width: int = 50) -> None:
        super().__init__()
        self.width = width
        self.attention = nn.ModuleList(PlainAttention(width) for _ in range(6))
        self.networks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, width))
            for _ in range(6)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(13))
        self.dropout = nn.Dropout(0.2)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """States after all layers."""
        for number, (attention, network) in enumerate(
            zip(self.attention, self.networks, strict=True)
        ):
            states = states + self.dropout(attention(self.norms[2 * number](states), real))
            states = states + self.dropout(network(self.norms[2 * number + 1](states)))
        return self.norms[-1](states)


class PlainLstms(nn.Module):
    """Three bidirectional LSTMs with variational dropout, word by word."""

    def __init__(self, width: int = 50) -> None:
        super().__init__()
        self.width = 600
        self.cells = nn.ModuleList(
            nn.ModuleList(nn.LSTMCell(size, 300) for _ in range(2)) for size in (width, 600, 600)
        )

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """States of both directions beside each other."""
        for ahead, back in self.cells:
            both = (self._read(ahead, states, real, 1), self._read(back, states, real, -1))
            states = torch.cat(both, dim=2)
        return states

    def _read(self, cell: nn.Module, states: Tensor, real: Tensor, step: int) -> Tensor:
        batch, length, width = states.shape
        inputs = F.dropout(states.new_ones(batch, width), 0.33, self.training)
        recurrent = F.dropout(states.new_ones(batch, 300), 0.33, self.training)
        hidden = memory = states.new_zeros(batch, 300)
        found: list[Tensor] = [hidden] * length
        for at in range(length)[::step]:
            new, kept = cell(states[:, at] * inputs, (hidden * recurrent, memory))
            there = real[:, at, None]
            hidden, memory = torch.where(there, new, hidden), torch.where(there, kept, memory)
            found[at] = hidden
        return torch.stack(found, dim=1)


class PlainParser(nn.Module):
    """Tags, an encoder, and the graph decoder."""

    def __init__(self, encoder: PlainSelfAtt | PlainLstms, relations: int, dropout: float) -> None:
        super().__init__()
        self.tags, self.encoder = nn.Embedding(len(UPOS) + 3, 50), encoder
        self.arc_head, self.arc_word = (nn.Linear(encoder.width, 512) for _ in range(2))
        self.type_head, self.type_word = (nn.Linear(encoder.width, 128) for _ in range(2))
        self.arcs = nn.Parameter(torch.empty(513, 513))
        self.types = nn.Bilinear(129, 129, relations + 3, bias=False)
        self.dropout = nn.Dropout1d(dropout)
        nn.init.xavier_uniform_(self.arcs)

    def forward(self, tags: Tensor, heads: Tensor, types: Tensor) -> Tensor:
        """The loss of heads and relations."""
        real = tags > 0
        states = self._dropped(self.encoder(self.tags(tags), real))
        arc_head, arc_word = self._both(self.arc_head, self.arc_word, states)
        scores = arc_word @ self.arcs @ arc_head.transpose(1, 2)
        scores = scores.masked_fill(~real[:, None], -1e8)[:, 1:]
        type_head, type_word = self._both(self.type_head, self.type_word, states)
        right = heads.clamp(min=0)[:, :, None].expand(-1, -1, 129)
        found = self.types(type_word[:, 1:], type_head.gather(1, right))
        arc_loss = F.cross_entropy(scores.transpose(1, 2), heads, ignore_index=-100)
        return arc_loss + F.cross_entropy(found.transpose(1, 2), types, ignore_index=-100)

    def _both(self, head: nn.Module, word: nn.Module, states: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([F.elu(head(states)), F.elu(word(states))], dim=1)
        heads, words = self._dropped(both).chunk(2, dim=1)
        return F.pad(heads, (0, 1), value=1.0), F.pad(words, (0, 1), value=1.0)

    def _dropped(self, states: Tensor) -> Tensor:
        return self.dropout(states.transpose(1, 2)).transpose(1, 2)


@dataclass
class Plain:
    """Sentences as numbers, a model, and an optimizer."""

    name: str
    parses: Sequence[Parse]

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        names = sorted({one.split(":")[0] for parse in self.parses for one in parse.deprel})
        ids = {name: place + 3 for place, name in enumerate(names)}
        tags = {tag: place + 2 for place, tag in enumerate(UPOS)}
        self.rows = [
            (
                torch.tensor([1, *(tags[tag] for tag in parse.upos)]),
                torch.tensor(parse.head),
                torch.tensor([ids[one.split(":")[0]] for one in parse.deprel]),
            )
            for parse in self.parses
        ]
        selfatt = self.name == "selfatt"
        encoder = PlainSelfAtt() if selfatt else PlainLstms()
        self.model = PlainParser(encoder, len(names), 0.2 if selfatt else 0.33)
        rate = 1e-4 if selfatt else 1e-3
        self.optimizer = torch.optim.Adam(self.model.parameters(), rate, (0.9, 0.9), 1e-4)

    def step(self, chosen: Sequence[int]) -> None:
        """Data and step."""
        rows = zip(*(self.rows[number] for number in chosen), strict=True)
        tags, heads, types = (
            nn.utils.rnn.pad_sequence(list(of), batch_first=True, padding_value=fill)
            for of, fill in zip(rows, (0, -100, -100), strict=True)
        )
        loss = self.model(tags, heads, types)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()


# The measurement


@dataclass
class Times:
    """CPU seconds of both, and sentences, of each round."""

    ours: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    count: list[int] = field(default_factory=list)


def fill(store: FeatureStore) -> list[Parse]:
    """The training sentences, those that are too long left out, in a store."""
    _, trees = sentences()
    parses = [parse_from_sentences([tree]) for tree in trees]
    parses = [parse for parse in parses if len(parse.upos) < LONGEST]
    append(store, "gold", "dev", parses[:DEV])
    append(store, "gold", "train", parses[DEV:])
    return parses[DEV:]


def measure(store: FeatureStore, parses: Sequence[Parse], name: str, folder: Path, rounds: int):
    """Both in turn, round after round; the first two rounds warm up."""
    settings = (
        *(f"data.dataset={GOLD}", "data.lang=en", "threads=1", "max_steps=1000000"),
        *("evaluate_every=1000000", "checkpoint_every=null", "log_every=1000000"),
    )
    run = Run(with_settings(RECIPES[RECIPE[name]](), settings), store, folder / name, ())
    plain, times, steps = Plain(name, parses), Times(), iter(())
    for number in range(rounds + 2):
        start = time.process_time()
        batches: Any = next(steps, None)
        if batches is None:
            steps = run.epoch()
            batches = next(steps)
        run.step(batches)
        middle = time.process_time()
        chosen = [int(example) for batch in batches for example in batch.example_ids]
        plain.step(chosen)
        times.ours.append(middle - start)
        times.plain.append(time.process_time() - middle)
        times.count.append(len(chosen))
        print(
            f"{name}, round {number}: {times.ours[-1]:.2f} {times.plain[-1]:.2f} s", file=sys.stderr
        )
    return row(times, run, plain)


def row(times: Times, run: Run, plain: Plain) -> dict[str, float]:
    """Sentences a second of both, and how many times the plain step ours takes."""
    ours, theirs = times.ours[2:], times.plain[2:]
    sizes = [sum(one.numel() for one in model.parameters()) for model in (run.model, plain.model)]
    return {
        "batch": run.training.batch_size,
        "sentences_per_second": round(sum(times.count[2:]) / sum(ours), 1),
        "plain_sentences_per_second": round(sum(times.count[2:]) / sum(theirs), 1),
        "times_plain": round(median(a / b for a, b in zip(ours, theirs, strict=True)), 3),
        "weights": sizes[0],
        "plain_weights": sizes[1],
    }


def main() -> None:
    os.environ.setdefault("ACCELERATE_USE_CPU", "true")
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description="Training speed of the order-free graph parser.")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", default=",".join(RECIPE))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_store(folder / "store") as store:
            parses = fill(store)
            found = {
                one: measure(store, parses, one, folder, asked.rounds)
                for one in asked.only.split(",")
            }
    content = {"sentences": len(parses), "rounds": asked.rounds, "models": found}
    write_result("graph_parser", content, libraries=["torch"], threads=1)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
