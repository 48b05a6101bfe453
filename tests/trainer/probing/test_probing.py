"""Probes of all layers: what they read, how they are trained, and the curves that they give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from clients.benchmarks import UD_PROBE
from featurestore import DatasetHandle, ExampleRow, open_store
from syntax.alignment import segment_features
from syntax.errors import SpecError
from syntax.examples import Example
from syntax.fingerprint import fingerprint
from syntax.matrices import ancestor_mask, tree_distance
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.ud import upos_id
from tests.trainer.command import parsebank
from tests.trainer.conftest import random_forest
from trainer.options import FrozenOptions
from trainer.probing import structure
from trainer.probing.classifier import Vectors, fit
from trainer.probing.curve import curve
from trainer.probing.items import (
    MASK,
    class_shares,
    control_gold,
    features,
    items_of,
    mask_features,
)
from trainer.probing.options import (
    DEV,
    SPLITS,
    TEST,
    TRAIN,
    ClassifierOptions,
    ProbeOptions,
    StructureOptions,
)
from trainer.probing.states import StockLayers, encode, pooled
from trainer.probing.words import WORD_PROBES, Encoded, WordProbe
from trainer.reproduction.rows.probing import findings
from trainer.systems.frozen.states import with_states

FILES = Path(__file__).parents[2] / "fixtures" / "benchmarks" / "ud_probe"
TINY = FrozenOptions(encoder="parsebank-tiny", weights="random")
QUICK = ClassifierOptions(hidden=(8,), dropout=(0.0,), max_epochs=12)


def synthetic(seed: int, trees: int = 24, layers: tuple[str, ...] = ("tree",)) -> Encoded:
    """Random trees, whose states tell everything (``tree``) or nothing (``noise``).

    A word's true state sums a vector of its own for each edge above it, so that the squared
    distance of two words is their distance in the tree; and it has the UPOS, one-hot.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 9, trees)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parents, states, upos = [], [], []
    for size, start in zip(sizes, starts[:-1], strict=True):
        own = np.array(random_forest(rng, int(size)))
        ancestors = ancestor_mask(own.astype(np.int32)) & (own >= 0)[None, :]
        tags = rng.integers(1, 4, size)
        told = np.zeros((size, 24))
        told[:, :size] = ancestors
        told[np.arange(size), 16 + tags] = 0.01  # too little to move the distances
        states.append(told)
        parents.append(np.where(own < 0, -1, own + start))
        upos.append(tags)
    true = np.concatenate(states)
    noise = rng.normal(size=true.shape)
    words = [(true if one == "tree" else noise).astype(np.float16) for one in layers]
    tags = np.concatenate(upos).astype(np.uint8)
    return Encoded(
        words=words,
        vectors=words,
        starts=starts,
        pieces=[(int(one),) for one in rng.integers(0, 6, len(true))],
        parents=np.concatenate(parents),
        upos=tags,
        deprel=tags,
        sentences=np.zeros(len(true), np.int64),
        dataset=None,  # type: ignore[arg-type]
    )


@pytest.fixture
def probed_store(tmp_path, tokenizer) -> str:
    """The treebank of the reader's fixture, repeated, as three splits with labels."""
    uri = str(tmp_path / "store")
    items = list(UD_PROBE.read(FILES, "dev", "en"))
    with open_store(uri) as store:
        for split, times in zip((TRAIN, DEV, TEST), (4, 2, 2), strict=True):
            rows = [
                _row(item, tokenizer, seq, split)
                for seq, item in enumerate(items * times)
                if isinstance(item, Example)
            ]
            spec = UD_PROBE.spec(split, "en")
            names = (tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens)
            store.features.append(DatasetHandle(spec, *names, matrices=False), rows)
    return uri


def _row(item: Example, tokenizer, seq: int, split: str) -> ExampleRow:
    parse = parse_from_sentences(list(parse_conllu(item.segments[0].conllu)))
    key = fingerprint([split, seq])
    made = ("ab" * 16, (parse.text,), (key,))
    segment = segment_features(parse, *tokenizer.encode(parse.text))
    return ExampleRow(seq, f"{split}-{seq}", key, *made, (segment,), item.labels)


def test_words_of_every_layer_are_those_of_the_frozen_model(probed_store) -> None:
    with open_store(probed_store) as store:
        data = store.dataset("ud_probe", split="dev", lang="en")
        found = encode(StockLayers(TINY, data), data, "mean")
        for layer, words in enumerate(found.words):
            stated = with_states(store, data, replace(TINY, layer=layer))
            (batch,) = stated.stream(batch_size=len(data), shuffle=False, max_length=None)
            expected = np.concatenate([one.states for one in batch["word_states"]])
            assert np.abs(words - expected).max() < 2e-3
    assert len(found.vectors[0]) == len(data) == len(found.starts) - 1


def test_parents_of_words_lie_in_their_own_example(store_uri) -> None:
    with open_store(store_uri) as store:
        data = store.dataset("sample", split="dev", lang="en")
        found = encode(StockLayers(TINY, data), data, "cls")
    at = np.flatnonzero(found.parents >= 0)
    assert (found.examples[found.parents[at]] == found.examples[at]).all()
    assert (found.sentences[found.parents[at]] == found.sentences[at]).all()
    assert (found.parents < 0).sum() >= len(data)
    assert all(found.pieces)


def test_vectors_of_texts_leave_out_special_pieces() -> None:
    states = torch.tensor([[[9.0], [1.0], [3.0], [-7.0]]])
    text = torch.tensor([[False, True, True, False]])
    assert [pooled(states, text, pool).item() for pool in ("cls", "mean", "max")] == [9, 2, 3]
    assert pooled(states, torch.zeros_like(text), "max").item() == 0


def test_the_classifier_learns_what_a_linear_map_cannot() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, (600, 2)).astype(np.float32)
    gold = (inputs[:, 0] * inputs[:, 1] > 0).astype(np.int64)
    train, dev = Vectors.of(inputs[:400], gold[:400]), Vectors.of(inputs[400:], gold[400:])
    options = ClassifierOptions(
        hidden=(16,), dropout=(0.0,), activation="relu", learning_rate=0.01, max_epochs=40
    )
    found = fit(train, dev, 2, options, seed=0)
    assert found.accuracy > 0.9
    assert found.right(dev).mean() == pytest.approx(found.accuracy)
    assert fit(train, dev, 2, replace(options, hidden=(0,)), seed=0).accuracy < 0.75
    assert fit(train, dev, 2, options, seed=0).accuracy == found.accuracy


def test_size_dropout_and_l2_are_chosen_on_dev() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(90, 4)).astype(np.float32)
    items = Vectors.of(inputs, (inputs[:, 0] > 0).astype(np.int64))
    options = ClassifierOptions(
        hidden=(0, 4), dropout=(0.0, 0.5), l2=(0.5, 0.0), learning_rate=0.1, max_epochs=8
    )
    found = fit(items, items, 2, options, seed=1)
    tried = [
        fit(items, items, 2, replace(options, hidden=(size,), dropout=(share,), l2=(l2,)), seed=1)
        for size in options.hidden
        for share in options.dropout
        for l2 in options.l2
    ]
    assert found.accuracy == max(one.accuracy for one in tried)
    assert len({one.accuracy for one in tried}) > 1
    assert found.l2 == 0.0


def test_control_tasks_give_each_type_one_class() -> None:
    encoded = synthetic(0)
    items = items_of("upos", encoded)
    shares = class_shares(items)
    control = control_gold(items, encoded.pieces, shares, seed=0)
    of_type = {encoded.pieces[row]: set() for row in items.rows[:, 0]}
    for row, label in zip(items.rows[:, 0], control, strict=True):
        of_type[encoded.pieces[row]].add(label)
    assert all(len(labels) == 1 for labels in of_type.values())
    assert shares[control].min() > 0
    again = control_gold(items, encoded.pieces, shares, seed=0)
    assert (again == control).all()
    others = [control_gold(items, encoded.pieces, shares, seed) for seed in range(1, 6)]
    assert any((one != control).any() for one in others)


def test_a_pair_is_a_word_and_its_head() -> None:
    encoded = synthetic(0)
    items = items_of("arc", encoded)
    assert len(items) == (encoded.parents >= 0).sum()
    first = items.rows[0]
    assert first[1] == encoded.parents[first[0]]
    found = features(encoded, 0, items)
    assert (found[0] == np.concatenate(encoded.words[0][first]).astype(np.float32)).all()


def test_a_probe_that_is_added_asks_the_words_that_have_a_class(monkeypatch) -> None:
    monkeypatch.setitem(WORD_PROBES._items, "last", WordProbe(("no", "yes"), _is_last))
    items = items_of("last", synthetic(3))
    assert items.of_words
    assert set(items.gold.tolist()) == {0, 1}
    assert items.names == ("no", "yes")


def _is_last(split: Encoded) -> np.ndarray:
    found = np.where(split.parents >= 0, 0, -1)
    found[split.starts[1:] - 1] = 1
    return found


def test_features_of_the_mask_are_its_sums() -> None:
    encoded = synthetic(3, trees=5)
    found = mask_features(encoded, of_words=True)
    for first, end in zip(encoded.starts[:-1], encoded.starts[1:], strict=True):
        own = encoded.parents[first:end]
        mask = ancestor_mask(np.where(own < 0, -1, own - first).astype(np.int32))
        assert found[first:end, 0] * 8 == pytest.approx(mask.sum(1))
        assert 2 ** found[first:end, 1] == pytest.approx(mask.sum(0))
    assert mask_features(encoded, of_words=False).shape == (5, 4)


def test_the_structural_probe_finds_trees_that_states_tell() -> None:
    train, dev = (structure.Trees.of(synthetic(seed), "distance") for seed in (0, 1))
    for example in (0, 1):
        at = dev.words(example)
        states = dev.encoded.words[0][at].astype(float)
        squared = ((states[:, None] - states[None]) ** 2).sum(-1)
        assert squared == pytest.approx(tree_distance(dev.parents(example)), abs=0.01)
    options = StructureOptions(rank=24, batch_size=4, learning_rate=0.02, epochs=30)
    probe = structure.fit(train, dev, 0, options, seed=0)
    uuas, shares = structure.probe_scores(dev, 0, probe)
    assert uuas > structure.chain_scores(dev)[0] + 0.2
    assert shares[:, 0].sum() / shares[:, 1].sum() == pytest.approx(uuas)


def test_punctuation_takes_no_part_in_uuas() -> None:
    encoded = synthetic(2, trees=3)
    trees = structure.Trees.of(encoded, "distance")
    _, before = structure.chain_scores(trees)
    marked = encoded.upos.copy()
    marked[encoded.starts[1] - 1] = upos_id("PUNCT")
    _, after = structure.chain_scores(replace(trees, encoded=replace(encoded, upos=marked)))
    assert after[0, 1] == before[0, 1] - 1


def test_the_best_layer_is_ahead_of_those_that_tell_nothing() -> None:
    layers = ("noise", "tree", "noise")
    encoded = {split: synthetic(at, 40, layers) for at, split in enumerate(SPLITS)}
    options = ProbeOptions(
        seeds=(0,),
        classifier=replace(QUICK, learning_rate=0.3),
        structure=StructureOptions(rank=24, batch_size=8, learning_rate=0.02, epochs=12),
        mask=True,
    )
    found = curve("upos", encoded, options)
    assert [one["layer"] for one in found["layers"]] == [0, 1, 2, MASK]
    assert found["layers"][0]["low"] <= found["layers"][0]["score"] <= found["layers"][0]["high"]
    assert {"linear", "control", "selectivity"} <= found["layers"][1].keys()
    (majority,) = found["baselines"].values()
    assert 0.3 < majority < 0.5
    trees = curve("distance", encoded, options)
    assert trees["best"]["layer"] == 1
    assert trees["best"]["less_first"]["low"] > 0
    assert trees["best"]["less_last"]["low"] > 0
    assert findings({"distance": trees}).holds
    flat = {**trees, "best": {"layer": 2, "less_first": trees["best"]["less_first"]}}
    assert not findings({"distance": flat}).holds  # no hump: the last layer is the best


def test_a_layer_that_is_not_there_is_an_error() -> None:
    encoded = dict.fromkeys(SPLITS, synthetic(0))
    with pytest.raises(SpecError, match="there is no layer 4; the encoder has 0 to 0"):
        curve("upos", encoded, ProbeOptions(layers=(4,)))


def probe(*arguments: object) -> list[str]:
    quick = ("--hidden", "4", "--dropout", "0", "--rank", "4", "--seeds", "1", "--threads", "1")
    return ["probe", *map(str, arguments), "--dataset", "ud_probe", *quick]


@pytest.mark.slow
def test_the_command_probes_and_goes_on_with_what_is_missing(probed_store, tmp_path) -> None:
    output, picture = tmp_path / "curves.json", tmp_path / "curves.svg"
    where = ("--store", probed_store, "--output", output, "--layers", "0,2")
    first = parsebank(*probe("parsebank-tiny", "--task", "subj_number", *where))
    assert first.exit_code == 0, first.output
    assert "24 texts without the label" in first.stderr
    content = json.loads(output.read_text("utf-8"))
    content["tasks"]["subj_number"]["layers"][0]["score"] = 0.123
    output.write_text(json.dumps(content), "utf-8")
    arguments = probe("parsebank-tiny", "--task", "subj_number,arc", *where, "--picture", picture)
    second = parsebank(*arguments)
    assert second.exit_code == 0, second.output
    header, *rows = [line.split("\t") for line in second.stdout.splitlines()]
    assert header[:3] == ["task", "layer", "score"]
    assert rows[0][:3] == ["subj_number", "0", "12.30"]  # it was not computed again
    assert [row[:2] for row in rows[2:]] == [["arc", "0"], ["arc", "2"]]
    assert "majority class" in picture.read_text("utf-8")
    pooled = (*arguments, "--pool", "max", "--output", tmp_path / "max.json")
    again = parsebank(*pooled, "--against", output)
    assert "12.30" not in again.stdout  # other options, so nothing is kept
    # The difference, example by example.
    sides = [
        json.loads(path.read_text("utf-8"))["tasks"] for path in (tmp_path / "max.json", output)
    ]
    lines = [line.split("\t") for line in again.stdout.splitlines()][-2:]
    for line, task in zip(lines, ("subj_number", "arc"), strict=True):
        ours, theirs = (side[task]["best"] for side in sides)
        shared = ours["examples"].keys() & theirs["examples"].keys()
        scores = [
            sum(of["examples"][name][0] for name in shared)
            / sum(of["examples"][name][1] for name in shared)
            for of in (ours, theirs)
        ]
        assert line[:4] == [task, str(ours["layer"]), str(theirs["layer"]), str(len(shared))]
        assert line[4] == f"{100 * (scores[0] - scores[1]):.2f}"
    seeds = parsebank(*pooled, "--seeds", "2", "--against", output)
    assert "other numbers of seeds" in seeds.output
    unknown = parsebank(*pooled, "--task", "upos", "--against", output)
    assert "has no answers to upos" in unknown.output


@pytest.mark.slow
def test_a_run_of_sg_net_has_its_own_layer_above_the_encoder(store_uri, tmp_path) -> None:
    run = tmp_path / "run"
    small = ("encoder=parsebank-tiny", "weights=random", "max_steps=1", "data.dataset=sample")
    sets = [part for one in small for part in ("--set", one)]
    where = ("--store", store_uri)
    trained = parsebank("train", "sgnet-snli", *where, "--output", str(run), *sets)
    assert trained.exit_code == 0, trained.output
    asked = ("--task", "upos", "--mask", "--splits", "train,dev,dev", "--dataset", "sample")
    quick = ("--hidden", "4", "--dropout", "0", "--seeds", "1", "--examples", "5")
    found = parsebank("probe", str(run), *where, *asked, *quick, "--no-control", "--json")
    assert found.exit_code == 0, found.output
    layers = [one["layer"] for one in json.loads(found.stdout)["tasks"]["upos"]["layers"]]
    assert layers == [0, 1, 2, 3, MASK]
