"""Studies of tiny runs: chosen by dev, interrupted and resumed, failed, on Dask."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean

import pytest

from clients.benchmarks import SAMPLE
from featurestore import FeatureStore, ParseRecord, open_store
from featurestore.reports.word_order import word_order
from service.parsers import Limits, ParseInput
from syntax.errors import SpecError, UnknownParserError
from syntax.fingerprint import fingerprint
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from tests.trainer.command import parsebank
from tests.trainer.treebank import DOG, DU, EATEN, GO, NAME, append_treebank
from tests.trainer.treebank import recipe as parser_recipe
from trainer.evaluation.compare import compare
from trainer.evaluation.tables import systems_of
from trainer.options.settings import with_settings
from trainer.progress import Evaluation
from trainer.results import read_result
from trainer.studies.grid import folder_name
from trainer.studies.matrix import LanguageMatrix, language_matrix
from trainer.studies.parsers import parser_study
from trainer.studies.sweep import sweep

DROPOUTS = "model.dropout=0,0.5"


def of_language(run: Path, lang: str, split: str = "dev", metric: str = "accuracy") -> float:
    content = json.loads((run / f"evaluation-{split}.json").read_text("utf-8"))
    return content["languages"][lang][metric]


@pytest.fixture
def short(small_recipe):
    return small_recipe("max_steps=4", "evaluate_every=2", "checkpoint_every=2", "objectives=[]")


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_and_the_best_point_on_dev_is_scored(
    short, store, tmp_path, crash
) -> None:
    steps: list[tuple[str, int]] = []

    def watching(end: int):
        """Notes each evaluation, and ends the sweep at one as a killed process ends."""

        def watch(event: object) -> None:
            if isinstance(event, Evaluation):
                steps.append((event.metric, event.step))
                if len(steps) == end:
                    raise crash

        return [watch]

    study = (short, [DROPOUTS], [1, 2], store, tmp_path, "dev", ["de", "en"])
    # The second run ends after its checkpoint at step 2, which comes before step 4's evaluation.
    with pytest.raises(crash):
        sweep(*study, observers=watching(4))
    first = read_result(tmp_path / "model.dropout=0" / "seed1")
    del steps[:]
    told: list[str] = []
    found = sweep(*study, observers=watching(-1), told=told.append)
    assert told[0] == "4 runs, of which 1 are done"
    assert [step for _, step in steps] == [4, 2, 4, 2, 4], "the second run goes on from step 2"
    assert read_result(tmp_path / "model.dropout=0" / "seed1") == first
    means = []
    for point in found.points:
        runs = [Path(point.folder) / f"seed{seed}" for seed in (1, 2)]
        assert list(point.scores.values()) == [read_result(run)["accuracy"] for run in runs]
        means.append(fmean(point.scores.values()))
    assert found.chosen == means.index(max(means))
    for at, point in enumerate(found.points):
        scored = [(Path(point.folder) / f"seed{n}" / "evaluation-dev.json") for n in (1, 2)]
        assert [path.exists() for path in scored] == [at == found.chosen] * 2
    best = Path(found.points[found.chosen].folder)
    expected = {seed: of_language(best / f"seed{seed}", "de") for seed in (1, 2)}
    assert found.test["de"].scores == expected
    assert set(found.test) == {"de", "en", "mean"}
    # Once more, nothing is trained or evaluated.
    del told[:]
    assert sweep(*study, told=told.append) == found
    assert told == ["4 runs, of which 4 are done"]
    # The study is a folder of systems.
    assert {tuple(runs) for runs in systems_of([tmp_path]).values()} == {(1, 2)}
    with pytest.raises(SpecError, match=r"holds a run of model\.dropout=0 with other options"):
        sweep(with_settings(short, ["batch_size=4"]), *study[1:])


def test_a_point_that_fails_is_told_and_never_chosen(short, store, tmp_path) -> None:
    settings = ["learning_rate=1e30,1e-3"]
    found = sweep(short, settings, [1], store, tmp_path, "dev", ["en"])
    assert found.chosen == 1
    assert "NaN or infinity" in found.points[0].failed[1]
    (note,) = found.notes()
    assert note in found.markdown()
    assert found.rows()[0][2] == "failed"
    with pytest.raises(SpecError, match="every point has a run that failed"):
        sweep(short, ["learning_rate=1e30"], [1], store, tmp_path, "dev")


def test_the_command_sweeps_and_its_folder_makes_a_table(store_uri, tmp_path) -> None:
    given = ("--set", "max_steps=2", "--set", "batch_size=4,8", "--seeds", "1")
    where = ("--store", store_uri, "--output", tmp_path)
    made = parsebank("sweep", "sample", *given, *where, "--split", "dev", "--lang", "en")
    assert made.exit_code == 0, made.output
    content = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    chosen = content["points"][content["chosen"]]
    lines = made.stdout.splitlines()
    assert lines[0].split("\t") == ["", "settings", "dev accuracy", "dev en"]
    assert [line.startswith("*") for line in lines[1:]] == [
        at == content["chosen"] for at in (0, 1)
    ]
    assert f"max_steps=2, {chosen['settings'][1]}" in (tmp_path / "sweep.md").read_text("utf-8")
    shown = parsebank("tables", tmp_path, "--split", "dev")
    assert f"training.{chosen['settings'][1]}" in shown.stdout
    refused = parsebank("sweep", "sample", *given, *where)
    assert "no language of sample has examples in test" in refused.output
    refused = parsebank("sweep", "sample", *given, *where, "--split", "dev", "--lang", "en,ru")
    assert "unknown language of sample in dev 'ru'" in refused.output


@pytest.fixture(scope="module")
def treebanks(tmp_path_factory, tokenizer) -> str:
    """Three languages, of which one has no training data."""
    uri = str(tmp_path_factory.mktemp("matrix") / "store")
    langs = {"en": (DOG, GO, EATEN), "fr": (DU, GO, DU + GO), "de": (EATEN, DOG + GO, GO)}
    with open_store(uri) as store:
        for lang, trees in langs.items():
            for split in ("train", "dev", "test"):
                if (lang, split) != ("de", "train"):
                    append_treebank(store, tokenizer, split, trees * 3, lang=lang)
            store.parses.append([_placed(lang, at) for at in range(20)])
    return uri


ORDERS = {
    "en": "the{}/DET/2/det dog/NOUN/3/nsubj barks/VERB/0/root",
    "fr": "dog/NOUN/3/nsubj the{}/DET/1/det barks/VERB/0/root",
    "de": "barks/VERB/0/root dog/NOUN/1/nsubj the{}/DET/2/det",
}


def _placed(lang: str, number: int) -> ParseRecord:
    """One of many sentences of a language, of which the words stand in its order."""
    words = (word.split("/") for word in ORDERS[lang].format(number).split())
    lines = [
        f"{at}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_\n"
        for at, (form, upos, head, deprel) in enumerate(words, 1)
    ]
    parse = parse_from_sentences(list(parse_conllu("".join([*lines, "\n"]))))
    parser = fingerprint(["gold"])
    return ParseRecord(fingerprint([lang, number]), lang, parser, "gold", parse)


@pytest.mark.slow
def test_a_matrix_has_each_source_and_target_with_means_and_word_order(treebanks, tmp_path) -> None:
    with open_store(treebanks) as store:
        found = matrix_of(store, tmp_path)
        order = word_order(store, types="published", missing="as_published")
    assert (found.sources, found.targets) == (["en", "fr"], ["de", "en", "fr"])
    score = {
        (a, b): of_language(tmp_path / f"data.lang={a}" / "seed1", b, "test", "las")
        for a in ("en", "fr")
        for b in ("de", "en", "fr")
    }
    assert {pair: cell.scores for pair, cell in found.cells.items()} == {
        pair: {1: one} for pair, one in score.items()
    }
    assert found.as_source("en").mean == pytest.approx((score["en", "de"] + score["en", "fr"]) / 2)
    assert found.as_target("de").mean == pytest.approx((score["en", "de"] + score["fr", "de"]) / 2)
    assert found.as_target("en").mean == score["fr", "en"]
    # The correlation, pair by pair.
    pairs, rows = [pair for pair in score if len(set(pair)) == 2], order.distances()
    distances = [rows[order.langs.index(a), order.langs.index(b)] for a, b in pairs]
    assert found.distances == dict(zip(pairs, distances, strict=True))
    losses = [score[a, a] - score[a, b] for a, b in pairs]
    left, right = ([x - fmean(of) for x in of] for of in (distances, losses))
    pearson = sum(a * b for a, b in zip(left, right, strict=True)) / math.hypot(*left)
    assert found.correlation[0] == pytest.approx(pearson / math.hypot(*right))
    assert f"over 4 pairs: Pearson {found.correlation[0]:.2f}" in found.told()[0]
    assert found.notes == []
    content = json.loads((tmp_path / "matrix.json").read_text("utf-8"))
    assert content["as_source"]["en"] == found.as_source("en").mean
    assert "| As-target |" in (tmp_path / "matrix.md").read_text("utf-8")


def matrix_of(store: FeatureStore, folder: Path) -> LanguageMatrix:
    recipe = parser_recipe("max_steps=20", "evaluate_every=20", "learning_rate=0.01")
    return language_matrix(recipe, [1], store, folder)


@pytest.mark.slow
def test_the_command_trains_only_what_a_matrix_lacks(treebanks, tmp_path) -> None:
    settings = [f"task.name=dependency.v1,data.dataset={NAME},model.use_syntax=false"]
    given = [x for one in settings[0].split(",") for x in ("--set", one)]
    given += ["--set", "max_steps=2", "--set", "max_length=32", "--store", treebanks]
    command = ("matrix", "sample", *given, "--output", tmp_path, "--target", "de,fr")
    assert parsebank(*command, "--source", "en").exit_code == 0
    made = parsebank(*command)
    assert made.exit_code == 0, made.output
    assert "2 runs, of which 1 are done" in made.stderr
    assert made.stdout.splitlines()[0] == "source / target\tde\tfr\tAs-source"


@pytest.mark.slow
def test_runs_go_to_the_workers_of_a_cluster(short, store, tmp_path) -> None:
    from distributed import LocalCluster

    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(threads_per_worker=1, **options) as cluster:
        how = {"dask": cluster.scheduler_address}
        found = sweep(short, [DROPOUTS], [1], store, tmp_path / "dask", "dev", ["en"], **how)
    here = sweep(short, [DROPOUTS], [1], store, tmp_path / "here", "dev", ["en"])
    assert [x.scores for x in found.points] == [x.scores for x in here.points]
    with LocalCluster(threads_per_worker=2, **options) as cluster:
        how = {"dask": cluster.scheduler_address}
        with pytest.raises(SpecError, match="--nthreads 1"):
            sweep(short, [DROPOUTS], [1], store, tmp_path / "two", "dev", ["en"], **how)
    with pytest.raises(SpecError, match="no Dask scheduler answers at tcp://127"):
        sweep(short, [DROPOUTS], [1], store, tmp_path / "x", "dev", dask="tcp://127.0.0.1:1")


@pytest.fixture
def parsed(tmp_path, sample_rows, append_rows, english) -> str:
    """A store of some pairs with the parses behind them, as a backfill leaves it."""
    uri = str(tmp_path / "store")
    with open_store(uri) as store:
        store.describe(english.identity.fingerprint, "parser", english.identity.description)
        for split, count in (("train", 16), ("dev", 12)):
            rows = sample_rows[split][:count]
            append_rows(store, rows, split, "en")
            texts: dict[str, str] = {}
            for row in rows:
                texts |= zip(row.parse_keys, row.texts, strict=True)
            for key, text in texts.items():
                parse = english.parse(ParseInput("raw", text=text), Limits())
                record = ParseRecord(key, "en", english.identity.fingerprint, "raw", parse)
                store.parses.append([record])
    return uri


UDPIPE, NOISY = "udpipe/english-ewt", "udpipe/english-ewt~heads-0.5-0"


@pytest.mark.slow
def test_a_study_of_parsers_compares_each_with_the_first(short, parsed, tmp_path) -> None:
    runs = {name: tmp_path / folder_name([f"data.parser={name}"]) for name in (UDPIPE, NOISY)}
    study = (short, [UDPIPE], [1])
    with open_store(parsed) as store:
        found = parser_study(*study, store, tmp_path, "dev", noise=[0.5])
        told: list[str] = []
        assert parser_study(*study, store, tmp_path, "dev", noise=[0.5], told=told.append) == found
        assert told == ["2 runs, of which 2 are done"]
        with pytest.raises(UnknownParserError, match="not by 'stanza/en'"):
            parser_study(short, [UDPIPE, "stanza/en"], [1], store, tmp_path / "other", "dev")
        assert not (tmp_path / "other").exists()
    first, noisy = found.parsers
    assert (first.parser, first.las, first.difference) == (UDPIPE, 75.8, None)
    assert (noisy.parser, noisy.las) == (NOISY, None)
    for row in found.parsers:
        assert row.examples == 16
        assert row.scores["en"].scores == {1: of_language(runs[row.parser] / "seed1", "en")}
    (line,) = compare(runs[NOISY], runs[UDPIPE], "dev").lines
    assert noisy.difference == line
    assert (found.columns, found.notes) == (["en"], [])
    content = json.loads((tmp_path / "parsers.json").read_text("utf-8"))
    assert content["parsers"][1]["difference"]["seeds"] == {
        seed: list(pair) for seed, pair in line.seeds.items()
    }
    assert "| parser | LAS |" in (tmp_path / "parsers.md").read_text("utf-8")
    # `tables` reads the folder.
    systems = systems_of([tmp_path])
    assert len(systems) == 2
    assert all(NOISY in name or f"={json.dumps(UDPIPE)}" in name for name in systems)


@pytest.mark.slow
def test_the_command_parses_trains_and_compares(tmp_path) -> None:
    command = ("study", "parsers", "sample", "--store", tmp_path / "store", "--split", "dev")
    command += ("--set", "max_steps=2", "--output", tmp_path / "runs", "--seeds", "1")
    command += ("--parser", "english-ewt", "--parser", "parsebank/english", "--noise", "0.2")
    for part, size in (("train-en.tsv", 40), ("dev-en.tsv", 20)):
        lines = (SAMPLE.bundled / part).read_text("utf-8").splitlines(keepends=True)
        (tmp_path / part).write_text("".join(lines[:size]), "utf-8")
    backfill = ("--benchmark", "sample", "--path", tmp_path)
    assert parsebank(*command, "--path", tmp_path).exit_code == 2
    made = parsebank(*command, *backfill)
    assert made.exit_code == 0, made.output
    lines = [line.split("\t") for line in made.stdout.splitlines()]
    assert lines[0][:5] == ["parser", "LAS", "examples", "en", "- first"]
    assert [line[:2] for line in lines[1:]] == [
        [UDPIPE, "75.80"],
        ["parsebank/english", "87.19"],
        ["udpipe/english-ewt~heads-0.2-0", "–"],
    ]
    assert "sample dev en by parsebank/english: 20 stored, 0 already, 0 dropped" in made.stderr
    again = parsebank(*command, *backfill)
    assert "0 stored, 20 already" in again.stderr
    assert "3 runs, of which 3 are done" in again.stderr
