"""Accuracy against speed, for every parser of a language, in one run.

    python -m benchmarks.parsers TREEBANK... [--parser NAME ...] [--rounds 3] [--picture FILE]
        [--xnli FOLDER]

Each parser reads the test split of each treebank: F1 of the CoNLL 2018 metrics from raw text and
from gold words, and words a second of CPU time of one core, for the paragraphs of the raw text as a
backfill sends them, the best of the rounds. Every parser runs in a process of its own, whose peak
of memory is its own, too. Without ``--parser``, all that the service finds for the treebank's
language (``PARSEBANK_MODELS_DIR`` among them).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.result import write_result
from service.parsers import find_parser, list_models, load_parser
from service.parsers.base import Limits, ParseInput
from service.parsers.registry import serves
from service.settings import read_settings
from service.training.evaluation import evaluate_parser
from syntax import Parse, Sentence, read_conllu
from syntax.trees.conllu import raw_text

ROOT = Path(__file__).parents[1]
LIBRARIES = ("onnxruntime", "ufal.udpipe", "stanza", "spacy", "numpy")


def gold(treebank: Path) -> list[Sentence]:
    """The sentences of a treebank's test split."""
    (path,) = treebank.glob("*-ud-test.conllu")
    return list(read_conllu(path))


def measured(name: str, treebank: Path, rounds: int) -> dict[str, Any]:
    """Scores and speed of one parser, in this process."""
    start = time.perf_counter()
    parser = load_parser(find_parser(read_settings(), name), "cpu")
    loaded = time.perf_counter() - start
    sentences = gold(treebank)
    paragraphs = [part for part in raw_text(sentences).split("\n\n") if part.strip()]
    items = [ParseInput("raw", text=part, long_sentences="split") for part in paragraphs]
    words, best = 0, float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        parses = [one for one in parser.parse_many(items, Limits()) if isinstance(one, Parse)]
        best = min(best, time.process_time() - begin)
        words = sum(parse.word_count for parse in parses)
    return {
        "parser": name,
        "treebank": treebank.name,
        "scores": evaluate_parser(parser, sentences),
        "words_per_second": round(words / best),
        "load_seconds": round(loaded, 3),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def in_a_process(name: str, treebank: Path, rounds: int) -> dict[str, Any]:
    """The same, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.parsers", str(treebank), "--one", name]
    command += ["--rounds", str(rounds)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return result


def names_for(lang: str) -> list[str]:
    """All parsers of a language."""
    models = list_models(read_settings())
    return [model.name for model in models if serves(model, lang) and not model.problem]


def backfills(xnli: Path, names: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of ``parsebank backfill`` of XNLI's English dev split into a new store, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    command = [sys.executable, "-m", "parsebank", "backfill", "xnli", "--path", str(xnli)]
    for _ in range(rounds):
        for name in names:
            with TemporaryDirectory() as store:
                options = ("--split", "dev", "--lang", "en", "--parser", name, "--store", store)
                begin = time.perf_counter()
                subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
                seconds[name].append(round(time.perf_counter() - begin, 2))
    return seconds


def table(results: list[dict[str, Any]]) -> str:
    """The results as a table in Markdown."""
    columns = ("Words", "Sentences", "UPOS", "AllTags", "Lemmas", "LAS")
    lines = [
        f"| treebank | parser | {' | '.join(columns)} | LAS, gold words | words/s | MB |",
        "|---" * (len(columns) + 5) + "|",
    ]
    for one in results:
        raw, given = one["scores"]["raw"], one["scores"]["gold_tokens"]
        cells = " | ".join(f"{raw[column]:.2f}" for column in columns)
        lines.append(
            f"| {one['treebank']} | `{one['parser']}` | {cells} | {given['LAS']:.2f} "
            f"| {one['words_per_second']:,} | {one['peak_memory_mb']} |"
        )
    return "\n".join(lines)


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """LAS of raw text against words a second, a panel for each treebank."""
    from matplotlib import pyplot

    banks = list(dict.fromkeys(one["treebank"] for one in results))
    wide = min(len(banks), 3)
    high = -(-len(banks) // wide)
    figure = pyplot.figure(figsize=(5 * wide, 4 * high))
    for number, bank in enumerate(banks, 1):
        panel = figure.add_subplot(high, wide, number)
        for one in results:
            if one["treebank"] == bank:
                at = one["words_per_second"], one["scores"]["raw"]["LAS"]
                panel.plot(*at, "o", color="#1f4e79")
                panel.annotate(one["parser"], at, xytext=(6, 4), textcoords="offset points")
        panel.set(title=bank, xlabel="words a second, one core", ylabel="LAS, raw text")
        panel.set_xscale("log")
        panel.margins(0.25)
        panel.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("treebank", type=Path, nargs="+")
    arguments.add_argument("--parser", action="append")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--picture", type=Path)
    arguments.add_argument("--xnli", type=Path, help="XNLI's folder; also fill new stores from it")
    arguments.add_argument("--one", help="measure this parser in this process, and print JSON")
    given = arguments.parse_args()
    if given.one:
        print(json.dumps(measured(given.one, given.treebank[0], given.rounds)))
        return
    results = []
    for treebank in given.treebank:
        (path,) = treebank.glob("*-ud-test.conllu")
        for name in given.parser or names_for(path.name.partition("_")[0]):
            results.append(in_a_process(name, treebank, given.rounds))
            print(table(results[-1:]).splitlines()[-1], flush=True)
    print(table(results))
    content = {"results": results}
    if given.xnli:
        names = given.parser or names_for("en")
        content["backfill_seconds"] = backfills(given.xnli, names, given.rounds)
    write_result("parsers", content, libraries=LIBRARIES)
    if given.picture:
        draw(results, given.picture)


if __name__ == "__main__":
    main()
