"""Structural probes of two encoders over the same sentences: which tells more of their trees?"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from trainer.probing.against import compare_probes
from trainer.reproduction.judgement import Floor, is_gain
from trainer.reproduction.row import Figure, Findings, Row
from trainer.reproduction.rows.probing import percent, probed
from trainer.reproduction.rows.treebanks import ENCODER, ENGLISH, MULTILINGUAL
from trainer.reproduction.trial import Trial

_DATASET: Final = "ud_probe"
_TREES: Final = "distance"
_GAIN: Final = "UUAS of the best layer, {} less {}, points"
_CONVENTION: Final = "UD_English-EWT, gold words; UUAS over test sentences without punctuation"
_RULE: Final = (
    "the claim holds if the 95 % interval (paired bootstrap over sentences) of UUAS on test, each "
    "encoder by the layer that is best on dev, {}, is above 0, fails if it is below {}, and is "
    "undecided otherwise"
)

Names = tuple[str, str]
_LANGUAGES: Final[Names] = ("MiniLM", "multilingual E5")
_WEIGHTS: Final[Names] = ("MiniLM", "random weights")


def _run_languages(trial: Trial) -> Findings:
    """An encoder of English against one of 100 languages."""
    both = (trial.data / ENCODER.path, trial.data / MULTILINGUAL.path)
    ours, theirs = (probed(trial, one, _DATASET, _TREES) for one in both)
    return compared(ours, theirs, _LANGUAGES, effect=2)


def _run_weights(trial: Trial) -> Findings:
    """A trained encoder against one of the same sizes with random weights."""
    tokenizer = trial.data / ENCODER.path
    both = (tokenizer, _untrained(trial))
    ours, theirs = (probed(trial, one, _DATASET, _TREES, tokenizer) for one in both)
    chain = 100 * ours["tasks"][_TREES]["baselines"]["linear chain"]
    return compared(ours, theirs, _WEIGHTS, effect=5, chain=chain)


def _untrained(trial: Trial) -> Path:
    """A copy of the encoder with the weights of BERT's initialisation."""
    folder = trial.folder / "untrained"
    if not folder.exists():
        import torch
        from transformers import AutoConfig, AutoModel

        torch.manual_seed(1)
        source, made = trial.data / ENCODER.path, trial.folder / "untrained.part"
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(source, made, ignore=shutil.ignore_patterns("*.safetensors"))
        AutoModel.from_config(AutoConfig.from_pretrained(source)).save_pretrained(made)
        made.rename(folder)
    return folder


def compared(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    names: Names,
    effect: float,
    chain: float | None = None,
) -> Findings:
    """From the contents of two files of `parsebank probe`, the first against the second.

    ``chain`` is the UUAS of a chain of neighbours, which the first must be above.
    """
    tested = compare_probes(ours, theirs, (_TREES,))[_TREES]
    sides = tuple(zip(names, (ours, theirs), strict=True))
    low, high = 100 * tested["low"], 100 * tested["high"]
    best = [
        next(one for one in side["tasks"][_TREES]["layers"] if one["layer"] == layer)["seeds"]
        for (_, side), layer in zip(sides, tested["layers"], strict=True)
    ]
    gain = tuple(100 * (one - other) for one, other in zip(*best, strict=True))
    figures = [Figure(_GAIN.format(*names), None, gain)]
    figures += [
        Figure(f"{name}, layer {point['layer']}: UUAS, %", None, percent(point["seeds"]))
        for name, side in sides
        for point in side["tasks"][_TREES]["layers"]
    ]
    note = (
        f"UUAS of layer {tested['layers'][0]} of {names[0]} less that of layer "
        f"{tested['layers'][1]} of {names[1]}, the best on dev: 95 % of the bootstrap over "
        f"{tested['examples']} sentences {low:+.2f} to {high:+.2f}."
    )
    floors: tuple[Floor, ...] = ()
    if chain is not None:
        mean = sum(percent(best[0])) / len(best[0])
        floors = (Floor(f"{names[0]}: UUAS (a chain of neighbours)", mean, round(chain, 1)),)
    return Findings(figures, is_gain((low, high), effect), (note,), floors=floors)


_SMALL: Final = "800 sentences of each split, rank 32"

_OTHERS: Final = (
    "MiniLM (published: BERT base and large, ELMo, and baselines of other kinds); the treebank of "
    "UD (published: Penn Treebank)"
)

_row = partial(
    Row,
    code=("trainer/probing",),
    seeds={"small": 3, "full": 5},
)

ROWS: Final = (
    _row(
        name="probing-encoders",
        claim="The states of an encoder of English tell more of its trees than those of one of "
        "100 languages",
        source="our own question: what a multilingual encoder costs a user of one language",
        convention=f"{_CONVENTION}; MiniLM has 6 layers of 384, E5 12, and both are trained "
        "further for similarity of sentences",
        rule=_RULE.format("MiniLM less E5", 2),
        data=(ENGLISH, ENCODER, MULTILINGUAL),
        run=_run_languages,
        kind="own claim",
        effects=(_GAIN.format(*_LANGUAGES),),
        reductions={"small": _SMALL, "full": "none"},
    ),
    _row(
        name="probing-untrained",
        claim="A structural probe finds more of the trees in a trained encoder than in one of "
        "random weights",
        source="Hewitt and Manning 2019, section 4 and Table 1: BERT and ELMo against baselines",
        convention=f"{_CONVENTION}. Both encoders have 6 layers of 384; random weights are drawn "
        "once, so that the interval is over sentences alone",
        rule=f"{_RULE.format('MiniLM less random weights', 5)}; MiniLM must be above a chain of "
        "neighbours. MiniLM's figures were known when this was written, the other's were not",
        data=(ENGLISH, ENCODER),
        run=_run_weights,
        effects=(_GAIN.format(*_WEIGHTS),),
        reductions={
            "small": f"{_OTHERS}; {_SMALL}",
            "full": _OTHERS,
        },
    ),
)
