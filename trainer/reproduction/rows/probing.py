"""Probing curves: which layers of an encoder tell most of trees, relations and tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trainer.reproduction.judgement import every, is_gain
from trainer.reproduction.row import Figure, Findings, Row, Size
from trainer.reproduction.rows.treebanks import ENCODER, ENGLISH
from trainer.reproduction.trial import Trial
from trainer.results import read_json

_SHIFTED: Final = "ud_probe_shift"
"""The sentences of which half have two neighbours exchanged."""

_TASKS: Final[Mapping[Size, Mapping[str, str]]] = {
    "small": {
        "ud_probe": "distance,upos,deprel,root_tense,subj_number,max_depth",
        _SHIFTED: "bigram_shift",
    },
    "full": {
        "ud_probe": "distance,depth,upos,deprel,arc,root_tense,subj_number,obj_number,max_depth",
        _SHIFTED: "bigram_shift",
    },
}

_SETTINGS: Final[Mapping[Size, tuple[str, ...]]] = {
    "small": (
        *("--examples", "800", "--train-items", "2000", "--rank", "32"),
        *("--hidden", "50", "--dropout", "0"),
    ),
    "full": (),
}


def probed(
    trial: Trial, encoder: Path, dataset: str, tasks: str, tokenizer: Path | None = None
) -> Mapping[str, Any]:
    """Curves of the tasks of an encoder, over gold trees where the dataset has them."""
    mode = () if dataset == _SHIFTED else ("--mode", "gold")
    treebank = ("--path", str(trial.data / ENGLISH.path), "--lang", "en", *mode)
    own = ("--tokenizer", str(tokenizer or encoder))
    name = (tokenizer or encoder).name
    trial.backfill(f"{dataset}-{name}", dataset, *treebank, "--split", "train,dev,test", *own)
    output = trial.folder / f"{dataset}-{encoder.name}.json"
    probes = ("--task", tasks, "--seeds", str(len(trial.seeds)), *_SETTINGS[trial.size])
    threads = () if trial.threads is None else ("--threads", str(trial.threads))
    where = ("--dataset", dataset, "--store", str(trial.store), "--output", str(output))
    trial.parsebank("probe", str(encoder), *probes, *threads, *where, *own)
    return read_json(output, "`parsebank probe` did not write its curves")


def _run(trial: Trial) -> Findings:
    curves = [
        probed(trial, trial.data / ENCODER.path, dataset, tasks)["tasks"]
        for dataset, tasks in _TASKS[trial.size].items()
    ]
    return findings({task: curve for own in curves for task, curve in own.items()})


_IS_END: Final = {"low": -1.0, "high": -1.0}
"""Where the best layer is the first, or the last: it is not better than itself."""


def findings(curves: Mapping[str, Any]) -> Findings:
    best = curves["distance"]["best"]
    ahead = [best.get(f"less_{end}", _IS_END) for end in ("first", "last")]
    figures = [
        Figure(
            f"{task}, layer {point['layer']}: {_named(curve)}, %",
            None,
            percent(point["seeds"]),
        )
        for task, curve in curves.items()
        for point in curve["layers"]
    ]
    return Findings(
        figures,
        holds=every([is_gain((one["low"], one["high"])) for one in ahead]),
        notes=tuple(_note(task, curve) for task, curve in curves.items()),
    )


def percent(scores: Sequence[float]) -> tuple[float, ...]:
    return tuple(100 * score for score in scores)


def _named(curve: Mapping[str, Any]) -> str:
    return "UUAS" if curve["metric"] == "uuas" else str(curve["metric"])


def _note(task: str, curve: Mapping[str, Any]) -> str:
    baselines = ", ".join(f"{name} {100 * of:.1f}" for name, of in curve["baselines"].items())
    layers = "; ".join(
        f"layer {one['layer']}: {100 * one['low']:.1f} to {100 * one['high']:.1f}"
        + "".join(
            f", {name} {100 * one[name]:.1f}"
            for name in ("linear", "control", "selectivity")
            if name in one
        )
        for one in curve["layers"]
    )
    best = curve["best"]
    ahead = ", ".join(
        f"{100 * best[key]['difference']:+.1f} ({100 * best[key]['low']:+.1f} to "
        f"{100 * best[key]['high']:+.1f}) from the {key.removeprefix('less_')}"
        for key in ("less_first", "less_last")
        if key in best
    )
    return (
        f"{task}: baseline {baselines}. Best on dev is layer {best['layer']}, on test {ahead}. "
        f"95 % of the bootstrap over sentences: {layers}."
    )


_OURS: Final = (
    "MiniLM, of 6 layers of 384 (published: BERT base and large); the treebank of UD (published: "
    "Penn Treebank)"
)

ROW: Final = Row(
    name="probing-layers",
    claim="A structural probe finds most of the trees in the middle layers of an encoder",
    source="Hewitt and Manning 2019, section 4 and figure 1 (BERT base and large)",
    convention="UD_English-EWT, gold words; UUAS over test sentences without punctuation; "
    "accuracy of words, of texts by the mean of their pieces. Ours is MiniLM, of 6 layers "
    "and trained further for similarity of sentences",
    rule="by UUAS, the layer that is best on dev is neither the embeddings nor the last one, "
    "and on test it is better than both: the 95 % intervals (paired bootstrap over sentences) are "
    "above 0; the claim fails if one is below 0",
    data=(ENGLISH, ENCODER),
    run=_run,
    code=("trainer/probing",),
    reductions={
        "small": f"{_OURS}; 800 sentences of each split, 2,000 words to train classifiers on, "
        "rank 32, one size of the hidden layer (50) without dropout, 2 seeds, without the tasks "
        "`depth`, `arc` and `obj_number`",
        "full": _OURS,
    },
    seeds={"small": 2, "full": 5},
)
