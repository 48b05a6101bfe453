"""Zero-shot transfer of delexicalised parsers (Ahmad et al. 2019): Tables 3.2 and 3.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

from trainer.reproduction.judgement import Design, Floor, is_gain
from trainer.reproduction.row import Figure, Findings, Row
from trainer.reproduction.rows.table_3_2 import TABLE_3_2
from trainer.reproduction.rows.treebanks import ENGLISH, OTHERS, TOKENIZER
from trainer.reproduction.rows.word_order import correlations, gold_trees
from trainer.reproduction.trial import Trial

SELFATT: Final = "orderfree-selfatt-graph-delex"
RNN: Final = "orderfree-rnn-graph-delex"
GRAPH: Final[Mapping[str, str]] = {"selfatt": SELFATT, "rnn": RNN}
STACK: Final[Mapping[str, str]] = {
    "selfatt-stack": "orderfree-selfatt-stack-delex",
    "rnn-stack": "orderfree-rnn-stack-delex",
}
"""The one that is to transfer better comes first."""

_DELEXICALISED: Final = ("zh", "ja")
"""Languages whose printed parsers read no words, as ours do."""

_CONVENTION: Final = (
    "test splits, gold words and universal tags; UAS and LAS without UPOS PUNCT and SYM, relations "
    "without subtypes; sentences of 140 words and more counted and left out; Chinese and "
    "Japanese of UD 2.2, as published, English and the other languages of later releases"
)
SMALL: Final = ("epochs=12", "evaluate_epochs=2")
SMALL_STACK: Final = (
    *("epochs=3", "evaluate_epochs=3", "task.relation=64"),
    *("task.decoder_input=128", "task.decoder_width=150"),
)
SMALL_POSITIONS: Final = ("epochs=2", "evaluate_epochs=2")
_RATE: Final = "learning_rate=1e-3"
_REDUCTIONS: Final = (
    "{} (published: up to 1,000, ended by restarts); SelfAtt at a rate of 1e-3 (published 1e-4, "
    "too small for so few passes)"
)


def prepare(trial: Trial) -> None:
    gold_trees(trial, "en", ENGLISH.path, "train,dev,test")
    for lang, treebank in OTHERS.items():
        gold_trees(trial, lang, treebank.path, "test")


def transfer(
    trial: Trial, arm: str, recipe: str, seed: int, small: Sequence[str], *settings: str
) -> dict[str, Any]:
    rate = (_RATE,) if "selfatt" in recipe else ()
    kept = ("data.lang=en", "checkpoint_every=157")
    reduced = (*small, *rate) if trial.size == "small" else ()
    run = trial.train(recipe, arm, seed, (*kept, *reduced, *settings))
    return trial.evaluation(run, "word-order-test.json", "--word-order")


def of_language(table: Mapping[str, Any], lang: str, score: str) -> float:
    return next(float(one[score]) for one in table["languages"] if one["lang"] == lang)


def _run_table_3_2(
    trial: Trial,
    recipes: Mapping[str, str],
    small: Sequence[str],
    judged: str,
) -> Findings:
    """Two parsers side by side, judged by the mean gain of the first over languages."""
    prepare(trial)
    tables = trial.grid(recipes, lambda arm, seed: transfer(trial, arm, recipes[arm], seed, small))
    figures = [
        Figure(
            f"{arm} {lang} {score.upper()}",
            TABLE_3_2[lang].scores[arm][place] if lang in _DELEXICALISED else None,
            tuple(of_language(table, lang, score) for table in tables[arm]),
        )
        for lang in ("en", *OTHERS)
        for arm in tables
        for place, score in enumerate(("uas", "las"))
    ]
    figures += [figure for arm in tables for figure in _correlations(arm, tables[arm])]
    gains = [
        _gain(name, langs, tables)
        for name, langs in (
            (_BOTH, _DELEXICALISED),
            (_ALL, tuple(OTHERS)),
            *((f"{lang} UAS", (lang,)) for lang in _DELEXICALISED),
        )
    ]
    floors = tuple(_floor(arm, tables[arm]) for arm in recipes)
    (judging,) = (one for one in gains if one.name.startswith(judged))
    holds = is_gain(judging.interval, _DESIGN.effect)
    return Findings([*gains, *figures], holds, floors=floors)


def _gain(
    name: str, langs: Sequence[str], tables: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Figure:
    """The mean gain over languages; published where the printed parsers read no words either."""
    ours, theirs = tables
    pairs = zip(*(_means(of_arm, langs) for of_arm in tables.values()), strict=True)
    published = None
    if set(langs) <= set(_DELEXICALISED):
        printed = [TABLE_3_2[lang].scores for lang in langs]
        published = sum(of[ours][0] - of[theirs][0] for of in printed) / len(langs)
    return Figure(f"{name}, {ours} less {theirs}", published, tuple(a - b for a, b in pairs))


def _floor(arm: str, tables: Sequence[Mapping[str, Any]]) -> Floor:
    english = _means(tables, ("en",))
    return Floor(f"{arm}: UAS of English", sum(english) / len(english), 75)


def _correlations(arm: str, tables: Sequence[Mapping[str, Any]]) -> list[Figure]:
    unseen = [lang for lang in OTHERS if lang not in TABLE_3_2]
    groups = {
        f"{len(OTHERS)} languages": list(OTHERS),
        f"{len(unseen)} languages that Table 3.2 does not have": unseen,
    }
    found = {
        name: [
            [(one["distance"], one["loss"]) for one in table["languages"] if one["lang"] in langs]
            for table in tables
        ]
        for name, langs in groups.items()
    }
    return [
        figure
        for name, seeds in found.items()
        for figure in correlations(arm, name, seeds, published=False)
    ]


# Mean over the languages, UAS, in the order of the claim.
_TABLE_3_3: Final = {
    "relative": 64.57,
    "directed": 63.93,
    "rnn": 63.25,
    "absolute": 61.76,
    "none": 28.18,
}


def _run_table_3_3(trial: Trial) -> Findings:
    prepare(trial)
    tables: dict[str, list[dict[str, Any]]] = {}
    for arm in _TABLE_3_3:
        recipe, settings = (RNN, ()) if arm == "rnn" else (SELFATT, (f"model.position={arm}",))
        tables[arm] = [
            transfer(trial, arm, recipe, seed, SMALL_POSITIONS, *settings) for seed in trial.seeds
        ]
    means = [
        Figure(f"{arm}: mean UAS of {len(OTHERS)} languages", published, _means(tables[arm]))
        for arm, published in _TABLE_3_3.items()
    ]
    english = [
        Figure(f"{arm}: UAS of English", None, tuple(of_language(one, "en", "uas") for one in of))
        for arm, of in tables.items()
    ]
    ordered = all(one.mean > next_.mean for one, next_ in pairwise(means))
    notes = {"small": (_UNDERTRAINED,), "full": ()}
    floors = tuple(_floor(arm, of) for arm, of in tables.items())
    return Findings([*means, *english], ordered, notes[trial.size], floors=floors)


def _means(
    tables: Sequence[Mapping[str, Any]], langs: Sequence[str] = tuple(OTHERS)
) -> tuple[float, ...]:
    return tuple(
        sum(of_language(one, lang, "uas") for lang in langs) / len(langs) for one in tables
    )


_UNDERTRAINED: Final = (
    "After so few passes the encoders differ most in how fast they learn, as their scores on "
    "English show: the row `transfer` trains relative positions and the RNN six times as long."
)

_CODE: Final = (
    "trainer/systems/orderfree",
    "trainer/tasks/graph_parser.py",
    "trainer/tasks/stack_parser.py",
)
_DATA: Final = (ENGLISH, TOKENIZER, *OTHERS.values())

_RULE: Final = (
    "the claim holds if the 95 % interval of SelfAtt-{0} less RNN-{0} (mean UAS {1}; Student's t "
    "over seeds) is above 0, else fails if below 1, and is undecided otherwise; each must reach 75 "
    "UAS on English"
)
_ALL: Final = f"mean UAS of {len(OTHERS)} languages"
_BOTH: Final = "mean UAS of zh and ja"
_DESIGN: Final = Design(effect=1.0, spread=1.0)
_FULL: Final = (
    "delexicalised (published: word vectors, but for Chinese and Japanese); treebanks of later "
    "releases, but for these two; no restarts"
)

ROWS: Final = (
    Row(
        name="transfer",
        claim="Self-attention that knows no direction transfers better than an RNN",
        source="Ahmad et al. 2019; the dissertation's Table 3.2, delexicalised zh and ja",
        convention=_CONVENTION,
        rule=_RULE.format("Graph", "over all languages but English"),
        data=_DATA,
        code=_CODE,
        run=partial(_run_table_3_2, recipes=GRAPH, small=SMALL, judged=_ALL),
        effects=(
            f"{_ALL}, selfatt less rnn",
            *(f"{x} UAS, selfatt less rnn" for x in _DELEXICALISED),
        ),
        design=_DESIGN,
        reductions={
            "full": _FULL,
            "small": f"{_FULL}; "
            + _REDUCTIONS.format("12 passes, an evaluation on dev every other pass"),
        },
        seeds={"small": 3, "full": 5},
    ),
    Row(
        name="transfer-stack",
        claim="With a stack-pointer decoder, delexicalised, self-attention transfers better to "
        "Chinese and Japanese",
        source="Ahmad et al. 2019; the dissertation's Table 3.2, delexicalised zh and ja (over all "
        "30 languages the two are alike: 61.29 and 61.39 UAS)",
        convention=_CONVENTION,
        rule=_RULE.format("Stack", "of the two languages"),
        data=_DATA,
        code=_CODE,
        run=partial(_run_table_3_2, recipes=STACK, small=SMALL_STACK, judged=_BOTH),
        effects=(
            f"{_BOTH}, selfatt-stack less rnn-stack",
            f"{_ALL}, selfatt-stack less rnn-stack",
            *(f"{x} UAS, selfatt-stack less rnn-stack" for x in _DELEXICALISED),
        ),
        design=_DESIGN,
        reductions={
            "full": _FULL,
            "small": f"{_FULL}; {_REDUCTIONS.format('3 passes')}; an LSTM of 150 over inputs of "
            "128 (published: 300, 256), relations in 64 dimensions (128)",
        },
        seeds={"small": 3, "full": 5},
    ),
    Row(
        name="transfer-positions",
        claim="Relative positions transfer best, then directed ones, the RNN, absolute ones, none",
        source="Ahmad et al. 2019; the dissertation's Table 3.3",
        convention=f"{_CONVENTION}; mean over languages. Ours is delexicalised; the published "
        "parsers read word vectors, and are scored on train splits",
        rule="the means over seeds are in the published order; each must reach 75 UAS on English",
        data=_DATA,
        code=_CODE,
        run=_run_table_3_3,
        reductions={"small": f"{_FULL}; {_REDUCTIONS.format('2 passes')}", "full": _FULL},
        seeds={"small": 1, "full": 5},
    ),
)
