"""Backfill throughput as ratios, all measured in turns in one run on the same cores.

    python -m benchmarks.backfill [--rounds 3] [--workers 2] [--pairs 7500]

With as many processes each, on the same pairs of texts, with the same model, all warm:

* *raw*: processes call ``ufal.udpipe`` directly on each distinct text: tokenize, tag and parse,
  nothing else.
* *pipeline*: as papers' releases do it (`benchmarks.backfill.pipeline`): every text of every pair,
  by way of CoNLL-U and the package `conllu`, to JSON lines.
* *first*: a backfill, the whole way from the first byte of the upload to the commit of the last
  shard: staging, cache lookup, the same parsing, alignment with wordpieces, matrices and two Delta
  tables, on a fresh store.
* *tokenizer*: the same backfill with another tokenizer, on the same store: nothing is parsed.
* *again*: the first backfill once more: nothing is to be done.
* *least*: a backfill of a single pair: what any takes, however small. The ratios "for a text" are
  those of what the others take beyond it: what a corpus of any size comes to in the end.

Each backfill is compared with the mean of the raw runs before and after it, for machines drift.
Ratios are of wall-clock times; where others use the machine too these scatter, and the ratios of
processor seconds beside them say what the work itself costs. A neighbour can slow a whole round by
half: beside the medians stand the ratios of each one's best round.

With PARSEBANK_DATA set the texts are sentence pairs of XNLI: English, by the small model that ships
with us, and French, by an official one, which takes twice to three times as long for a word. The
second tokenizer is multilingual BERT's. Without, they are the bundled sample, and the tokenizer is
written for the run.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
from typing import Any

from benchmarks.backfill import pipeline
from benchmarks.backfill.corpus import Corpus, read_corpora, second_tokenizer, settings, upload
from benchmarks.backfill.raw import CHUNK, Raw, load_raw, time_raw
from benchmarks.backfill.running import Timed, running_service, timed, warm_up
from benchmarks.result import write_result
from service.parsers import find_parser

BACKFILLS = ("first", "tokenizer", "again", "least")

TARGETS = {
    "first_of_raw": (">=", 0.9),
    "first_of_pipeline": (">=", 1.0),
    "tokenizer_share": ("<=", 0.03),
    "again_share": ("<=", 0.01),
    "first_of_raw_for_a_text": (">=", 0.9),
    "tokenizer_share_for_a_text": ("<=", 0.03),
    "again_share_for_a_text": ("<=", 0.01),
}
"""What is wanted: throughput of raw and pipeline, shares of the first one's time."""


def measure(corpus: Corpus, workers: int, rounds: int, tokenizer: str) -> list[dict]:
    model = str(find_parser(settings(corpus.lang), lang=corpus.lang).path)
    spawn = multiprocessing.get_context("spawn")
    results = []
    with (
        spawn.Pool(workers, load_raw, (model,)) as raw,
        spawn.Pool(workers, pipeline.load, (model,)) as others,
    ):
        time_raw(raw, corpus.texts[: CHUNK * workers])
        before = time_raw(raw, corpus.texts)
        for number in range(rounds):
            peer = pipeline.time_pipeline(others, corpus.pairs)
            backfills = asyncio.run(time_backfills(corpus, workers, tokenizer))
            after = time_raw(raw, corpus.texts)
            results.append(figures(before, after, peer, backfills, len(corpus.pairs)))
            show_round(number, results[-1])
            before = after
    return results


async def time_backfills(corpus: Corpus, workers: int, tokenizer: str) -> dict[str, Timed]:
    """The backfills, one after the other on one store."""
    first = list(upload(corpus.pairs, corpus.lang))
    other = list(upload(corpus.pairs, corpus.lang, tokenizer=tokenizer))
    async with running_service(workers, corpus.lang) as (client, services):
        jobs_file = services.settings.state_dir / "jobs.sqlite"
        await warm_up(client, jobs_file, workers, tokenizer, corpus.lang)
        least = await timed(client, services.jobs, first[:2], "least")
        found = [await timed(client, services.jobs, lines) for lines in (first, other, first)]
        return dict(zip(BACKFILLS, (*found, least), strict=True))


def figures(
    before: Raw, after: Raw, peer: pipeline.Peer, backfills: dict[str, Timed], pairs: int
) -> dict[str, Any]:
    """One round: seconds, and the ratios that matter, larger than 1 where we are ahead."""
    raw, raw_processor = ((before[n] + after[n]) / 2 for n in range(2))
    seconds = {name: each.seconds for name, each in backfills.items()}
    processor = {name: each.processor for name, each in backfills.items()}
    return {
        "seconds": {
            "raw": raw,
            "pipeline": peer.seconds,
            **seconds,
        },
        "processor_seconds": {
            "raw": raw_processor,
            "pipeline": peer.processor,
            **processor,
        },
        "ratios": ratios(raw, peer.seconds, **seconds),
        "processor_ratios": ratios(raw_processor, peer.processor, **processor),
        "words": after[2],
        "pairs_kept": {
            "first": backfills["first"].job["counts"]["stored"] / pairs,
            "pipeline": peer.kept / pairs,
        },
        "counts": {name: each.job["counts"] for name, each in backfills.items()},
    }


def ratios(
    raw: float, peer: float, *, first: float, tokenizer: float, again: float, least: float
) -> dict[str, float]:
    return {
        "first_of_raw": raw / first,
        "first_of_pipeline": peer / first,
        "tokenizer_share": tokenizer / first,
        "again_share": again / first,
        "first_of_raw_for_a_text": raw / (first - least),
        "tokenizer_share_for_a_text": (tokenizer - least) / (first - least),
        "again_share_for_a_text": (again - least) / (first - least),
    }


def show_round(number: int, result: dict[str, Any]) -> None:
    times = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in result["seconds"].items())
    print(f"round {number + 1}: {times}")


def at_best(rounds: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """The ratios of each one's best round."""
    best = {name: min(r[kind][name] for r in rounds) for name in rounds[0][kind]}
    return ratios(best.pop("raw"), best.pop("pipeline"), **best)


def medians(rounds: list[dict[str, Any]], kind: str) -> dict[str, float]:
    return {name: statistics.median(r[kind][name] for r in rounds) for name in rounds[0][kind]}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments.add_argument("--pairs", type=int, help="only the first so many of each split")
    options = arguments.parse_args()
    with second_tokenizer() as tokenizer:
        results = [
            run(corpus, options.workers, options.rounds, tokenizer)
            for corpus in read_corpora(options.pairs)
        ]
    write_result("backfill", {"workers": options.workers, "corpora": results})


def run(corpus: Corpus, workers: int, rounds: int, tokenizer: str) -> dict[str, Any]:
    parser = find_parser(settings(corpus.lang), lang=corpus.lang).name
    print(
        f"{corpus.name}: {len(corpus.pairs)} pairs, {len(corpus.texts)} distinct texts, "
        f"{parser}, {workers} processes each"
    )
    found = measure(corpus, workers, rounds, tokenizer)
    both = {kind: medians(found, kind) for kind in ("ratios", "processor_ratios")}
    best = {kind: at_best(found, kind) for kind in ("seconds", "processor_seconds")}
    for name, (better, target) in TARGETS.items():
        wall, processor, *bests = (each[name] for each in (*both.values(), *best.values()))
        print(
            f"{name}: {wall:.3f} (processor {processor:.3f}), at best {bests[0]:.3f} "
            f"({bests[1]:.3f}); target {better} {target}"
        )
    return {
        "corpus": corpus.name,
        "parser": parser,
        "pairs": len(corpus.pairs),
        "distinct_texts": len(corpus.texts),
        "median": both,
        "at_best": best,
        "rounds": found,
    }


if __name__ == "__main__":
    main()
