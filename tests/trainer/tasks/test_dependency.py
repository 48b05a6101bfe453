"""The parser: from the trees of a store to a trained model and its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from featurestore import FeatureStore, ParsedDataset, open_store
from syntax.batches import AssemblySpec
from syntax.errors import SpecError, StoreError
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.mst import sentence_heads
from syntax.trees.ud import UPOS
from tests.trainer import treebank
from tests.trainer.runs import batches_of, finished
from tests.trainer.treebank import DOG, EATEN, GO, append_treebank, recipe
from trainer.batch import SyntaxBatch
from trainer.data import open_source, warn_of_data
from trainer.evaluation.baseline import baseline_scores, training_data
from trainer.evaluation.trained import ask, load_run, open_language
from trainer.models.build import build_model
from trainer.models.model import SyntaxModel
from trainer.models.outputs import SyntaxEncoding, layers_of
from trainer.nn.parser import Words
from trainer.nn.parser_targets import FORMS, WORDS
from trainer.options import (
    DependencyObjectiveOptions,
    Recipe,
    UposTaggingOptions,
    XposTaggingOptions,
)
from trainer.options.parser import MICROBERT
from trainer.options.settings import with_settings
from trainer.results import is_result_of
from trainer.streams import open_streams, pinned, profile_streams
from trainer.tasks.dependency import DependencyScorer, NeighbourHeads


@pytest.fixture(scope="module")
def store(tmp_path_factory, tokenizer) -> Iterator[FeatureStore]:
    with open_store(str(tmp_path_factory.mktemp("trees") / "store")) as opened:
        append_treebank(opened, tokenizer, "train")
        append_treebank(opened, tokenizer, "dev")
        append_treebank(opened, tokenizer, "pair", (DOG, GO))
        append_treebank(opened, tokenizer, "mixed", (DOG, GO, EATEN), silver=(2,))
        append_treebank(opened, tokenizer, "silver", (DOG, GO), silver=(0, 1), name="silver")
        untagged = (DOG.replace("DT", "_").replace("NN", "_").replace("VBZ", "_"), GO)
        append_treebank(opened, tokenizer, "untagged", untagged, silver=(0,))
        yield opened


def built(store: FeatureStore, made: Recipe) -> tuple[SyntaxModel, Recipe]:
    """A new model for a recipe, and the recipe with what its data say."""
    torch.manual_seed(0)
    sources = open_streams(store, made)
    made = pinned(made, sources)
    return build_model(made, profile_streams(sources, made)), made


def with_parser(**options: object) -> Recipe:
    """A recipe that learns trees as an objective alone, all of a split in one batch."""
    one = DependencyObjectiveOptions(parser=replace(MICROBERT, context_heads=8), **options)
    made = recipe("task.name=trees.v1", "evaluation_batch_size=8")
    return replace(made, objectives=(one,))


def arrays_of(store: FeatureStore, split: str = "train", length: int = 64) -> dict[str, object]:
    data = ParsedDataset(store, store.dataset(treebank.NAME, split=split, lang="en"))
    assembly = AssemblySpec(matrices=(), offsets=True, max_length=length)
    return next(data.stream(batch_size=9, shuffle=False, assembly=assembly))


def test_a_stream_gives_the_parses_that_features_were_made_from(store) -> None:
    arrays = arrays_of(store)
    assert arrays["is_gold"].all()
    relations = [parse.deprel for (parse,) in arrays["parses"]]
    assert relations[2][0] == "nsubj:pass"
    assert arrays_of(store, "mixed")["is_gold"].tolist() == [True, True, False]


def test_a_parse_that_is_gone_is_named(tmp_path, tokenizer) -> None:
    with open_store(str(tmp_path / "store")) as store:
        append_treebank(store, tokenizer, "train", keep_parses=False)
        with pytest.raises(StoreError, match="of example 'train-0' is not in the store"):
            arrays_of(store)


def test_relations_and_tags_are_those_of_the_training_trees(store) -> None:
    made = recipe("task.parser.tag_width=8")
    model, made = built(store, made)
    assert "nsubj:pass" in made.task.parser.relations
    assert list(made.task.parser.relations) == sorted(made.task.parser.relations)
    assert "VBZ" in made.task.parser.xpos
    assert model.config.task_options().parser == made.task.parser


def test_characters_are_those_of_the_training_trees(store) -> None:
    made = recipe("task.parser.char_width=8", "task.parser.projection=5")
    model, made = built(store, made)
    chars = made.task.parser.chars
    assert list(chars) == sorted({*"ThedogbarksGowaseatenbyItcats.Venezdeleparc"})
    assert model.head.parser.width == 5 + 8
    (batch, *_) = batches_of(store, made, "train")
    layout, ids = batch.arrays["word_layout"], batch.labels["parser_chars"]
    for row, own in enumerate(batch.arrays["parses"]):
        forms = [form for parse in own for form in parse.form]
        for word in range(int(layout.counts[row])):
            number = int(layout.words[row, word])
            told = "".join(chars[one - 2] for one in ids[row, word].tolist() if one)
            assert told == forms[number]
        assert not ids[row, int(layout.counts[row]) :].any()
    output = model.train()(batch)
    output.loss.backward()
    assert model.head.parser.chars.embed.weight.grad.abs().sum() > 0


def test_universal_tags_and_words_that_occur_twice_are_embedded(store) -> None:
    """The parser's input has the state, then tag and word: a slow twin looks each of them up."""
    settings = ("tag=upos", "tag_width=8", "word_width=6", "pieces=first", "context=none")
    model, made = built(store, recipe(*(f"task.parser.{one}" for one in settings)))
    parser = made.task.parser
    train = store.dataset(made.data.dataset, split="train")
    parses = [parse for own in ParsedDataset(store, train).parses() for parse in own]
    forms = Counter(form.lower() for parse in parses for form in parse.form)
    assert parser.words == tuple(sorted(form for form in forms if forms[form] > 1))
    assert parser.words
    assert not parser.xpos
    (batch, *_) = batches_of(store, made, "train")
    words = Words(*(batch.labels[name] for name in WORDS), forms=batch.labels[FORMS])
    head, layout = model.head.parser.eval(), batch.arrays["word_layout"]
    states_BWD = head.states([torch.zeros(*batch.input_ids_BL.shape, model.encoder.width)], words)
    for row, own in enumerate(batch.arrays["parses"]):
        pairs = [pair for parse in own for pair in zip(parse.form, parse.upos, strict=True)]
        for word in range(int(layout.counts[row])):
            form, upos = pairs[int(layout.words[row, word])]
            known = form.lower() in parser.words
            place = parser.words.index(form.lower()) + 1 if known else 0
            tag, vector = head.tags.weight[UPOS.index(upos)], head.forms.weight[place]
            assert torch.equal(states_BWD[row, word, -14:], torch.cat([tag, vector]))
    model.train()(batch).loss.backward()
    assert head.forms.weight.grad.abs().sum() > 0


def test_the_objective_reads_characters_too(store) -> None:
    parser = replace(MICROBERT, char_width=4, word_width=4, context="none")
    made = replace(with_parser(), objectives=(DependencyObjectiveOptions(parser=parser),))
    model, made = built(store, made)
    (batch, *_) = batches_of(store, made, "train")
    assert torch.isfinite(objective_loss(model, batch))


@pytest.mark.parametrize(("rows", "words"), [("as_published", 4), ("as_released", 5)])
def test_the_loss_counts_the_words_of_each_sentence(store, rows, words) -> None:
    """Two sentences of 3 and 1 words; released, [SEP] of the shorter one is a word, too."""
    made = with_settings(with_parser(rows=rows), ["data.train_split=pair"])
    _, made = built(store, made)
    (batch,) = batches_of(store, made, "pair")
    heads = batch.extra("parser_heads")
    assert int((heads != -100).sum()) == words
    go = batch.example_ids.index("pair-1")
    assert heads[go].tolist() == [0, -100 if rows == "as_published" else 0, -100]
    separator = int(batch.lengths_B[go]) - 1
    assert (int(batch.extra("parser_pieces")[go, separator]) == 1) == (rows == "as_released")


def objective_loss(model: SyntaxModel, batch: SyntaxBatch) -> torch.Tensor:
    model.eval()
    (loss,) = model(batch).objectives.values()
    return loss


def test_the_loss_is_a_mean_over_gold_words_whatever_silver_joins(store) -> None:
    made = with_settings(with_parser(), ["data.train_split=mixed"])
    model, made = built(store, made)
    (mixed,) = batches_of(store, made, "mixed")
    (pair,) = batches_of(store, made, "pair")
    assert torch.allclose(objective_loss(model, mixed), objective_loss(model, pair), atol=1e-5)
    each = [
        batches_of(store, with_settings(made, ["evaluation_batch_size=1"]), "pair")[row]
        for row in (0, 1)
    ]
    counts = [int((one.extra("parser_heads") != -100).sum()) for one in each]
    losses = [float(objective_loss(model, one).detach()) for one in each]
    mean = float(np.average(losses, weights=counts))
    assert float(objective_loss(model, pair).detach()) == pytest.approx(mean, abs=1e-5)


def test_the_released_loss_is_divided_by_all_words_too(store) -> None:
    made = with_settings(with_parser(), ["data.train_split=mixed"])
    model, made = built(store, made)
    (batch,) = batches_of(store, made, "mixed")
    right = float(objective_loss(model, batch).detach())
    (objective,) = model.objectives
    objective.options = replace(objective.options, average="as_released")
    gold_words, gold_sentences, words = 4, 2, 10
    expected = right * gold_words / (gold_sentences * words)
    assert float(objective_loss(model, batch).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("detached", [True, False])
def test_a_detached_parser_teaches_the_encoder_nothing(store, detached) -> None:
    model, made = built(store, with_parser(detached=detached))
    (batch,) = batches_of(store, made, "train")
    objective_loss(model, batch).backward()
    moved = [
        weight.grad is not None and bool(weight.grad.any()) for weight in model.encoder.parameters()
    ]
    assert any(moved) != detached
    assert all(w.grad is not None for w in model.objectives.parameters())


@pytest.mark.parametrize("tags", ["as_published", "as_released"])
def test_a_silver_sentence_teaches_no_tag(store, tags) -> None:
    made = recipe("task.name=trees.v1", "data.dataset=silver")
    names = ("DT", "NN", "VB", "VBZ")
    made = replace(made, objectives=(XposTaggingOptions(tags=tags, names=names),))
    made = with_settings(made, ["data.train_split=silver"])
    model, made = built(store, made)
    (batch,) = batches_of(store, made, "silver")
    loss = objective_loss(model, batch)
    loss.backward()
    moved = any(w.grad is not None and bool(w.grad.any()) for w in model.parameters())
    assert moved == (float(loss.detach()) != 0) == (tags == "as_released")


@pytest.mark.parametrize(
    ("split", "tags", "warned"),
    [
        *(("untagged", "as_released", True), ("untagged", "as_published", False)),
        *(("mixed", "as_released", False), ("train", "as_released", False)),
    ],
)
def test_parsed_text_without_tags_is_told_where_it_was_to_teach_them(
    store, caplog, split, tags, warned
) -> None:
    made = replace(recipe("task.name=trees.v1"), objectives=(XposTaggingOptions(tags=tags),))
    warn_of_data(open_source(store, made, split, "en"), made)
    told = "none of the 1 parsed examples of treebank has xpos"
    assert (told in caplog.text) == warned
    assert ("models train udpipe --recipe full" in caplog.text) == warned


@pytest.mark.parametrize(
    "options",
    [DependencyObjectiveOptions(detached=False), XposTaggingOptions(), UposTaggingOptions()],
)
def test_objectives_over_words_are_blind_to_padding_and_teach_the_states(store, options) -> None:
    made = replace(recipe("task.name=trees.v1"), objectives=(options,))
    model, made = built(store, made)
    (batch,) = batches_of(store, made, "train")
    model.eval()
    (objective,) = model.objectives
    encoding = model.encoder(batch, output_hidden_states=True)
    layers = [layer.detach().requires_grad_() for layer in encoding.hidden_states]
    loss = objective(SyntaxEncoding(layers[-1], tuple(layers)), batch)
    loss.backward()
    padding = ~batch.attention_mask_BL[..., None]
    noise = tuple(layer.detach().masked_fill(padding, 1e3) for layer in layers)
    assert torch.allclose(objective(SyntaxEncoding(noise[-1], noise), batch), loss)
    for layer in layers:
        assert layer.grad.isfinite().all()
        assert layer.grad.any()
        assert not layer.grad.masked_select(padding).any()


def test_tagging_is_a_mean_over_sentences_of_means_over_words(store) -> None:
    made = replace(recipe("task.name=trees.v1"), objectives=(XposTaggingOptions(),))
    model, made = built(store, made)
    (pair,) = batches_of(store, made, "pair")
    each = batches_of(store, with_settings(made, ["evaluation_batch_size=1"]), "pair")
    losses = [float(objective_loss(model, one).detach()) for one in each]
    assert float(objective_loss(model, pair).detach()) == pytest.approx(np.mean(losses), abs=1e-5)


def test_data_without_gold_trees_are_refused(store) -> None:
    made = recipe("data.dataset=silver", "data.train_split=silver")
    with pytest.raises(SpecError, match=r"no gold trees with deprel; .* data\.gold") as caught:
        open_streams(store, made)
    assert "`trees=all`, for tags `tags=as_released`" in str(caught.value)
    open_streams(store, with_settings(made, ["task.trees=all"]))


LONG = (
    *("max_steps=120", "evaluate_every=120", "learning_rate=0.003", "task.upos=true"),
    *("batch_size=6", "task.parser.states=mix", "task.parser.pieces=mean"),
    *("task.parser.dropout=0", "model.dropout=0"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory, store) -> Path:
    """A parser that knows its few training trees by heart."""
    folder = tmp_path_factory.mktemp("run")
    finished(recipe(*LONG), store, folder)
    return folder


def test_a_parser_learns_its_training_trees(store, run) -> None:
    trained = load_run(run).on(store)
    source = open_language(store, trained, "train", "en")
    answers = ask(trained, source)
    scores = answers.scores
    assert (scores.uas, scores.las_subtypes, scores.clas, scores.upos) == (1, 1, 1, 1)
    assert (scores.examples, scores.words) == (6, 25)
    assert (scores.cut_words, scores.pieceless_words) == (0, 1)
    assert all(one.right for one in answers.predictions)
    dog = next(one for one in answers.predictions if one.example_id == "train-0")
    assert dog.predicted == [[2, "det"], [3, "nsubj"], [0, "root"]]


def test_a_mix_of_layers_alone_does_not_read_the_embeddings(store) -> None:
    for states, layers in (("mix", 3), ("layers", 2)):
        model, made = built(store, recipe(f"task.parser.states={states}"))
        head = model.train().head
        assert len(head.parser.mix.weights_K) == layers
        (batch,) = batches_of(store, made, "pair")
        encoding = model.encoder(batch, output_hidden_states=True)
        assert len(encoding.hidden_states) == 3
        encoding.hidden_states = tuple(one.detach() for one in encoding.hidden_states)
        encoding.hidden_states[0].requires_grad_(True)
        encoding.hidden_states[1].requires_grad_(True)
        head(encoding, batch).loss.backward()
        assert encoding.hidden_states[1].grad is not None
        assert (encoding.hidden_states[0].grad is None) == (states == "layers")


def test_the_released_tree_has_the_largest_sum_of_probabilities(store) -> None:
    model, made = built(store, recipe("task.mst_space=as_released", "task.single_root=false"))
    (batch,) = batches_of(store, made, "pair")
    head = model.eval().head
    with torch.no_grad():
        for weight in head.parser.parameters():
            torch.nn.init.normal_(weight, std=3.0)
        encoding = model.encoder(batch, output_hidden_states=True)
        found = head(encoding, batch).logits["heads"].numpy()
        sentences = batch.labels["parser_sentences"]
        words = Words(*(batch.labels[name] for name in WORDS))
        states = head.parser.states(layers_of(encoding, made.task.parser.states), words)
        arcs = head.parser(states, sentences)
        likely = head.parser.probabilities(states, arcs).numpy()
    for row in range(len(found)):
        assert found[row].tolist() == sentence_heads(likely[row], sentences[row], False).tolist()


@pytest.mark.parametrize("longest", [6, 2])
def test_what_is_cut_counts_as_wrong(store, run, longest) -> None:
    trained = load_run(run).on(store)
    short = replace(trained, recipe=with_settings(trained.recipe, [f"max_length={longest}"]))
    answers = ask(short, open_language(store, short, "train", "en"))
    scores = answers.scores
    assert scores.words == 25
    assert scores.cut_words > 0
    assert scores.uas <= 1 - scores.cut_words / scores.words
    assert scores.upos <= 1 - scores.cut_words / scores.words
    assert sum(one.shares["upos"][1] for one in answers.predictions) == scores.words


@pytest.mark.parametrize("windows", ["stride=3", "stride=1", "level=sentence"])
def test_windows_score_every_word_once(store, run, windows) -> None:
    """A sentence that a window shows whole has the tree of that window."""
    trained = load_run(run).on(store)
    settings = [windows, "max_length=8", "evaluation_batch_size=2"]
    cut = replace(trained, recipe=with_settings(trained.recipe, settings))
    answers = ask(cut, open_language(store, cut, "train", "en"))
    scores, whole = answers.scores, ask(trained, open_language(store, trained, "train", "en"))
    assert (scores.examples, scores.words) == (6, 25)
    assert (scores.cut_words, scores.pieceless_words) == (0, 1)
    assert {one.example_id for one in answers.predictions} == {
        one.example_id for one in whole.predictions
    }
    short = ("train-0", "train-1", "train-4")
    found, expected = (
        {one.example_id: one.predicted for one in of.predictions if one.example_id in short}
        for of in (answers, whole)
    )
    assert found == expected


def test_a_word_in_two_windows_counts_where_its_sentence_is_whole(store, run) -> None:
    """Relations tell which window a word is taken from: each window gives all its words one."""
    made = with_settings(
        load_run(run).recipe, ["stride=2", "max_length=8", "evaluation_batch_size=8"]
    )
    (batch,) = batches_of(store, made, "train")
    layout, rows = batch.arrays["word_layout"], batch.arrays["example_index"]
    names = made.task.parser.relations
    heads = torch.zeros(layout.words.shape, dtype=torch.long)
    numbers = batch.arrays["window_index"][:, None] + np.zeros_like(layout.words)
    output = SimpleNamespace(
        logits={"heads": heads, "relations": torch.from_numpy(numbers)}, task_loss=torch.tensor(0.0)
    )
    assert numbers.max() < len(names)
    scorer = DependencyScorer(names, made.task.trees)
    scorer.add(output, batch)
    several = 0
    for example, one in enumerate(scorer.predictions()):
        mine = np.flatnonzero(rows == example)
        for word, (_, relation) in enumerate(one.predicted):
            shown = {
                int(numbers[row, 0]): bool(layout.whole[row][layout.words[row] == word].all())
                for row in mine
                if (layout.words[row] == word).any()
            }
            assert names.index(relation) in shown
            assert shown[names.index(relation)] or not any(shown.values())
            several += len(shown) > 1 and len(set(shown.values())) > 1
    assert several


def test_the_baseline_hangs_each_word_from_its_neighbour(store, run) -> None:
    """Counted here from the CoNLL-U itself."""
    trained = load_run(run).on(store)
    source = open_language(store, trained, "train", "en")
    found = baseline_scores(
        source.task, training_data(store, trained.recipe), {"t": source.dataset}
    )
    words = right = 0
    for conllu in treebank.TREES:
        for block in conllu.strip().split("\n\n"):
            rows = [line.split("\t") for line in block.split("\n") if line.split("\t")[0].isdigit()]
            for number, row in enumerate(rows, start=1):
                behind = 0 if number == len(rows) else number + 1
                relation = row[7].partition(":")[0]
                named = "root" if behind == 0 else "det"
                words += 1
                right += int(row[6]) == behind and relation == named
    assert words == 25
    assert found["t"].name == "the next word as head"
    assert found["t"].score == pytest.approx(right / words)


@pytest.mark.parametrize(
    ("step", "expected"),
    [(-1, [-1, 0, 1, -1]), (1, [1, 2, -1, -1])],
)
def test_neighbours_are_of_the_same_sentence(step, expected) -> None:
    parse = parse_from_sentences(list(parse_conllu(DOG + GO)))
    heads = NeighbourHeads(step, "dep")
    assert [word.head for word in heads.words(parse)] == expected
    assert [word.relation for word in heads.words(parse)].count("root") == 2


def test_the_side_and_relation_of_the_baseline_are_those_of_most_words() -> None:
    dog = parse_from_sentences(list(parse_conllu(DOG)))
    assert NeighbourHeads.of([dog]) == NeighbourHeads(1, "det")
    assert NeighbourHeads.of([]) == NeighbourHeads(-1, "dep")


def test_a_finished_run_is_found_again_by_its_recipe(run) -> None:
    """The recipe names no relations; the result does."""
    assert load_run(run).recipe.task.parser.relations
    assert is_result_of(run, recipe(*LONG))
    assert not is_result_of(run, recipe(*LONG, "task.parser.arc=31"))


def test_texts_without_trees_are_parsed_too(store, run, client) -> None:
    from trainer.evaluation.predict import RawExample, predict

    trained = load_run(run)
    (found,) = predict(
        trained, client, [RawExample("x", ("The dog barks",))], "en", any_parser=True
    )
    assert found.gold is None
    assert len(found.predicted) == 3
    assert sorted(head for head, _ in found.predicted).count(0) == 1
