"""PLBART: its layers, what encoder and decoder read, whole runs, and what starts from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product

import pytest
import torch
from safetensors.torch import load_file
from transformers.models.plbart.modeling_plbart import PLBartModel

from clients.bpe import BpeOptions, train_bpe
from clients.wordpiece import save_tokenizer
from featurestore import ExampleRow, ParsedDataset, open_store
from service.tokenizers import load_tokenizer
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, LabelSpec
from tests.trainer.rows import parsed_row, write_rows
from tests.trainer.runs import resumed
from trainer.data import open_source
from trainer.loop import train
from trainer.nn.bart import NormedBartConfig, NormedBartEncoder, bart_decoder
from trainer.nn.target import target_tokenizer
from trainer.options import PlbartOptions, Recipe, StreamOptions, UposTaggingOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.streams import feeding
from trainer.systems.plbart.code import functions_of, python_line

ENGLISH = [
    f"{one} {seen} {what}."
    for one, seen, what in product(
        ("Ann", "A bee", "The man"), ("sees", "paints"), ("a mill", "the river", "her")
    )
]
CODE = [
    python_line(f"def {name}(x):\n    return x {sign} {by}\n")
    for name, sign, by in product(("add", "scale"), "+*", (1, 2))
]
LABELS = (LabelSpec("target", "string"), LabelSpec("label", "class", ("sum", "product")))
SPECIAL = ("<python>", "<en>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """A tokenizer with tokens of languages."""
    path = tmp_path_factory.mktemp("tokenizer") / "joint"
    texts = [*ENGLISH, *CODE]
    trained = train_bpe(lambda: texts, BpeOptions(vocab_size=120, special=SPECIAL))
    save_tokenizer(trained, path, {})
    return str(path)


@pytest.fixture(scope="module")
def texts(tmp_path_factory, folder, english):
    """A store of code, with an English text and a class for each, and of English."""
    tokenizer = load_tokenizer(folder)
    with open_store(str(tmp_path_factory.mktemp("texts") / "store")) as store:
        for name, all_of, labels in (("python", CODE, LABELS), ("en", ENGLISH, ())):
            for split, chosen in (("train", all_of), ("dev", all_of[:5])):
                spec = DatasetSpec(name, split, "en", ("text",), labels, "sentence")
                rows = (row_of(english, tokenizer, *one, bool(labels)) for one in enumerate(chosen))
                write_rows(store, english, tokenizer, spec, rows)
        yield store


def row_of(parser, tokenizer, seq, text, labelled) -> ExampleRow:
    found = {"target": text.partition("(")[0], "label": "product" if "*" in text else "sum"}
    labels = found if labelled else {}
    return parsed_row(parser, tokenizer, seq, f"{seq}", [text], labels, "sentence")


SIZES = ("model.layers=1", "hidden_size=16", "model.heads=2", "feed_forward=32", "batch_size=4")
STEPS = ("max_steps=6", "warmup_steps=2", "learning_rate=0.01", "log_every=1")
EVERY = ("evaluate_every=3", "checkpoint_every=3")


def small(name: str = "plbart", *settings: str) -> Recipe:
    """A run over two languages, or of one of the tasks that start from it."""
    recipe = RECIPES[name]()
    if recipe.streams:
        (english,) = [stream for stream in recipe.streams if stream.name == "en"]
        recipe = replace(recipe, streams=(english,))
        settings = ("data.dataset=python", "task.language=python", "accumulation=2", *settings)
    else:
        settings = ("data.dataset=python", *settings)
    return with_settings(recipe, [*SIZES, *STEPS, *EVERY, *settings])


@pytest.fixture(scope="module")
def pretrained(texts, tmp_path_factory):
    """Folder of a run."""
    output = tmp_path_factory.mktemp("pretrained")
    train(small(), texts, output)
    return output


def weights_of(run):
    return load_file(run / "model" / "model.safetensors")


def test_layers_are_plbarts_with_a_norm_on_top() -> None:
    config = NormedBartConfig(
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        vocab_size=30,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        pad_token_id=0,
        max_position_embeddings=20,
    )
    torch.manual_seed(0)
    theirs, encoder = PLBartModel(config).eval(), NormedBartEncoder(config).eval()
    decoder = bart_decoder(config).eval()
    for ours, other in ((encoder, theirs.encoder), (decoder.decoder, theirs.decoder)):
        missing = ours.load_state_dict(other.state_dict(), strict=False)
        assert missing.missing_keys == ["layer_norm.weight", "layer_norm.bias"]
        torch.nn.init.normal_(ours.layer_norm.weight)
    ids, mask = torch.randint(1, 30, (2, 7)), torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    with torch.no_grad():
        states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        plain = theirs.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        assert torch.allclose(states, encoder.layer_norm(plain), atol=1e-6)
        found = decoder(ids, states, mask).logits
        under = theirs.decoder(
            input_ids=ids, encoder_hidden_states=states, encoder_attention_mask=mask
        ).last_hidden_state
        words = decoder.decoder.embed_tokens.weight
        expected = decoder.decoder.layer_norm(under) @ words.T
    assert torch.allclose(found, expected, atol=1e-5)


def test_the_token_of_the_language_ends_one_side_and_begins_the_other(texts, folder, tmp_path):
    run = train(small("plbart", "max_steps=1"), texts, tmp_path)
    target, heard = target_tokenizer(folder), []
    encoder = run.model.encoder
    handle = encoder.decoder.register_forward_pre_hook(
        lambda _, given, options: heard.append(given[0]), with_kwargs=True
    )
    for name, language in (("main", "python"), ("en", "en")):
        stream = run.streams[name]
        stream.begin(0)
        (batch,) = stream.take(1)
        run.model.eval()(batch)
        before, written = heard[-1], batch.extra("written_ids")
        token = target.language(language)
        for row, length in enumerate(batch.lengths_B.tolist()):
            assert batch.input_ids_BL[row, length - 2 : length].tolist() == [target.end, token]
        assert (before[:, 0] == token).all()
        known = written != -100
        assert torch.equal(before[:, 1:][known[:, 1:]], written[:, :-1][known[:, 1:]])
        ends = written.gather(1, known.sum(1, keepdim=True) - 1)
        assert (ends == target.end).all()
        originals = ENGLISH if language == "en" else CODE
        shown = target.decode(written.masked_fill(~known, 0).numpy())
        assert shown == [originals[int(one)] for one in batch.example_ids]
    handle.remove()


def test_dropout_falls_at_its_steps(texts, tmp_path) -> None:
    options = RECIPES["plbart"]().model
    assert [options.dropout_at(step) for step in (0, 49_999, 50_000, 79_999, 80_000, 99_999)] == [
        *(None, None, 0.05, 0.05, 0.0, 0.0)
    ]
    steps = ("model.dropout_steps=2,4", "model.dropouts=0.05,0", "max_steps=3")
    run = train(small("plbart", *steps), texts, tmp_path)
    encoder = run.model.encoder
    assert dropouts(encoder) == {0.05}
    encoder.at_step(4)
    assert dropouts(encoder) == {0.0}
    with pytest.raises(SpecError, match="give as many of each"):
        PlbartOptions(dropout_steps=(1,)).dropout_at(0)


def dropouts(encoder) -> set[float]:
    """Of all layers of both stacks, their attention, and the embeddings."""
    parts = [one for one in encoder.modules() if isinstance(getattr(one, "dropout", None), float)]
    assert len(parts) == 2 + 2 + 3  # stacks, layers, attentions
    return {one.dropout for one in parts}


def test_languages_are_taken_by_the_power_of_their_texts(texts, tmp_path) -> None:
    run = train(small("plbart", "max_steps=1"), texts, tmp_path)
    share = len(ENGLISH) ** 0.3 / (len(ENGLISH) ** 0.3 + len(CODE) ** 0.3)
    assert run.recipe.streams[0].share == pytest.approx(share)
    fed = [feeding(run.recipe, step) for step in range(1000)]
    assert fed.count(("en",)) / 1000 == pytest.approx(share, abs=0.01)
    assert len(fed) == fed.count(("en",)) + fed.count(("main",))


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", ["plbart", "plbart-as-released"])
def test_a_resumed_run_equals_an_uninterrupted_one(texts, tmp_path, name) -> None:
    settings = ("model.dropout_steps=2,4", "model.dropouts=0.05,0")
    if name == "plbart":
        settings = (*settings, "streams.en.task.covered=0.2")
    whole = train(small(name, *settings), texts, tmp_path / "whole")
    again = resumed(small(name, *settings), texts, tmp_path / "part", 4)
    assert again.progress.losses == whole.progress.losses
    assert again.progress.evaluations == whole.progress.evaluations
    scores = whole.progress.evaluations[-1].scores
    assert scores["examples"] == 5
    assert scores["streams"]["en"]["perplexity"] > 1


def test_the_weights_of_both_stacks_are_saved_once(pretrained) -> None:
    names = set(weights_of(pretrained))
    assert not [name for name in names if name.startswith("head")]
    assert [name for name in names if "embed_tokens" in name] == [
        "encoder.encoder.embed_tokens.weight"
    ]
    assert any(name.startswith("encoder.decoder.decoder.layers.0") for name in names)


@pytest.mark.parametrize("name", ["plbart-generation", "plbart-classification"])
def test_a_run_starts_from_the_pretrained_one(texts, pretrained, tmp_path, name) -> None:
    start = (f"model.start_from={pretrained}", "max_steps=3", "learning_rate=1e-12")
    run = train(small(name, *start), texts, tmp_path)
    before, after = weights_of(pretrained), weights_of(tmp_path)
    assert before.keys() == {name for name in after if name.startswith("encoder.")}
    assert all(torch.allclose(one, after[name], atol=1e-6) for name, one in before.items())
    assert run.progress.evaluations[-1].scores["examples"] == 5


@pytest.mark.slow
def test_each_stream_begins_texts_with_the_token_of_its_own_language(
    texts, folder, tmp_path
) -> None:
    recipe, target = small("plbart-generation", "max_steps=1"), target_tokenizer(folder)
    other = StreamOptions("other", recipe.data, replace(recipe.task, language="python"))
    run = train(replace(recipe, streams=(other,)), texts, tmp_path)
    for stream, language in (("main", "en"), ("other", "python")):
        (batch,) = taken(run, stream)
        for row, length in enumerate(batch.lengths_B.tolist()):
            ends = batch.input_ids_BL[row, length - 2 : length].tolist()
            assert ends == [target.end, target.language("python")]
        assert set(first_ids(run, batch)) == {target.language(language)}


def test_a_source_beside_parses_keeps_the_token_of_its_language(texts, folder) -> None:
    recipe = small("plbart-generation", "batch_tokens=256")
    recipe = replace(recipe, objectives=(UposTaggingOptions(),))
    data = open_source(texts, recipe, "train", "en", labelled=True).dataset
    assert isinstance(data, ParsedDataset)
    assert data.special_tokens.suffix[-1] == target_tokenizer(folder).language("python")
    assert data.other_lengths is not None


def first_ids(run, batch) -> list[int]:
    """What the decoder reads first: in training, in the loss of an evaluation, in the search."""
    heard: list[list[int]] = []

    def hear(_, given, options) -> None:
        heard.append((given[0] if given else options["input_ids"])[:, 0].tolist())

    handle = run.model.encoder.decoder.register_forward_pre_hook(hear, with_kwargs=True)
    for training in (True, False):
        run.model.train(training)(batch)
    handle.remove()
    return [*chain(*heard[:3])]  # later ones are of pieces behind the first


def taken(run, stream: str = "main"):
    run.streams[stream].begin(0)
    return run.streams[stream].take(1)


def test_the_decoders_last_state_is_classified(texts, tmp_path) -> None:
    """It has read the whole text, as often as padding stands behind it."""
    run = train(small("plbart-classification", "max_steps=1"), texts, tmp_path)
    model, (batch,) = run.model.eval(), taken(run)
    with torch.no_grad():
        logits = model(batch).logits["label"]
        head, encoder, row = model.head, model.encoder, 1
        length = int(batch.lengths_B[row])
        ids = batch.input_ids_BL[row : row + 1, :length]
        states = encoder.encoder(
            input_ids=ids, attention_mask=torch.ones_like(ids)
        ).last_hidden_state
        before = torch.cat([ids[:, -1:], ids[:, :-1]], 1)
        output = encoder.decoder.run(before, states, torch.ones_like(ids)).last_hidden_state
        expected = head.classifier(output[:, -1:])
    assert torch.allclose(logits[row], expected[0], atol=1e-5)


@pytest.mark.slow
def test_the_loss_falls_below_that_of_a_unigram_model(texts, tmp_path) -> None:
    """And the model writes texts again that it saw with holes."""
    settings = ("max_steps=300", "evaluate_every=300", "hidden_size=32", "feed_forward=64")
    run = train(small("plbart", *settings, "dropouts=0,0", "dropout_steps=0,1"), texts, tmp_path)
    scores = run.progress.evaluations[-1].scores
    counts = torch.zeros(200)
    for batch in taken(run):
        counts += torch.bincount(batch.extra("written_targets"), minlength=200)
    shares = counts[counts > 0] / counts.sum()
    unigram = float(-(shares * shares.log()).sum())
    assert scores["loss"] < unigram / 2
    assert scores["streams"]["en"]["accuracy"] > 0.6


@pytest.mark.slow
def test_what_does_not_fit_is_refused(texts, tmp_path) -> None:
    def fails(match: str, *settings: str, name: str = "plbart") -> None:
        with pytest.raises(SpecError, match=match):
            train(small(name, *settings), texts, tmp_path / "run")

    fails("has no token <java>", "task.language=java")
    fails("this model has none", "model.name=transformer.v1")
    fails("brings a decoder", "task.tie=target", name="plbart-generation")


def test_functions_are_lines() -> None:
    code = '''
class Mill:
    def grind(self, corn):
        """Make flour.

        More.
        """
        if corn:  # any
            return """a
            b"""

    def turn(self):
        "Turn."
'''
    first, second = functions_of(code)
    assert first == (
        "def grind ( self , corn ) : NEW_LINE INDENT if corn : NEW_LINE INDENT return "
        "'a\\n b' NEW_LINE DEDENT DEDENT",
        "Make flour.\n\nMore.",
    )
    assert second == ("def turn ( self ) : NEW_LINE INDENT pass NEW_LINE DEDENT", "Turn.")


def test_the_released_script_is_followed() -> None:
    """pretrain/absolute.sh: fairseq's betas, one dropout, and decay of everything."""
    released = RECIPES["plbart-as-released"]()
    assert (released.model.layer_dropout, released.model.dropouts) == (0.1, ())
    assert (released.training.betas, released.training.accumulation) == ((0.9, 0.999), 60)
    ((group,),) = (one.groups for one in released.optimizers)
    assert (group.parameters, group.weight_decay) == ((".*",), 0.01)
    for task in (released.task, *(stream.task for stream in released.streams)):
        assert (task.noise, task.covered, task.mean, task.random) == ("as_released", 0.3, 3.5, 0.1)
