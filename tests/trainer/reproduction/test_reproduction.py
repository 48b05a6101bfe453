import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import SpecError
from syntax.trees.conllu import read_conllu
from tests.trainer.command import parsebank
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.reproduction.account import account, data_hash, figure_rows, in_order, page
from trainer.reproduction.row import Figure, Findings, Listing, Row, Source
from trainer.reproduction.rows import (
    ROWS,
    adversarial,
    noise,
    parsers,
    plbart,
    sla,
    syntax_encoder,
    transfer,
    udprlm,
    wolof,
)
from trainer.reproduction.rows.paired import less, over_languages
from trainer.reproduction.rows.table_3_2 import PARSERS, TABLE_3_2
from trainer.reproduction.rows.word_order import correlations, printed_correlations
from trainer.reproduction.trial import Trial, commit, commits_since

RESULTS = Path(__file__).parents[3] / "docs" / "reproduction"
ERRATA = tomllib.loads((RESULTS / "errata.toml").read_text("utf-8"))
FIXTURES = Path(__file__).parents[2] / "fixtures"


@given(st.lists(st.floats(-100, 100), min_size=3, max_size=8))
def test_the_interval_is_that_of_students_t(values: list[float]) -> None:
    # 0.975 quantiles of t for 2 to 7 degrees of freedom, as tables print them.
    quantile = [4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646][len(values) - 3]
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = quantile * math.sqrt(variance / len(values))
    found = Figure("f", None, tuple(values)).interval
    assert found == pytest.approx((mean - half, mean + half), abs=0.05 + 1e-4 * half)


def test_fewer_than_three_seeds_have_no_interval() -> None:
    assert Figure("f", 3.0, (2.0,)).deviation is None
    assert Figure("f", 3.0, (2.0,)).interval is Figure("f", 3.0, (2.0, 3.0)).interval is None


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A small trial, whose data lie in the folder of the test."""
    row = Row(
        name="dependency-distances",
        claim="A claim",
        source="A paper, Table 1",
        convention="test",
        rule="a rule",
        data=(Source("treebanks/X", "https://example.org"),),
        run=lambda _: Findings(
            [Figure("LAS", 1.0, (2.0, 4.0, 3.0))], holds=True, notes=("a note",)
        ),
        reductions={"small": "shorter"},
        seeds={"small": 3},
    )
    (tmp_path / "treebanks" / "X").mkdir(parents=True)
    return Trial(row, tmp_path / "out", tmp_path, "small", (1, 2, 3))


def test_a_grid_measures_condition_beside_condition(trial: Trial) -> None:
    order: list[tuple[str, int]] = []

    def measured(condition: str, seed: int) -> str:
        order.append((condition, seed))
        return f"{condition}{seed}"

    found = trial.grid(("a", "b"), measured)
    assert found == {"a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"]}
    assert order == [(arm, seed) for seed in (1, 2, 3) for arm in "ab"]


def test_a_trial_goes_on_under_no_other_rule(trial: Trial) -> None:
    began = trial.begin()
    assert (began["rule"], began["reductions"]) == ("a rule", "shorter")
    assert trial.begin() == began
    assert account(trial, trial.row.run(trial))["designed"]["when"] == began["when"]
    assert (began["seeds"], began["power"]) == (3, "not estimated")
    more = account(replace(trial, seeds=(1, 2, 3, 4)), trial.row.run(trial))
    assert more["notes"] == ["a note", "Begun with 3 seeds; their number changed while it ran."]
    other = replace(trial, row=replace(trial.row, rule="an easier rule"))
    with pytest.raises(SpecError, match=r"began under another rule of .* --output to begin anew"):
        other.begin()


def test_commits_to_the_code_of_a_row_are_counted_since_its_result() -> None:
    head = commit()
    if head is None:
        pytest.skip("no history here")
    assert commits_since(head, ["trainer"]) == 0
    assert commits_since("no-such-commit", ["trainer"]) is commits_since(None, ["trainer"]) is None


def test_missing_data_is_named_with_its_origin(trial: Trial) -> None:
    trial.check_data()
    (trial.data / "treebanks" / "X").rmdir()
    with pytest.raises(SpecError, match=r"treebanks/X \(https://example.org\)"):
        trial.check_data()


def test_an_account_can_be_shown(trial: Trial) -> None:
    content = json.loads(json.dumps(account(trial, trial.row.run(trial))))
    assert content["verdict"] == "smaller trial: consistent"
    assert content["command"] == "parsebank reproduce dependency-distances --size small --seeds 3"
    assert figure_rows(content) == [("LAS", "1.00", "3.00", "1.00", "0.52 to 5.48", 3)]
    shown = page(in_order([content], {}))
    assert "[dependency-distances](#dependency-distances-small)" in shown
    assert "**Reproductions**" in shown
    assert "own" not in shown
    assert "Smaller trial: consistent" in shown
    assert "| LAS | 1.00 | 3.00 ± 1.00 | 3 |" in shown
    assert f"- **present rule**: {ROWS['dependency-distances'].rule}" in shown


def test_a_page_has_six_figures_of_a_row_and_links_the_rest(trial: Trial) -> None:
    figures = [Figure(f"figure {number}", None, (1.0,)) for number in range(9)]
    shown = page(in_order([json.loads(json.dumps(account(trial, Findings(figures, True))))], {}))
    assert "| figure 5 |" in shown
    assert "| figure 6 |" not in shown
    assert "[3 more figures](reproduction/dependency-distances-small.json)" in shown


def test_errata_stand_beside_figures_that_stay(trial: Trial) -> None:
    figures = [Figure("LAS", 3.0, (1.0,)), Figure("UAS", 4.0, (2.0,))]
    content = account(trial, Findings(figures, holds=True))
    own = {
        "published": {"LAS": 5.0},
        "withdrawn": ["UAS"],
        "derived": {"LAS of half": [0.5]},
        "source": "Table 3",
        "verdict": "described",
        "found": "Little.",
        "notes": ["sic"],
    }
    shown = page(in_order([content], {"dependency-distances-small": own}))
    assert "| LAS | 5.00 | 1.00 |" in shown
    assert shown.index("| LAS |") < shown.index("| LAS of half |  | 0.50 |")  # printed ones first
    assert f"- **present claim**: {ROWS['dependency-distances'].claim}\n" in shown
    assert "- **smaller**: shorter\n" in shown
    assert "- **now smaller**: none\n" in shown
    assert "UAS" not in shown
    assert "- **source**: Table 3" in shown
    assert "| described | Little. |" in shown
    assert "**Erratum.** sic" in shown
    assert "Erratum" not in page(in_order([content], {}))
    with pytest.raises(KeyError, match="has no F1"):
        in_order([content], {"dependency-distances-small": {"withdrawn": ["F1"]}})


def test_a_listing_is_shown_before_the_figures(trial: Trial) -> None:
    listing = Listing("what is lost", ("release", "lost"), (("A", "3 of 4"),))
    findings = Findings([Figure("LAS", None, (1.0,))], holds=True, listings=(listing,))
    shown = page(in_order([json.loads(json.dumps(account(trial, findings)))], {}))
    assert shown.index("| A | 3 of 4 |") < shown.index("| LAS |")


def test_failed_commands_are_counted(trial: Trial, tmp_path: Path) -> None:
    trial.folder.mkdir()
    with pytest.raises(SpecError, match="`parsebank train` ended with 1"):
        trial.parsebank("train", "no-such-recipe", "--store", str(tmp_path / "store"))
    content = account(trial, trial.row.run(trial))
    assert content["runs"]["finished"] == 0
    (failed,) = content["runs"]["failed"]
    assert (failed["command"], failed["code"]) == ("train", 1)


@pytest.mark.parametrize(
    ("multitask", "gan_las", "holds"),
    [
        ((80.0, 81.0, 82.0), (56.0, 56.1, 56.2), True),
        ((62.0, 61.0, 60.5), (56.0, 56.1, 56.2), False),
        ((80.0, 81.0, 82.0), (54.8, 55.2, 55.6), None),  # -1.5 to 0: neither below -1 nor within 1
        ((80.0, 81.0, 82.0), (50.0, 50.1, 50.2), False),
    ],
)
def test_an_adversary_must_hide_the_language_and_parse_no_worse(
    multitask: tuple[float, ...], gan_las: tuple[float, ...], holds: bool | None
) -> None:
    def runs(las, told):
        return [({"de": one, "ru": one}, share) for one, share in zip(las, told, strict=True)]

    plain = (56.0, 56.0, 56.0)
    found = adversarial.findings(
        {
            "none": runs(plain, multitask),
            "multitask": runs(plain, multitask),
            "gan": runs(gan_las, (60.0, 60.5, 61.0)),
        }
    )
    assert found.holds is holds
    assert [one.name for one in found.figures[:2]] == list(adversarial.ROW.effects)
    assert found.floors[0].is_missed == (multitask[0] < 75)


def test_what_a_condition_adds_is_the_mean_over_pairs_by_seed() -> None:
    parts = {"xpos": 10, "phrase": 1, "tree": 2, "sla": 3, "published-sign": -4, "mlm": 50}
    scores = {}
    for name in wolof.CONDITIONS:
        points = 40 + sum(worth for part, worth in parts.items() if part in name)
        las = (points, points + 1)
        scores[name] = wolof.Scores(las, las, (2 * points,) * 5)
    found = {one.name: one.values for one in wolof.findings(scores, masked=40).figures}
    assert found["LAS of dev, mlm less random"] == (50, 50)
    assert found["LAS of dev, phrase loss released less published"] == (4, 4)
    assert found["LAS of dev, phrases and trees less mlm, published loss"] == (-1, -1)
    gain = "mean gain over {} pairs of conditions".format
    assert found[f"LAS of dev, tags: {gain(5)}"] == (10, 10)
    assert found[f"LAS of dev, phrases, trees or both: {gain(6)}"] == (2, 2)
    assert found[f"F1 of names, tags: {gain(5)}"] == (20,) * 5
    assert found[f"F1 of names, local attention: {gain(2)}"] == (6,) * 5
    assert found[f"LAS of dev, local attention: {gain(2)}"] == (3, 3)


def test_the_hash_of_data_covers_names_and_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "treebank"
    folder.mkdir()
    (folder / "a").write_text("one")
    hashes = [data_hash(folder)]
    (folder / "a").write_text("two")
    hashes.append(data_hash(folder))
    (folder / "a").rename(folder / "b")
    hashes.append(data_hash(folder))
    assert len(set(hashes)) == 3
    assert data_hash(folder) == hashes[-1]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_beforehand_what_it_claims(name: str) -> None:
    row = ROWS[name]
    assert all((row.claim, row.source, row.convention, row.rule, row.data))
    assert row.name == name
    assert not row.seeds or row.reductions.keys() == {"small", "full"}, "what a size leaves out"
    assert all((Path(__file__).parents[3] / path).exists() for path in row.code)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_results_are_judged_by_the_rule_that_stands_or_say_so(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert path.stem == f"{content['row']}-{content['size']}"
    erratum = ERRATA.get(path.stem, {})
    if content["rule"] != ROWS[content["row"]].rule:
        assert "verdict" in erratum
    assert content["data"].keys() == {source.path for source in ROWS[content["row"]].data}
    assert erratum.get("found") or content.get("found")


UDPRLM = (*udprlm.SMALL["encoder"], *udprlm.SMALL["training"])
FITTING = [
    *((parser, transfer.SMALL, {"epochs": 12}) for parser in (transfer.SELFATT, transfer.RNN)),
    *((parser, transfer.SMALL_STACK, {"epochs": 3}) for parser in transfer.STACK.values()),
    (transfer.RNN, transfer.SMALL_POSITIONS, {"epochs": 2}),
    *(
        (name, (*wolof.SMALL["pretraining"], *settings), {"max_steps": 2500})
        for name, *settings in filter(None, wolof.CONDITIONS.values())
    ),
    ("microbert-ud-frozen", wolof.SMALL["parser"], {}),
    *((f"microbert-ner{end}", wolof.SMALL["tagger"], {}) for end in ("", "-sla")),
    ("microbert-ud-frozen-sla", wolof.SMALL["parser"], {}),
    *(("udprlm-parser", (*udprlm.SMALL["parser"], *x), {}) for x in udprlm.CONDITIONS.values()),
    *((f"udprlm-phase-{phase}", UDPRLM, {"batch_size": 32}) for phase in (1, 2)),
    *((sla.RECIPE, (*sla.SETTINGS["small"], *x), {"epochs": 3}) for x in sla.CONDITIONS.values()),
    *(
        (name, (*syntax_encoder.SETTINGS["small"], *settings), {"epochs": 2})
        for name in syntax_encoder.TASKS
        for settings in syntax_encoder.CONDITIONS.values()
    ),
    (noise.RECIPE, noise.SETTINGS["small"], {"epochs": 6, "keep": "last"}),
    ("parser", parsers.SETTINGS["small"], {"epochs": 2}),
    ("parser", parsers.SETTINGS["full"], {"epochs": 6}),
]


def test_the_settings_of_trials_fit_their_recipes() -> None:
    for name, settings, expected in FITTING:
        training = with_settings(RECIPES[name](), settings).training
        assert {option: getattr(training, option) for option in expected} == expected, name
    for settings in adversarial.CONDITIONS.values():
        made = with_settings(RECIPES[adversarial.RECIPE](), (*adversarial.SMALL, *settings))
        assert made.training.delay == made.training.epochs / 2


def test_pairs_of_languages_stay_aligned_where_files_are_divided(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks" / "pawsx"
    folder.mkdir(parents=True)
    for lang in ("en", "fr"):
        lines = [f"{lang} {n}\ra\tb\t1\n" for n in range(2000)]
        (folder / f"dev-{lang}.tsv").write_bytes("".join(lines).encode())
    one = Trial(ROWS["syntax-encoder"], tmp_path / "out", tmp_path, "small", (1,))
    found = syntax_encoder.divide(one, "pawsx")
    assert {path.name for path in found.iterdir()} == {"train-en.tsv", "dev-en.tsv", "dev-fr.tsv"}
    assert (found / "train-en.tsv").read_bytes().count(b"\n") == 1200
    for lang in ("en", "fr"):
        assert (found / f"dev-{lang}.tsv").read_bytes().startswith(f"{lang} 1500\r".encode())


@given(st.floats(-10, 10), st.floats(-10, 10), st.sampled_from([(0.0, 0.5, 1.0), (0.0, 1.0)]))
def test_the_fall_of_a_line_is_its_slope(start: float, end: float, shares: tuple) -> None:
    line = {share: start + share * (end - start) for share in shares}
    assert noise.fall(line) == pytest.approx(start - end, abs=1e-9)


def test_the_published_fall_is_that_of_the_printed_accuracies() -> None:
    # By hand: sum of (share - .5)(accuracy - mean) is -.31, of squares .70.
    assert noise.fall(noise.PUBLISHED) == pytest.approx(0.31 / 0.70, abs=0.001)


@pytest.mark.parametrize(
    ("fall", "spread", "holds"), [(0.4, 0.1, True), (0.4, 3.0, None), (2.0, 0.1, False)]
)
def test_a_layer_is_robust_where_noise_costs_less_than_a_point(
    fall: float, spread: float, holds: bool | None
) -> None:
    noisy = [{0.0: 94.0 + fall + sign * spread, 1.0: 94.0} for sign in (-1, 0, 1)]
    found = noise.findings([93.0] * 3, noisy)
    assert found.holds is holds
    assert not found.floors[0].is_missed
    assert noise.findings([79.0] * 3, noisy).floors[0].is_missed


def test_gold_words_are_scored_as_tokens_of_their_own() -> None:
    sentences = list(read_conllu(FIXTURES / "treebank-tiny" / "tiny-ud-test.conllu"))
    assert any(len(one.tokens) < len(one.words) for one in sentences)
    gold = [parsers.of_words(sentence) for sentence in sentences]
    assert parsers.scores(gold, gold) == {"UPOS": 100, "UAS": 100, "LAS": 100}
    assert all(len(one.tokens) == len(one.words) for one in gold)


def test_generalised_pairs_are_of_two_languages() -> None:
    scores = {"en-en": 90.0, "en-fr": 60.0, "fr-en": 50.0, "fr-fr": 70.0}
    assert syntax_encoder.across(scores) == 55.0


@pytest.mark.parametrize("arm", plbart.ARMS)
@pytest.mark.parametrize("size", ["small", "full"])
def test_the_arms_of_plbart_differ_in_their_noise(arm: str, size: str) -> None:
    released = arm.endswith("released")
    made = with_settings(RECIPES[arm](), plbart.settings(size, released))
    variant = "as_released" if released else "as_published"
    (english,) = made.streams
    assert made.task.noise == english.task.noise == variant
    assert (made.task.language, english.task.language) == ("python", "en")
    assert (made.data.dataset, english.data.dataset) == tuple(plbart.LANGUAGES.values())


def test_the_unigram_model_knows_ends_and_every_piece() -> None:
    train, dev = [np.array([5, 6]), np.array([5])], [np.array([5, 7])]
    counts = {2: 1 + 2, 5: 1 + 2, 6: 1 + 1, 7: 1}  # of ten ids, with 5 pieces and ends
    expected = -sum(math.log(counts[one] / 15) for one in (5, 7, 2)) / 3
    assert plbart.unigram_loss(train, dev, 10) == pytest.approx(expected)


def test_the_shares_of_noise_are_counted_over_pieces_and_words() -> None:
    texts = [(f"{at}", np.arange(10, 70), np.arange(60) // 2) for at in range(400)]
    found = plbart.shares(iter(texts))
    assert found["published"] == pytest.approx(35, abs=0.2)
    assert found["released"] == pytest.approx(30)  # 9 of 30 words


def test_differences_are_paired_over_languages() -> None:
    one = [{"a": 3.0, "b": 12.0, "c": 22.0}, {"a": 1.0, "b": 10.0, "c": 24.0}]
    other = [{"a": 1.0, "b": 10.0, "c": 20.0}, {"a": 1.0, "b": 10.0, "c": 20.0}]
    found = over_languages(one, other)
    assert found.difference == pytest.approx(5 / 3)
    assert (found.low, found.high) == pytest.approx((1, 3))  # of a and b, and of c
    assert less("LAS", None, one, other).values == pytest.approx((2, 4 / 3))


def test_the_averages_of_table_3_2_are_the_printed_ones() -> None:
    printed = {
        "selfatt": (64.06, 53.82),
        "rnn": (62.71, 52.63),
        "selfatt-stack": (62.22, 52.00),
        "rnn-stack": (62.37, 51.89),
    }
    for parser in PARSERS:
        scores = [one.scores[parser] for one in TABLE_3_2.values()]
        assert tuple(round(sum(of) / 31, 2) for of in zip(*scores, strict=True)) == printed[parser]


def test_printed_figures_correlate_as_the_text_says() -> None:
    found = {figure.name: figure.mean for figure in printed_correlations()}
    assert len(found) == 8
    assert [round(value, 2) for name, value in found.items() if "Pearson" in name] == [
        *(0.88, 0.90, 0.89, 0.91)
    ]
    assert [round(value, 2) for name, value in found.items() if "Spearman" in name] == [
        *(0.86, 0.84, 0.85, 0.86)
    ]


def test_coefficients_are_of_each_seed() -> None:
    seeds = [[(0.1, 1.0), (0.2, 2.0), (0.4, 3.0)], [(0.1, 3.0), (0.2, 2.0), (0.3, 1.0)]]
    pearson, spearman = correlations("rnn", "3 languages", seeds, published=True)
    assert pearson.values == pytest.approx((0.9819805, -1.0))
    assert spearman.values == pytest.approx((1.0, -1.0))
    assert (pearson.published, spearman.published) == (0.90, 0.87)


def test_the_list_says_what_is_missing_and_who_needs_it(tmp_path: Path) -> None:
    (tmp_path / "tokenizers" / "bert-base-multilingual-cased").mkdir(parents=True)
    output = ("--output", str(tmp_path / "trials"))
    found = parsebank("reproduce", "--list", "--data", str(tmp_path), *output)
    assert found.exit_code == 0
    rows, missing = found.stdout.split("missing data\tfrom\tneeded by\n")
    assert rows.splitlines()[1].startswith("dependency-distances\treproduction\tdescribed\t0.0")
    assert "bert-base-multilingual-cased" not in missing
    lines = {line[0]: line for line in (one.split("\t") for one in missing.splitlines())}
    assert lines["benchmarks/multi30k"][1:] == [
        "Multi30k, English and German (multi30k/dataset)",
        "translation",
    ]
    assert lines["benchmarks/atis"][2] == "noise, parse-quality"
    assert lines["benchmarks/pawsx"][2] == "releases, syntax-encoder"
    assert f"Put it into {tmp_path}" in found.stderr


def test_the_list_in_json_has_what_each_row_lacks(tmp_path: Path) -> None:
    found = parsebank("reproduce", "--list", "--json", "--data", str(tmp_path))
    noise = next(row for row in json.loads(found.stdout) if row["row"] == "noise")
    assert noise["verdict"] == "smaller trial: not testable"
    assert noise["rule"] == ROWS["noise"].rule
    assert list(noise["missing"]) == ["benchmarks/atis", "encoders/all-MiniLM-L6-v2"]


@pytest.mark.slow
def test_table_3_4_is_reproduced(tmp_path: Path, data_dir: Path) -> None:
    arguments = ["reproduce", "dependency-distances", "--output", str(tmp_path)]
    found = parsebank(*arguments, "--data", str(data_dir), "--json")
    assert found.exit_code == 0, found.output
    findings = tmp_path / "dependency-distances-small" / "findings.json"
    content = json.loads(findings.read_text(encoding="utf-8"))
    assert content["verdict"] == "reproduced"
    assert [round(one["mean"], 2) for one in content["figures"]] == [
        *(14.48, 15.38, 31.41, 7.62, 9.90, 21.23)
    ]
