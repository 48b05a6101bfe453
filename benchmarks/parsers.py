"""Our own parser, trained on UD_English-EWT, beside the UDPipe model that is served by default.

    python -m benchmarks.parsers WORK --encoder FOLDER [--epochs 6]

Trains the recipe `parser` from an encoder (a folder in Hugging Face's format), serves the run with
`parsebank models add`, and scores both parsers on the test set by the CoNLL 2018 definitions, from
gold words and from running text. The own parser takes sentences and words of running text from the
UDPipe model. Run it again to go on after an interruption. It needs PARSEBANK_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from clients.client.client import Client
from service.models.training.treebank import raw_text
from syntax import Sentence
from syntax.trees.conllu import parse_conllu
from syntax.trees.scoring import evaluate
from syntax.trees.sentence import Token

TREEBANK: Final = Path(os.environ.get("PARSEBANK_DATA", "data")) / "treebanks" / "UD_English-EWT"
METRICS: Final = ("Sentences", "Words", "UPOS", "UAS", "LAS")
OWN: Final = "parsebank/ewt"
PARSERS: Final = ("udpipe/english-ewt", OWN)
AT_ONCE: Final = 64


def command(*arguments: str) -> None:
    """Run a parsebank command."""
    print("$ parsebank", *arguments, flush=True)
    subprocess.run((str(Path(sys.executable).parent / "parsebank"), *arguments), check=True)


def train(work: Path, encoder: Path, epochs: int) -> None:
    """Store the treebank, train the parser, and serve it from the models of ``work``."""
    store = ("--store", str(work / "store"))
    if not (work / "gold.json").exists():
        source = ("ud", "--path", str(TREEBANK), "--split", "train,dev,test", "--lang", "en")
        target = ("--tokenizer", str(encoder), "--name", "ewt", "--max-pieces", "254")
        report = ("--no-matrices", "--report", str(work / "gold.json"))
        command("backfill", *source, *target, *report, *store)
    run = work / "run"
    if not (run / "result.json").exists():
        options = ("data.dataset=ewt", f"model.encoder={encoder}", f"epochs={epochs}")
        sets = [part for option in options for part in ("--set", option)]
        resume = ["--resume"] if (run / "checkpoint").exists() else []
        command("train", "parser", *store, "--output", str(run), *sets, *resume)
    if not (work / "models").exists():
        licence = ("--licence", "CC BY-SA 4.0")
        served = ("--models-dir", str(work / "models"), "--lang", "en")
        command("models", "add", OWN.partition("/")[2], "--from", str(run), *served, *licence)


def of_words(sentence: Sentence) -> Sentence:
    """The sentence with each word as a token of its own."""
    words = tuple(replace(word, misc=None) for word in sentence.words)
    return Sentence(words, tuple(Token(word.form, (word.id,)) for word in words))


def from_words(client: Client, parser: str, gold: Sequence[Sentence]) -> Iterator[Sentence]:
    """Parses of the gold words."""
    for start in range(0, len(gold), AT_ONCE):
        sentences = gold[start : start + AT_ONCE]
        tokens = [[word.form for word in sentence.words] for sentence in sentences]
        options: Any = {"mode": "pretokenized", "lang": "en", "store": False}
        yield from parse_conllu(client.parse_conllu(tokens=tokens, parser=parser, **options))


def from_text(client: Client, parser: str, gold: Sequence[Sentence]) -> Iterator[Sentence]:
    """Parses of the running text, a paragraph at a time."""
    paragraphs = [text for text in raw_text(gold).split("\n\n") if text.strip()]
    for start in range(0, len(paragraphs), AT_ONCE):
        options: Any = {"mode": "raw", "lang": "en", "store": False, "long_sentences": "split"}
        found = client.parse_conllu(
            texts=paragraphs[start : start + AT_ONCE], parser=parser, **options
        )
        yield from parse_conllu(found)


def scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> dict[str, float]:
    """F1 in percent by metric."""
    found = evaluate(gold, system)
    return {name: round(found[name].f1, 2) for name in METRICS}


def compare(work: Path) -> dict[str, Any]:
    """Scores of both parsers on the test set, and how long each took."""
    path = TREEBANK / "en_ewt-ud-test.conllu"
    gold = list(parse_conllu(path.read_text(encoding="utf-8")))
    words = [of_words(sentence) for sentence in gold]
    results: dict[str, Any] = {}
    where: Any = {"store": str(work / "service"), "models_dir": str(work / "models")}
    where["request_deadline_seconds"] = 600
    with Client.embedded(**where) as client:
        for parser in PARSERS:
            begun = time.perf_counter()
            gold_words = scores(words, list(from_words(client, parser, words)))
            seconds = time.perf_counter() - begun
            raw = scores(gold, list(from_text(client, parser, gold)))
            results[parser] = {"gold_words": gold_words, "raw": raw, "seconds": round(seconds, 1)}
            print(parser, json.dumps(results[parser]), flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path, help="folder of the store, the run and the models")
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=6)
    chosen = parser.parse_args()
    work = chosen.work.resolve()
    train(work, chosen.encoder.resolve(), chosen.epochs)
    now = datetime.now(UTC)
    content = {
        "when": now.isoformat(),
        "machine": platform.platform(),
        "encoder": chosen.encoder.name,
        "epochs": chosen.epochs,
        "training": json.loads((work / "run" / "result.json").read_text()),
        "parsers": compare(work),
    }
    path = Path(__file__).parent / "results" / f"parsers-{now:%Y-%m-%d}.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(path)


if __name__ == "__main__":
    main()
