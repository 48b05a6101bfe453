from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from featurestore import open_store
from syntax.errors import ModelLoadError, SpecError, UnknownDatasetError
from trainer.data import open_source, profile_data
from trainer.evaluation.transfer import evaluate_run, write_table
from trainer.requirements import Requirements

OTHER_PARSER = "ab" * 16


def test_zero_shot_scores_every_language_of_the_split(trained, store) -> None:
    table = evaluate_run(trained, store, "dev")
    assert set(table.scores) == {"en", "de", "fr"}
    # The same pairs lie under all three names, so there is nothing to lose in transfer.
    assert table.gap == pytest.approx(0.0)
    assert table.mean_of_targets == table.scores["de"].headline
    assert [row[0] for row in table.rows()] == ["en", "de", "fr", "mean of targets", "transfer gap"]
    content = table.to_json()
    assert (
        content["languages"]["fr"]["data"]["version"]
        == store.dataset("sample", split="dev").version
    )
    assert content["languages"]["en"]["examples"] == 48


def test_the_kept_model_scores_what_its_run_reported(trained, store) -> None:
    from trainer.results import read_result

    table = evaluate_run(trained, store, "dev", ["en"])
    assert table.scores["en"].headline == read_result(trained)["accuracy"]
    assert table.gap is None
    assert table.mean_of_targets is None


def test_another_parser_is_refused_by_name(trained, tmp_path, sample_rows, append_rows) -> None:
    renamed = [replace(row, parser=OTHER_PARSER) for row in sample_rows["dev"]]
    with open_store(tmp_path) as store:
        append_rows(store, renamed, "dev", "en")
        append_rows(store, renamed, "dev", "de")
        with pytest.raises(SpecError, match=r"udpipe/english-ewt .* of another/parser"):
            evaluate_run(trained, store, "dev", ["en"])
        assert evaluate_run(trained, store, "dev", ["de"]).data["de"]["parsers"] == {
            OTHER_PARSER: "another/parser"
        }
        assert evaluate_run(trained, store, "dev", ["en"], any_parser=True).scores["en"].examples


def test_of_several_parsers_the_models_own_is_read(
    trained, tmp_path, sample_rows, append_rows
) -> None:
    renamed = [
        replace(row, parser=OTHER_PARSER, example_key=row.example_key[::-1])
        for row in sample_rows["dev"]
    ]
    with open_store(tmp_path) as store:
        append_rows(store, renamed, "dev", "en")
        append_rows(store, sample_rows["dev"][:10], "dev", "en")
        table = evaluate_run(trained, store, "dev", ["en"])
    assert table.scores["en"].examples == 10
    assert list(table.data["en"]["parsers"].values()) == ["udpipe/english-ewt"]


def test_another_dataset_of_the_same_kind_can_be_scored(
    trained, store, append_rows, sample_rows
) -> None:
    append_rows(store, sample_rows["dev"], "dev", "en", name="elsewhere")
    here = evaluate_run(trained, store, "dev", ["en"])
    there = evaluate_run(trained, store, "dev", dataset="elsewhere")
    assert there.dataset == "elsewhere"
    assert there.scores["en"].to_json() == here.scores["en"].to_json()
    assert write_table(there, trained).name == "evaluation-elsewhere-dev.json"


def test_unknown_data_are_named(trained, store, tmp_path) -> None:
    with pytest.raises(UnknownDatasetError, match=r"split of sample 'test'\. Known: dev, train"):
        evaluate_run(trained, store, "test")
    with pytest.raises(UnknownDatasetError, match="dev/ru"):
        evaluate_run(trained, store, "dev", ["ru"])
    with pytest.raises(UnknownDatasetError, match=r"'sampel'\. Did you mean 'sample'"):
        evaluate_run(trained, store, "dev", dataset="sampel")
    with open_store(tmp_path) as empty, pytest.raises(UnknownDatasetError, match="'sample'"):
        evaluate_run(trained, empty, "dev")


def test_a_folder_without_result_or_model_is_named(trained, store, tmp_path) -> None:
    with pytest.raises(SpecError, match=r"holds no result\.json"):
        evaluate_run(tmp_path, store)
    shutil.copy(trained / "result.json", tmp_path)
    with pytest.raises(ModelLoadError, match="cannot load the model"):
        evaluate_run(tmp_path, store)


NEEDS = Requirements(
    tokenizer="a" * 32,
    tokenizer_name="ours",
    parsers={"en": ("c" * 32,)},
    parser_names={"c" * 32: "udpipe/ours"},
    classes={"label": ("no", "yes")},
)


def test_a_model_needs_of_each_language_the_parser_of_its_trees(
    english, sample_rows, append_rows, small_recipe, tmp_path
) -> None:
    renamed = [replace(row, parser=OTHER_PARSER) for row in sample_rows["dev"]]
    recipe = small_recipe()
    with open_store(tmp_path) as store:
        append_rows(store, sample_rows["dev"], "dev", "en")
        append_rows(store, renamed, "dev", "de")
        source = open_source(store, recipe, "dev", "*")
        needs = profile_data(source, recipe).requirements
    assert needs.parsers == {"de": (OTHER_PARSER,), "en": (english.identity.fingerprint,)}


def test_requirements_survive_the_models_configuration() -> None:
    assert Requirements.from_json(NEEDS.to_json()) == NEEDS
    with pytest.raises(SpecError, match="does not say"):
        Requirements.from_json({})


def test_other_classes_or_another_order_are_refused() -> None:
    NEEDS.check_classes({"label": ("no", "yes")})
    with pytest.raises(SpecError, match="mixed up"):
        NEEDS.check_classes({"label": ("yes", "no")})
