"""What syntax costs: a training step of each model or objective against the plain encoder's.

    python -m benchmarks.train [--encoder base] [--lengths 64,128] [--pieces 256] [--rounds 5]
                               [--only plain,sla.v1]

Every model is trained by the real loop from a real store: the same encoder (random weights), the
same examples, the same batch. In each round every model takes one step (forward, backward,
clipping, AdamW) in turn, on one thread; what counts is CPU time, and the median over the rounds of
its ratio to the plain encoder's step of the same round. Wall time is given beside it, and the
memory of what a step keeps for its gradients. Objectives have samples of lr-sib's kind.

The examples are sentences laid end to end: real ones from UD_English-EWT where PARSEBANK_DATA is
set, else random trees. Waiting for data is the time until the next batch is on the device.

Then the way of the released Syntax-MBERT: every access to an example makes a dense adjacency
matrix of its tree, and asks scipy for the shortest paths; distances go to the model as 64-bit
numbers. It is let off with the distances; ours is everything, from the store to the model, in
batches of 32. End to end both take the same step.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path
from transformers import BertConfig

from benchmarks.matrices import Parents, one_forest, restart_on_one_thread, sentences
from benchmarks.result import write_result
from featurestore import DatasetHandle, ExampleRow, FeatureStore, open_store
from syntax.batches import SegmentFeatures, SpecialTokens
from syntax.examples import DatasetSpec, LabelSpec
from trainer.batch import SyntaxBatch
from trainer.data import device_batches, open_source
from trainer.loop import Run
from trainer.options import (
    DataOptions,
    ModelOptions,
    ObjectiveOptions,
    PhraseContrastOptions,
    Recipe,
    SgNetOptions,
    SlaOptions,
    StockOptions,
    SyntaxBertOptions,
    TrainingOptions,
    TreeContrastOptions,
    UdPrlmOptions,
)

NAME, LABEL = "bench", LabelSpec("label", "class", ("a", "b", "c"))
SPECIAL = SpecialTokens(prefix=(1,), separator=(2,), suffix=(2,), pad_id=0, vocab_size=6000)


def _sizes(layers: int, width: int, heads: int) -> dict[str, int]:
    return {
        "layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }


ENCODERS = {"base": _sizes(12, 768, 12), "small": _sizes(12, 256, 4), "micro": _sizes(3, 128, 8)}


@dataclass(frozen=True)
class Case:
    """What is trained, and how many times the plain step it may take.

    A ``shallow`` one has an encoder of one layer less, as it adds a layer of its own.
    """

    model: Callable[..., ModelOptions]
    target: float = float("inf")
    objectives: tuple[ObjectiveOptions, ...] = ()
    samplers: tuple[str, ...] = ()
    shallow: bool = False


PHRASE, TREE = "phrase(way=lr_sib)", "tree(way=lr_sib)"
CONTRASTS = (PhraseContrastOptions(), TreeContrastOptions())
UD_LABELS = tuple(f"label-{number}" for number in range(200))
CASES = {
    "plain": Case(SyntaxBertOptions),
    "sgnet.v1": Case(SgNetOptions, 1.10),
    "sla.v1": Case(SlaOptions, 1.10),
    "syntax_bert.v1": Case(SyntaxBertOptions, 1.25),
    "phrase.v1": Case(StockOptions, objectives=CONTRASTS[:1], samplers=(PHRASE,)),
    "tree.v1": Case(StockOptions, objectives=CONTRASTS[1:], samplers=(TREE,)),
    "phrase+tree": Case(StockOptions, 1.25, CONTRASTS, (PHRASE, TREE)),
    "udprlm.v1": Case(partial(UdPrlmOptions, labels=UD_LABELS), 1.15, shallow=True),
}
DATA_TARGET, DATA_BATCH, DATA_BATCHES = 0.01, 32, 6


# The examples


def fill(store: FeatureStore, length: int, count: int, trees: list[Parents]) -> None:
    """Examples of exactly so many positions, [CLS] and [SEP] among them."""
    rows = [example(seq, length - 2, trees) for seq in range(count)]
    for split in ("train", "dev"):
        spec = DatasetSpec(NAME, split, "en", ("text",), (LABEL,))
        handle = DatasetHandle(spec, "bench", "0" * 32, SPECIAL, matrices=False)
        store.features.append(handle, rows if split == "train" else rows[:1])


def example(seq: int, size: int, trees: list[Parents]) -> ExampleRow:
    parents = one_forest(size + 1, trees, 7 * seq)[1:] - 1
    number = np.arange(size, dtype=np.int32)
    tags = (number % 17 + 1).astype(np.uint8)
    features = SegmentFeatures(
        (number * 37 + seq) % 5000 + 5,
        parents.astype(np.int32),
        number,
        tags,
        tags,
        np.zeros_like(number),
        np.stack([2 * number, 2 * number + 1], axis=1),
    )
    text, key = "a " * size, f"{seq:032x}"
    label = LABEL.names[seq % 3]
    return ExampleRow(seq, str(seq), key, "0" * 32, (text,), (key,), (features,), {"label": label})


def recipe_of(name: str, encoder: Path, length: int, batch_size: int) -> Recipe:
    """One model; all that is not its own is the same for all."""
    case, use, root = CASES[name], name != "plain", name in ("plain", "syntax_bert.v1")
    if case.shallow:
        encoder = encoder.with_name("shallow")
    options = case.model(encoder=str(encoder), weights="random", use_syntax=use)
    data = DataOptions(dataset=NAME, max_length=length, joint_root=root, samplers=case.samplers)
    return Recipe(
        name=name,
        data=data,
        model=options,
        objectives=case.objectives,
        training=TrainingOptions(batch_size=batch_size, max_steps=10**6, threads=1),
    )


# The measurement


@dataclass
class Times:
    """Seconds of each round: CPU and wall of the step, and CPU until its batch was there."""

    step: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    wait: list[float] = field(default_factory=list)


def clocked(call: Callable[[], Any]) -> tuple[float, float, Any]:
    cpu, wall = time.process_time(), time.perf_counter()
    found = call()
    return time.process_time() - cpu, time.perf_counter() - wall, found


@dataclass
class Contender:
    """A run of one model, stepped by hand."""

    run: Run
    times: Times = field(default_factory=Times)

    def __post_init__(self) -> None:
        self.groups: Iterator[list[SyntaxBatch]] = self.run.epoch()

    def turn(self) -> None:
        """The next batch, and a step over it."""
        wait, _, group = clocked(lambda: next(self.groups))
        step, wall, _ = clocked(lambda: self.run.step(group))
        self.times.wait.append(wait)
        self.times.step.append(step)
        self.times.wall.append(wall)

    def kept(self) -> int:
        """Bytes that another step keeps for its gradients, weights apart."""
        found = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            self.run.step(next(self.groups))
        for weight in self.run.model.parameters():
            found.pop(weight.untyped_storage().data_ptr(), None)
        return sum(found.values())


def released_distances(parents: Parents) -> torch.Tensor:
    """Distances of one example as the release makes them at each access."""
    adjacency = np.zeros((len(parents), len(parents)), np.float32)
    for node, parent in enumerate(parents):
        if parent >= 0:
            adjacency[node, parent] = adjacency[parent, node] = 1
    return torch.from_numpy(shortest_path(csr_matrix(adjacency))).long()


def released_batch(batch: SyntaxBatch) -> torch.Tensor:
    """The distances of a batch; examples are of one length, so nothing has to be padded."""
    every = batch.parents_BL.numpy()
    return torch.stack([released_distances(parents) for parents in every])


def data_ways(store: FeatureStore, recipe: Recipe) -> tuple[float, float]:
    """CPU seconds until an example is there: in our batches of 32, and the released way."""
    recipe = replace(recipe, training=replace(recipe.training, batch_size=DATA_BATCH))
    source, device = open_source(store, recipe, "train", "en"), torch.device("cpu")
    stream = source.training_stream(recipe, device, epoch=0, rank=0, world_size=1)
    batches = device_batches(stream, recipe, source.task, device)
    ours, released = [], []
    for _ in range(DATA_BATCHES):
        cpu, _, batch = clocked(lambda: next(batches))
        ours.append(cpu / DATA_BATCH)
        cpu, _, distances = clocked(lambda batch=batch: released_batch(batch))
        released.append(cpu / DATA_BATCH)
        assert torch.equal(distances, batch.distances().long())
    return median(ours[1:]), median(released[1:])


def measure(
    encoder: str, length: int, pieces: int, rounds: int, names: Sequence[str]
) -> dict[str, Any]:
    """Every model at one length."""
    source, trees = sentences()
    batch_size = pieces // length
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "store") as store:
        sizes = dict(ENCODERS[encoder])
        config = BertConfig(num_hidden_layers=sizes.pop("layers"), **sizes)
        config.save_pretrained(Path(folder) / "encoder")
        config.num_hidden_layers -= 1
        config.save_pretrained(Path(folder) / "shallow")
        count = max(batch_size * (rounds + 3), DATA_BATCH * DATA_BATCHES)
        fill(store, length, count, trees)
        recipes = {
            name: recipe_of(name, Path(folder) / "encoder", length, batch_size) for name in names
        }
        whole = recipe_of("syntax_bert.v1", Path(folder) / "encoder", length, batch_size)
        ways = data_ways(store, whole)
        contenders = {
            name: Contender(Run(recipe, store, Path(folder) / name, ()))
            for name, recipe in recipes.items()
        }
        for number in range(rounds + 1):
            for name, contender in contenders.items():
                contender.turn()
                print(f"L = {length}, round {number}: {name} {contender.times.step[-1]:.2f} s")
        kept = {name: contender.kept() for name, contender in contenders.items()}
    times = {name: contender.times for name, contender in contenders.items()}
    step = median(times["syntax_bert.v1" if "syntax_bert.v1" in names else "plain"].step[1:])
    return {
        "trees": source,
        "length": length,
        "batch": batch_size,
        "models": {name: {**row(times, name), **memory(kept, name)} for name in names},
        "released_way": end_to_end(step / batch_size, *ways),
    }


def row(times: Mapping[str, Times], name: str) -> dict[str, float]:
    """One model against the plain encoder; the first round warms up and does not count."""
    own, plain = times[name], times["plain"]
    ratios, walls = (
        [mine / theirs for mine, theirs in zip(a[1:], b[1:], strict=True)]
        for a, b in ((own.step, plain.step), (own.wall, plain.wall))
    )
    wait, step = sum(own.wait[1:]), sum(own.step[1:])
    return {
        "cpu_seconds": round(median(own.step[1:]), 3),
        "wall_seconds": round(median(own.wall[1:]), 3),
        "times_plain": round(median(ratios), 3),
        "wall_times_plain": round(median(walls), 3),
        "data_share": round(wait / (wait + step), 5),
    }


def memory(kept: Mapping[str, int], name: str) -> dict[str, float]:
    """What a step keeps for its gradients."""
    return {
        "kept_megabytes": round(kept[name] / 2**20, 2),
        "kept_times_plain": round(kept[name] / kept["plain"], 3),
    }


def end_to_end(step: float, ours: float, released: float) -> dict[str, float]:
    """Data and step together, the released way against ours; and the data alone, an example."""
    return {
        "data_microseconds": round(released * 1e6, 1),
        "our_data_microseconds": round(ours * 1e6, 1),
        "data_times": round(released / ours, 1),
        "step_microseconds": round(step * 1e6, 1),
        "end_to_end_times": round((released + step) / (ours + step), 4),
    }


# Telling


def show(found: Mapping[str, Any]) -> None:
    print(f"\n{found['trees']}, {found['batch']} examples of {found['length']} positions")
    heads = ("CPU s", "x plain", "wall s", "x plain", "data", "kept MB", "x plain")
    print(f"{'':16}" + "".join(f"{head:>9}" for head in heads))
    for name, one in found["models"].items():
        cpu, wall = one["cpu_seconds"], one["wall_seconds"]
        print(
            f"{name:16}{cpu:9.3f}{one['times_plain']:9.3f}{wall:9.3f}"
            f"{one['wall_times_plain']:9.3f}{one['data_share']:9.2%}"
            f"{one['kept_megabytes']:9.1f}{one['kept_times_plain']:9.3f}"
        )
    other = found["released_way"]
    print(
        f"syntax_bert.v1, us an example: data {other['our_data_microseconds']}, the released way "
        f"{other['data_microseconds']} ({other['data_times']} times), step "
        f"{other['step_microseconds']}; end to end {other['end_to_end_times']} times"
    )


def verdict(found: Mapping[str, Any]) -> Iterator[str]:
    """The targets that were missed."""
    for name, one in found["models"].items():
        at = f"{name} at {found['length']}"
        if one["times_plain"] > CASES[name].target:
            yield f"{at}: {one['times_plain']} times plain, target {CASES[name].target}"
        if one["data_share"] >= DATA_TARGET:
            yield f"{at}: {one['data_share']:.2%} of the time waits for data"


def main() -> int:
    restart_on_one_thread()
    os.environ.setdefault("ACCELERATE_USE_CPU", "true")
    parser = argparse.ArgumentParser(description="A training step of each model.")
    parser.add_argument("--encoder", choices=ENCODERS, default="base", help="layers and width")
    parser.add_argument("--lengths", default="64,128", help="positions, comma-separated")
    parser.add_argument("--pieces", type=int, default=256, help="positions of a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(CASES), help="rows; plain is always measured")
    asked = parser.parse_args()
    lengths = [int(length) for length in asked.lengths.split(",")]
    names = [name for name in CASES if name == "plain" or name in asked.only.split(",")]
    found = [
        measure(asked.encoder, length, asked.pieces, asked.rounds, names) for length in lengths
    ]
    for one in found:
        show(one)
    missed = [text for one in found for text in verdict(one)]
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    write(asked, found)
    return 1 if missed else 0


def write(asked: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    content = {
        "encoder": ENCODERS[asked.encoder],
        "rounds": asked.rounds,
        "lengths": found,
    }
    write_result("train", content, libraries=("torch", "scipy"), threads=1)


if __name__ == "__main__":
    raise SystemExit(main())
