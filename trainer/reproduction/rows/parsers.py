"""Our own parser of English beside the UDPipe model that is bundled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from syntax.trees.conllu import parse_conllu, raw_text, read_conllu
from syntax.trees.scoring import evaluate
from syntax.trees.sentence import Sentence, Token
from trainer.reproduction.row import Figure, Findings, Row, Size
from trainer.reproduction.rows.paired import gain
from trainer.reproduction.rows.treebanks import ENCODER, ENGLISH
from trainer.reproduction.trial import Trial
from trainer.results import read_json, write_json

if TYPE_CHECKING:
    from clients.client.client import Client

UDPIPE: Final = "udpipe/english-ewt"
METRICS: Final = ("UPOS", "UAS", "LAS")
PARTS: Final = ("gold words", "running text")
SETTINGS: Final[Mapping[Size, tuple[str, ...]]] = {"small": ("epochs=2",), "full": ("epochs=6",)}
_AT_ONCE: Final = 64

Scores = Mapping[str, Mapping[str, float]]
"""F1 in per cent, by part and metric."""


def _train(trial: Trial, seed: int) -> str:
    settings = (f"model.encoder={trial.data / ENCODER.path}", "checkpoint_every=100")
    run = trial.train("parser", "own", seed, ("data.dataset=ewt", *settings, *SETTINGS[trial.size]))
    name = f"ewt-seed{seed}"
    if not (trial.folder / "models" / "parsebank" / name).exists():
        served = ("--models-dir", str(trial.folder / "models"), "--lang", "en")
        licence = ("--licence", "CC BY-SA 4.0")
        trial.parsebank("models", "add", name, "--from", str(run), *served, *licence)
    return f"parsebank/{name}"


def of_words(sentence: Sentence) -> Sentence:
    words = tuple(replace(word, misc=None) for word in sentence.words)
    return Sentence(words, tuple(Token(word.form, (word.id,)) for word in words))


def _from_words(client: Client, parser: str, gold: Sequence[Sentence]) -> Iterator[Sentence]:
    options: dict[str, Any] = {"mode": "pretokenized", "lang": "en", "store": False}
    for start in range(0, len(gold), _AT_ONCE):
        tokens = [[word.form for word in one.words] for one in gold[start : start + _AT_ONCE]]
        yield from parse_conllu(client.parse_conllu(tokens=tokens, parser=parser, **options))


def _from_text(client: Client, parser: str, gold: Sequence[Sentence]) -> Iterator[Sentence]:
    """Parses of the running text, a paragraph at a time."""
    options: dict[str, Any] = {"mode": "raw", "lang": "en", "store": False}
    paragraphs = [text for text in raw_text(gold).split("\n\n") if text.strip()]
    for start in range(0, len(paragraphs), _AT_ONCE):
        texts = paragraphs[start : start + _AT_ONCE]
        found = client.parse_conllu(texts=texts, parser=parser, long_sentences="split", **options)
        yield from parse_conllu(found)


def scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, float]:
    found = evaluate(gold, system)
    return {name: found[name].f1 for name in METRICS}


def _scored(trial: Trial, parser: str) -> Scores:
    from clients.client.client import Client

    file = trial.folder / "scores" / f"{parser.rpartition('/')[2]}.json"
    if not file.exists():
        gold = list(read_conllu(trial.data / ENGLISH.path / "en_ewt-ud-test.conllu"))
        words = [of_words(sentence) for sentence in gold]
        where: dict[str, Any] = {"models_dir": str(trial.folder / "models")}
        store = str(trial.folder / "service")
        with Client.embedded(store, request_deadline_seconds=600, **where) as client:
            found = (
                scores(words, list(_from_words(client, parser, words))),
                scores(gold, list(_from_text(client, parser, gold))),
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, dict(zip(PARTS, found, strict=True)))
    return read_json(file, f"{file} is gone; run the row again")


def _run(trial: Trial) -> Findings:
    encoder = ("--tokenizer", str(trial.data / ENCODER.path), "--max-pieces", "254")
    source = ("--path", str(trial.data / ENGLISH.path), "--split", "train,dev,test", "--lang", "en")
    trial.backfill("ewt", "ud", *source, *encoder, "--mode", "gold", "--name", "ewt")
    ours = [_scored(trial, _train(trial, seed)) for seed in trial.seeds]
    theirs = _scored(trial, UDPIPE)
    las = {
        name: [one["gold words"]["LAS"] for one in found]
        for name, found in (("ours", ours), ("theirs", [theirs] * len(ours)))
    }
    difference = gain(_GAIN, None, las["ours"], las["theirs"])
    figures = [
        Figure(f"{name}, {part}: {metric}", None, tuple(one[part][metric] for one in found))
        for part in PARTS
        for metric in METRICS
        for name, found in (("ours", ours), ("UDPipe", [theirs]))
    ]
    return Findings(
        [difference, *figures],
        holds=min(difference.values) >= 5,
        notes=(
            "Ours takes sentences and words of running text from the UDPipe model. No English "
            "model of Stanza is at hand. "
            "[How to train and serve it](models.md#a-run-of-the-trainer).",
        ),
    )


_GAIN: Final = "LAS of gold words, ours less UDPipe"

ROW: Final = Row(
    name="ewt-parsers",
    claim="The recipe `parser`, over a small encoder, parses English far better than UDPipe",
    source="our own claim; no paper has these figures",
    convention="UD_English-EWT test, F1 by the definitions of CoNLL 2018, of gold words and of "
    "running text",
    rule="in every seed the LAS of gold words is 5 points or more above that of the UDPipe "
    "model that is trained on the same treebank",
    data=(ENGLISH, ENCODER),
    run=_run,
    code=(
        "trainer/tasks/graph_parser.py",
        "trainer/nn/biaffine.py",
    ),
    kind="own claim",
    effects=(_GAIN,),
    reductions={"small": "2 passes (the claim: 6), one seed", "full": "none"},
    seeds={"small": 1, "full": 3},
)
