"""Heat maps of one example: the right numbers under the right pieces."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from syntax.errors import SpecError, UnknownNameError
from syntax.matrices import sgnet_mask
from tests.trainer.command import parsebank
from trainer.data import device_batches
from trainer.evaluation.inspection import Inspected, captured_attention, inspect_example
from trainer.evaluation.pictures import Panel, draw_panels
from trainer.evaluation.trained import load_run, open_language
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxForSequenceClassification
from trainer.nn.attention import EAGER
from trainer.options import SgNetOptions


@pytest.fixture
def inspected(trained, store) -> Inspected:
    run = load_run(trained, EAGER).on(store)
    source = open_language(store, run, "dev", "en")
    return inspect_example(run, store, source, _first(source), ["distance", "ancestor"])


def _first(source) -> str:
    return source.dataset.columns(["example_id"])["example_id"][0].as_py()


def test_positions_show_the_texts_pieces(inspected, sample_rows) -> None:
    row = sample_rows["dev"][0]
    words = "".join(inspected.labels).replace("##", "").replace("[CLS]", "")
    premise, hypothesis, rest = words.split("[SEP]")
    assert rest == ""
    for shown, text in ((premise, row.texts[0]), (hypothesis, row.texts[1])):
        assert shown.lower() == text.replace(" ", "").lower()


def test_matrices_are_those_of_the_stream(inspected, store) -> None:
    data = store.dataset("sample", split="dev", lang="en")
    arrays = next(iter(data.stream(batch_size=1, shuffle=False)))
    for name in ("distance", "ancestor", "depth"):
        assert np.array_equal(inspected.matrices[name], arrays[name][0])


def test_attention_is_that_of_the_encoder(trained, store, inspected) -> None:
    """Captured by hooks, it is what the encoder itself gives when asked; rows add up to 1."""
    run = load_run(trained, EAGER).on(store)
    source = open_language(store, run, "dev", "en")
    assert set(inspected.attention) == {0, 1}
    for weights_NLL in inspected.attention.values():
        assert weights_NLL.sum(-1) == pytest.approx(1.0, abs=1e-5)
    stream = source.dataset.stream(batch_size=1, shuffle=False)
    (batch, *_) = device_batches(stream, run.recipe, source.task, run.model.device)
    with torch.no_grad():
        expected = run.model.eval().encoder(batch, output_attentions=True).attentions
    for layer, weights_NLL in inspected.attention.items():
        assert weights_NLL == pytest.approx(expected[layer][0].numpy(), abs=1e-6)


def test_padding_is_cut_off_and_the_guided_layer_comes_last(
    bert_config, make_batch, with_extra
) -> None:
    """SG-Net's own layer shows its mask: nobody attends to other than itself and its ancestors."""
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        attention=EAGER,
        model={"name": "sgnet.v1", "masking": "as_released"},
        classes={"label": ["no", "yes", "maybe"]},
    )
    name = SgNetOptions().mask_name
    batch = with_extra(
        make_batch(), name, lambda parents, special, upos: sgnet_mask(parents, special=special)
    )
    size = int(batch.lengths_B[1])
    found = captured_attention(SyntaxForSequenceClassification(config), batch, sequence=1)
    assert list(found) == [0, 1, 2, 3]
    assert {weights.shape for weights in found.values()} == {(4, size, size)}
    mask = batch.extras[name][1, :size, :size].numpy()
    seen = (found[3] > 0).all(0)
    assert np.array_equal(seen[mask.any(1)], mask[mask.any(1)])


def test_without_weights_to_see_there_is_no_picture(trained, store) -> None:
    run = load_run(trained).on(store)
    source = open_language(store, run, "dev", "en")
    with pytest.raises(SpecError, match="no layer that gives attention"):
        inspect_example(run, store, source, _first(source))


def test_unknown_examples_layers_and_heads_are_named(inspected, trained, store) -> None:
    with pytest.raises(SpecError, match="no layer 2; there are 0, 1"):
        inspected.attention_panel(2)
    with pytest.raises(SpecError, match="no head 99"):
        inspected.attention_panel(0, 99)
    run = load_run(trained, EAGER).on(store)
    source = open_language(store, run, "dev", "en")
    with pytest.raises(UnknownNameError, match="example of sample"):
        inspect_example(run, store, source, "dev-0-not")
    with pytest.raises(SpecError, match="there is no 1"):
        inspect_example(run, store, source, _first(source), sequence=1)


def test_no_path_is_blank(inspected) -> None:
    distance = inspected.matrices["distance"].copy()
    distance[0, 1] = np.iinfo(distance.dtype).max
    panel = replace(inspected, matrices={"distance": distance}).matrix_panel("distance")
    assert np.isnan(panel.values[0, 1])
    assert not np.isnan(panel.values[1:]).any()


def test_signs_of_formulas_and_foreign_letters_are_drawn_as_they_are(tmp_path) -> None:
    labels = ["$", "x^2", "$", "語"]
    draw_panels([Panel("t", np.eye(4))], labels, tmp_path / "p.svg")
    shown = re.findall(r">([^<>]+)</text>", (tmp_path / "p.svg").read_text("utf-8"))
    assert [text for text in shown if text in labels] == labels * 2


def test_a_file_that_is_no_picture_is_refused_before_anything_is_read(tmp_path) -> None:
    result = parsebank("picture", "nowhere", "a", "--output", tmp_path / "p.foo")
    assert result.exit_code == 1
    assert "p.foo is not a picture; its suffix must be one of" in result.stderr
    assert ", svg" in result.stderr


@pytest.mark.slow
def test_the_command_draws_attention_and_matrices(trained, store_uri, store, tmp_path) -> None:
    data = store.dataset("sample", split="dev", lang="en")
    name = data.columns(["example_id"])["example_id"][0].as_py()
    where = ("--store", store_uri, "--split", "dev")
    picture = tmp_path / "new" / "p.svg"
    result = parsebank("picture", trained, name, *where, "--output", picture, "--head", "1")
    assert result.exit_code == 0, result.output
    shown = re.findall(r">([^<>]+)</text>", picture.read_text("utf-8"))
    for title in ("attention, layer 1, head 1", "distance", "depth"):
        assert title in shown
    # At the left and below of two matrices, and below a vector.
    assert shown.count("[CLS]") == 5
    png = tmp_path / "p.png"
    result = parsebank("picture", trained, name, *where, "--output", png, "--matrix", "ancestor")
    assert result.exit_code == 0, result.output
    assert png.read_bytes().startswith(b"\x89PNG")
