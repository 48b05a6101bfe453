"""Train a UDPipe model from a UD treebank: the command behind the shipped English model.

The parser learns from trees whose tags the fold taggers gave (see `Recipe`). A finished component
is kept in a work folder under the fingerprint of its options and data, so an interrupted training
continues, and a changed option retrains only what depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ufal.udpipe

from service.parsers.registry import load_parser
from service.parsers.udpipe.backend import model_in
from service.training.cards import udpipe_card, write_cards
from service.training.component import (
    KINDS,
    METHOD,
    ComponentJob,
    Kind,
    combine_components,
    load_model,
    run_component,
    tag_sentences,
)
from service.training.evaluation import Scores, evaluate_parser
from service.training.recipe import DEFAULT, Options, Recipe, format_options
from syntax import Sentence, fingerprint
from syntax.fingerprint import file_sha256
from syntax.trees.conllu import write_conllu
from syntax.trees.conllu.treebank import Treebank

EVALUATED_SPLITS = ("dev", "test")


@dataclass(frozen=True)
class Progress:
    """One report of a running training.

    Attributes:
        component: ``tokenizer``, ``tagger``, ``fold-0`` ..., ``parser`` or ``evaluation``.
        done, total: Rounds (iterations, epochs, splits) finished, and in all.
    """

    component: str
    done: int
    total: int
    message: str


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class TrainedModel:
    """Model, cards for programs and people, and ``scores["test"]["raw"]["LAS"]`` of a training."""

    model: Path
    card: Path
    readme: Path
    scores: Scores


def train(
    treebank: Treebank,
    output: Path,
    recipe: Recipe = DEFAULT,
    progress: Listener = lambda _: None,
    *,
    name: str,
    language: str,
    command: str,
    jobs: int = 1,
) -> TrainedModel:
    """Train, evaluate and describe a model.

    ``<name>.udpipe``, ``.json`` and ``.md`` are written to ``output``; finished components stay in
    ``<name>.work`` under it. Columns that the treebank leaves empty are not learned. Progress is
    called from several threads if *jobs* is more than one; each job takes a core and up to 700 MB.
    """
    work = output / f"{name}.work"
    work.mkdir(parents=True, exist_ok=True)
    splits = {split: treebank.read(split, recipe.limit) for split in ("train", *EVALUATED_SPLITS)}
    recipe = replace(recipe, columns=filled_columns(splits["train"], recipe.columns))
    training = _Training(work, recipe, jobs, progress)
    model = work / f"{name}.udpipe"
    components = _train_components(training, splits["train"], splits["dev"])
    combine_components(components, work / "dev.conllu", model)
    scores = _evaluate(model, {split: splits[split] for split in EVALUATED_SPLITS}, progress)
    card = udpipe_card(model, treebank, recipe, language, command, scores)
    # An earlier model of this name serves requests until here: file and card change together.
    return TrainedModel(model.replace(output / model.name), *write_cards(card, output), scores)


@dataclass(frozen=True)
class _Training:
    work: Path
    recipe: Recipe
    jobs: int
    progress: Listener


@dataclass(frozen=True)
class _Task:
    """A component under the name that progress reports give it."""

    component: str
    kind: Kind
    options: Options
    train: Path
    heldout: Path


def _train_components(
    training: _Training, train: Sequence[Sentence], dev: Sequence[Sentence]
) -> dict[Kind, Path]:
    recipe, work = training.recipe, training.work
    columns = _write(work / "train-columns.conllu", strip_columns(train, recipe.columns))
    columns_dev = _write(work / "dev-columns.conllu", strip_columns(dev, recipe.columns))
    train, dev = strip_columns(train), strip_columns(dev)
    learn, heldout = _write(work / "train.conllu", train), _write(work / "dev.conllu", dev)
    tokenizer, tagger, *folds = _run_all(
        training,
        [
            _Task("tokenizer", "tokenizer", recipe.tokenizer, learn, heldout),
            _Task("tagger", "tagger", recipe.tagger, columns, columns_dev),
            *_fold_tasks(training, train, heldout),
        ],
    )
    tagged = _write(work / "train-tagged.conllu", _tag_by_folds(recipe, folds, train))
    # A fold tagger's tags are as good for choosing an iteration, and spare the parser a retraining
    # whenever an option of the tagger changes.
    tagged_dev = _write(work / "dev-tagged.conllu", tag_sentences(load_model(folds[0]), dev))
    task = _Task("parser", "parser", recipe.parser, tagged, tagged_dev)
    (parser,) = _run_all(training, [task])
    return dict(zip(KINDS, (tokenizer, tagger, parser), strict=True))


def strip_columns(sentences: Iterable[Sentence], columns: Sequence[str] = ()) -> list[Sentence]:
    """Empty LEMMA, XPOS and FEATS unless they are in *columns*, and the enhanced graph."""
    emptied: dict[str, Any] = dict.fromkeys({"lemma", "xpos", "feats", "deps"} - {*columns})
    return [
        replace(one, words=tuple(replace(word, **emptied) for word in one.words), empty_nodes=())
        for one in sentences
    ]


def filled_columns(sentences: Sequence[Sentence], columns: Sequence[str]) -> tuple[str, ...]:
    words = [word for sentence in sentences for word in sentence.words]
    return tuple(
        column for column in columns if any(getattr(word, column) is not None for word in words)
    )


def fold_of(position: int, recipe: Recipe) -> int:
    """Fold of a sentence: blocks of sentences are dealt out in turn."""
    return position // recipe.block % recipe.folds


def _fold_tasks(training: _Training, train: Sequence[Sentence], heldout: Path) -> Iterable[_Task]:
    recipe = training.recipe
    for fold in range(recipe.folds):
        others = [sentence for at, sentence in enumerate(train) if fold_of(at, recipe) != fold]
        path = _write(training.work / f"train-without-fold-{fold}.conllu", others)
        yield _Task(f"fold-{fold}", "tagger", recipe.fold_tagger, path, heldout)


def _tag_by_folds(
    recipe: Recipe, models: Sequence[Path], train: Sequence[Sentence]
) -> list[Sentence]:
    """Tag each sentence with the model that has not seen it; the order stays."""
    tagged: dict[int, Sentence] = {}
    for fold, path in enumerate(models):
        positions = [at for at in range(len(train)) if fold_of(at, recipe) == fold]
        unseen = tag_sentences(load_model(path), [train[at] for at in positions])
        tagged.update(zip(positions, unseen, strict=True))
    return [tagged[at] for at in range(len(train))]


def _run_all(training: _Training, tasks: Sequence[_Task]) -> list[Path]:
    with ThreadPoolExecutor(max_workers=training.jobs) as pool:
        futures = [pool.submit(_run, training, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run(training: _Training, task: _Task) -> Path:
    output = training.work / f"{task.component}-{_key(task)}.udpipe"
    total = _rounds(task.options)

    def report(done: int, message: str) -> None:
        training.progress(Progress(task.component, done, total, message))

    if output.exists():
        report(total, "reused")
        return output
    report(0, "started")
    options = {task.kind: format_options(task.options)}
    job = ComponentJob(task.component, options, str(task.train), str(task.heldout), str(output))
    run_component(job, report)
    report(total, "finished")
    return output


def _key(task: _Task) -> str:
    version = ufal.udpipe.Version.current()
    return fingerprint(
        {
            "method": METHOD,
            "kind": task.kind,
            "options": dict(task.options),
            "train": file_sha256(task.train),
            "heldout": file_sha256(task.heldout),
            "udpipe": [version.major, version.minor, version.patch],
        }
    )


def _rounds(options: Options) -> int:
    names = ("iterations", "iterations_1", "epochs")
    return next((int(options[name]) for name in names if name in options), 1)


def _evaluate(model: Path, splits: dict[str, list[Sentence]], progress: Listener) -> Scores:
    parser = load_parser(model_in(model))
    scores: Scores = {}
    for done, (split, gold) in enumerate(splits.items()):
        progress(Progress("evaluation", done, len(splits), split))
        scores[split] = evaluate_parser(parser, gold)
    progress(Progress("evaluation", len(splits), len(splits), "finished"))
    return scores


def _write(path: Path, sentences: Iterable[Sentence]) -> Path:
    write_conllu(sentences, path)
    return path
