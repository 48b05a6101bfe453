"""Parsers as programs: they score as the model does, and what cannot be one is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from onnxruntime import InferenceSession

from featurestore import open_store
from service.parsers import ParseInput
from service.parsers.base import Limits
from syntax.errors import SpecError
from syntax.parsing.folder import RELATIONS, WORDS
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from tests.trainer.treebank import DOG, GO
from tests.word_parser import load_added
from trainer.data import device_batches
from trainer.evaluation.parser_export import _checked, _export, _run
from trainer.evaluation.trained import ask, load_run, open_language
from trainer.nn.parser import Words
from trainer.nn.parser_targets import WORDS as WORD_LABELS
from trainer.tasks import TreesOptions


def test_the_exported_program_scores_as_the_model_does(parser_run: Path, exported_parser: Path):
    """On batches of the stream, which have words without a piece and several lengths."""
    trained = load_run(parser_run)
    model = trained.model.to("cpu").eval()
    words = InferenceSession(exported_parser / WORDS)
    relations = InferenceSession(exported_parser / RELATIONS)
    with open_store(str(parser_run.with_name("store"))) as store, torch.no_grad():
        source = open_language(store, trained.on(store), "train", "en")
        stream = source.evaluation_stream(trained.recipe)
        for batch in device_batches(stream, trained.recipe, source.task, torch.device("cpu")):
            given = Words(*(batch.labels[name] for name in WORD_LABELS))
            if len(set(given.sentences.flatten().tolist())) > 2:
                continue  # the service parses one sentence at a time
            encoding = model.encoder(batch, output_hidden_states=True)
            states = model.head.parser.states(encoding.hidden_states, given)
            arcs = model.head.parser(states, given.sentences)
            real = given.sentences >= 0
            pieces = (batch.input_ids_BL, batch.attention_mask_BL, given.pieces)
            found = _run(words, *pieces, given.sources, real)
            assert torch.allclose(found[0][real], states[real], atol=1e-5)
            assert torch.allclose(found[1][real], arcs[real], atol=1e-4)
            assert torch.allclose(found[2], model.head.tagger(states)[..., 1:], atol=1e-4)
            heads = arcs.argmax(-1)
            expected = model.head.parser.relate(states, heads)
            (related,) = _run(relations, found[0], heads)
            assert torch.allclose(related[real], expected[real], atol=1e-4)


def test_a_served_parser_says_what_the_run_predicts(parser_run: Path, own_models: Path):
    parser = load_added(own_models)
    with open_store(str(parser_run.with_name("store"))) as store:
        trained = load_run(parser_run).on(store)
        answers = ask(trained, open_language(store, trained, "train", "en"))
    by_id = {one.example_id: one.predicted for one in answers.predictions}
    for number, tree in ((0, DOG), (1, GO)):  # the words of the others are not joined by spaces
        gold = parse_from_sentences(list(parse_conllu(tree)))
        found = parser.parse(ParseInput("pretokenized", tokens=tuple(gold.form)), Limits())
        assert found.text == gold.text
        said = [[*pair] for pair in zip(found.head, found.deprel, strict=True)]
        assert said == by_id[f"train-{number}"]
        assert (found.head, found.deprel, found.upos) == (gold.head, gold.deprel, gold.upos)


@pytest.mark.parametrize("single_root", [True, False])
def test_a_root_is_called_root_in_evaluation_too(parser_run: Path, single_root: bool) -> None:
    """Of a parser that knows nothing of relations; fails where each takes its best."""
    trained = load_run(parser_run)
    head = trained.model.head
    torch.manual_seed(0)
    torch.nn.init.normal_(head.parser.relations.weight_RIJ)
    head.options = replace(head.options, single_root=single_root)
    with open_store(str(parser_run.with_name("store"))) as store:
        trained = trained.on(store)
        answers = ask(trained, open_language(store, trained, "train", "en"))
    said = [pair for one in answers.predictions for pair in one.predicted]
    assert all((name == "root") == (above == 0) for above, name in said) == single_root


def test_the_card_says_what_the_parser_was_trained_on(exported_parser: Path):
    card = json.loads((exported_parser / "parser.json").read_text("utf-8"))
    assert card["languages"] == ["en"]
    assert "nsubj:pass" in card["relations"]
    assert len(card["tags"]["upos"]) == 17
    assert card["max_pieces"] == 128
    assert card["trained"]["dev"]["uas"] > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"use_syntax": True}}, "reads more than pieces"),
        ({"parser": {"tag_width": 8}}, "reads the tag of each word"),
        ({"parser": {"word_width": 8}}, "reads embeddings of words"),
        ({"parser": {"char_width": 8}}, "reads characters, with an LSTM"),
        ({"parser": {"context": "lstm"}}, "has an LSTM"),
        ({"task": TreesOptions("trees.v1")}, "gives no trees; take a run of dependency.v1"),
    ],
)
def test_a_run_that_has_no_parser_for_texts_is_refused(
    parser_run: Path, change: dict[str, Any], message: str
) -> None:
    trained = load_run(parser_run)
    recipe = trained.recipe
    parser = replace(recipe.task.parser, **change.get("parser", {}))
    task = change.get("task", replace(recipe.task, parser=parser))
    model = replace(recipe.model, **change.get("model", {}))
    changed = replace(trained, recipe=replace(recipe, task=task, model=model))
    with pytest.raises(SpecError, match=message):
        _checked(changed, parser_run)


@pytest.mark.slow
def test_an_encoder_that_cannot_be_exported_is_named(tmp_path: Path) -> None:
    class Stubborn(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return values if float(values.sum()) > 0 else -values

    rows = torch.export.Dim("rows", min=1)
    with pytest.raises(SpecError, match="torch cannot export this parser"):
        _export(Stubborn(), (torch.ones(3, 2),), ("values",), ({0: rows},), tmp_path / WORDS)
