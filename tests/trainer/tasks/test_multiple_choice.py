"""Multiple choice: the softmax is over the sequences of one example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from featurestore import FeatureStore, open_store
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, LabelSpec
from tests.trainer.rows import parsed_row, write_rows
from tests.trainer.runs import finished, recipes_of
from tests.trainer.tagged import sentences
from trainer.evaluation.transfer import evaluate_run
from trainer.loop import train
from trainer.options import MultipleChoiceOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.tasks.multiple_choice import MultipleChoice, by_example

LABEL = LabelSpec("label", "class", ("A", "B"))
LEVEL = LabelSpec("level", "class", ("middle", "high"))
FIELDS = ("article", "question", "option_a", "option_b")


@pytest.fixture(scope="module")
def choices(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    """Which of two sentences is the article again."""
    rows, lines = [], sentences()[:24]
    for seq, line in enumerate(lines):
        options = [line, lines[seq - 1]][:: 1 if seq % 2 else -1]
        texts = (line, "Which is it?", *options)
        labels = {"label": LABEL.names[options.index(line)], "level": LEVEL.names[seq < 10]}
        rows.append(parsed_row(english, tokenizer, seq, f"race-{seq}", texts, labels))
    with open_store(str(tmp_path_factory.mktemp("choices") / "store")) as store:
        for split in ("train", "dev"):
            spec = DatasetSpec("race", split, "en", FIELDS, (LABEL, LEVEL))
            write_rows(store, english, tokenizer, spec, rows)
        yield store


def test_scores_are_laid_out_by_example_and_choice(make_batch) -> None:
    batch = make_batch(sizes=(4, 4, 4, 4))
    index = {"example_index": [0, 1, 0, 1], "choice_index": [0, 1, 1, 0]}
    extras = {name: torch.tensor(values) for name, values in index.items()}
    found = by_example(torch.tensor([1.0, 2.0, 3.0, 4.0]), replace(batch, extras=extras), 2)
    assert found.tolist() == [[1.0, 3.0], [4.0, 2.0]]


TINY = (
    *("data.dataset=race", "data.tokenizer=parsebank-wordpiece-en", "encoder=parsebank-tiny"),
    *("weights=random", "threads=1", "batch_size=8", "max_length=64", "evaluate_every=null"),
    *("checkpoint_every=null",),
)


@pytest.mark.parametrize("name", recipes_of("multiple_choice.v1"))
def test_every_recipe_of_the_task_trains(name, choices, tmp_path) -> None:
    run = train(with_settings(RECIPES[name](), [*TINY, "max_steps=2"]), choices, tmp_path)
    assert run.progress.best.scores["examples"] == 24
    assert 0 < run.progress.losses[0] < 3


def test_accuracy_is_also_given_by_group(choices, tmp_path) -> None:
    finished(with_settings(RECIPES["sgnet-race"](), [*TINY, "max_steps=2"]), choices, tmp_path)
    table = evaluate_run(tmp_path, choices, "dev")
    scores, predictions = table.scores["en"], table.predictions["en"]
    for level, count in (("middle", 14), ("high", 10)):
        ours = [one for one in predictions if (int(one.example_id[5:]) < 10) == (level == "high")]
        group = scores.per_group[level]
        assert group.examples == len(ours) == count
        assert group.accuracy == pytest.approx(sum(one.right for one in ours) / count)
        assert f"| en, {level} | {count} | {group.accuracy:.4f} |" in table.markdown()
    assert "## Groups" in (tmp_path / "result.md").read_text("utf-8")


def test_a_group_alone_is_no_label_to_score_by() -> None:
    options = MultipleChoiceOptions(group="level")
    assert not options.has_labels({"label": [None, None], "level": ["high", "middle"]})
    with pytest.raises(SpecError, match="accuracy by group needs"):
        MultipleChoice(options, {"label": LABEL, "level": LabelSpec("level", "string")})


def test_a_template_of_another_size_is_refused(choices, tmp_path) -> None:
    settings = [*TINY, 'template=["article+question option_a"]']
    with pytest.raises(SpecError, match="chooses among 2, and an example became 1"):
        train(with_settings(RECIPES["sgnet-race"](), settings), choices, tmp_path)


@pytest.mark.slow
def test_it_learns_by_heart(choices, tmp_path) -> None:
    settings = [*TINY, "max_steps=150", "learning_rate=0.002", "warmup_share=0", "batch_size=12"]
    run = train(with_settings(RECIPES["sgnet-race"](), settings), choices, tmp_path)
    assert run.progress.best.headline > 0.9


def test_a_label_without_classes_is_refused() -> None:
    with pytest.raises(SpecError, match="multiple choice needs"):
        MultipleChoice(MultipleChoiceOptions(), {"label": LabelSpec("label", "string")})
