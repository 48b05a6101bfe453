"""The parser of running text: what it learns from, its programs, a training that was stopped."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel

from syntax.batches import IGNORE, SpecialTokens
from syntax.errors import ModelLoadError
from syntax.parsing.folder import PIECES, RELATIONS, WORDS
from syntax.parsing.pieces import SENTENCE_END
from syntax.tokenizers import special_tokens_of
from syntax.trees.conllu import read_conllu
from syntax.trees.conllu.treebank import open_treebank
from tests.text_parser import TREEBANK, save_encoder
from trainer.nn.tokenizer import fast_tokenizer
from trainer.parsing import training
from trainer.parsing.build import ParserPlan, build_parser
from trainer.parsing.corpus import (
    cut_windows,
    encode_window,
    given_tokens,
    gold_sentences,
)
from trainer.parsing.export import export_programs
from trainer.parsing.labels import Labels
from trainer.parsing.model import Sizes, TextParser
from trainer.parsing.quantization import (
    INPUT_LEVELS,
    WEIGHT_LEVELS,
    RoundedLinear,
    observing,
    set_state,
    weight_steps,
)
from trainer.parsing.training import Corpus, TrainingOptions, collate, train
from trainer.parsing.vocabulary import extended, keep_rows, separated, trimmed, used_pieces
from trainer.schedule import DivergedError

SENTENCES = list(read_conllu(TREEBANK / "tiny-ud-train.conllu"))
LABELS = Labels.of(SENTENCES, rarest_lemma=1)
GOLD = gold_sentences(SENTENCES, LABELS)
SIZES = Sizes(hidden=24, arc=16, relation=12, dropout=0.1)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def tokenizer(encoder: Path) -> Any:
    return fast_tokenizer(str(encoder)).backend_tokenizer


@pytest.fixture(scope="module")
def special(tokenizer: Any) -> SpecialTokens:
    found = special_tokens_of(tokenizer, {"pad_token": "[PAD]", "unk_token": "[UNK]"})
    assert found is not None
    return found


@pytest.fixture
def model(encoder: Path) -> TextParser:
    torch.manual_seed(1)
    made = TextParser(AutoModel.from_pretrained(encoder, add_pooling_layer=False), LABELS, SIZES)
    torch.nn.init.normal_(made.arc.weight)
    return made.eval()


def test_windows_cut_a_file_into_all_of_its_sentences() -> None:
    lengths = [len(sentence.text) for sentence in GOLD]
    random = np.random.default_rng(1)
    windows = list(cut_windows(GOLD, lengths, most=200, alone=0.3, random=random))
    assert [at for first, end in windows for at in range(first, end)] == list(range(len(GOLD)))
    assert any(end - first > 1 for first, end in windows)
    for first, end in windows:
        assert end - first == 1 or sum(lengths[first:end]) <= 200
        assert all(one.before is not None for one in GOLD[first + 1 : end])


def test_a_window_says_what_each_piece_token_and_word_is(
    tokenizer: Any, special: SpecialTokens
) -> None:
    window = encode_window(GOLD, tokenizer, special)
    known = sum(len(sentence.split) for sentence in GOLD)
    assert len(window.tokens) == len(window.split) == known
    assert (window.boundary == SENTENCE_END).sum() == len(GOLD)
    assert (window.boundary > 0).sum() == known
    assert window.boundary[0] == window.boundary[-1] == IGNORE
    assert window.lengths.sum() == len(window.head) == len(window.words)
    assert (window.tokens[1:, 0] == window.tokens[:-1, 1] + 1).all()


@pytest.mark.parametrize("words", [True, False])
def test_given_tokens_are_joined_by_spaces(words: bool) -> None:
    for sentence in GOLD:
        given = given_tokens(sentence, words)
        spans = zip(given.token_start.tolist(), given.token_end.tolist(), strict=True)
        tokens = [given.text[start:end] for start, end in spans]
        assert " ".join(tokens) == given.text
        assert given.head is sentence.head
        if words:
            assert tokens == list(sentence.form)


def test_a_window_is_scored_the_same_beside_longer_ones(
    model: TextParser, tokenizer: Any, special: SpecialTokens
) -> None:
    windows = [encode_window([sentence], tokenizer, special) for sentence in GOLD]
    with torch.no_grad():
        together = model(collate(windows))
        first = 0
        for row, window in enumerate(windows):
            alone = model(collate([window]))
            part = slice(first, first + len(window.head))
            for column in LABELS.tags:
                assert torch.allclose(together[column][0][part], alone[column][0], atol=1e-5)
            size = len(window.ids)
            torch.testing.assert_close(
                together["boundary"][0][row, : size - 1], alone["boundary"][0][0, : size - 1]
            )
            words = len(window.head)
            torch.testing.assert_close(
                together["head"][0][row, :words, : words + 1], alone["head"][0][0]
            )
            first += len(window.head)


def test_rounded_layers_compute_what_integers_do() -> None:
    torch.manual_seed(0)
    layer = RoundedLinear(16, 8)
    states = torch.randn(50, 16) * 3
    with torch.no_grad(), observing(layer):
        layer(states)
    low, high = (bound.item() for bound in layer.bounds())
    assert (low, high) == (states.min().item(), states.max().item())
    step = (high - low) / INPUT_LEVELS
    zero = round(-low / step)
    inputs = np.clip(np.rint(states.numpy() / np.float32(step)) + zero, 0, INPUT_LEVELS)
    steps = weight_steps(layer.weight).numpy()
    weights = np.rint(layer.weight.detach().numpy() / steps[:, None])
    assert np.abs(weights).max() <= WEIGHT_LEVELS
    products = (inputs - zero).astype(np.int64) @ weights.T.astype(np.int64)
    slow = products * step * steps + layer.bias.detach().numpy()
    found = layer(states).detach().numpy()
    # A number on the border between two steps may go either way.
    assert np.abs(found - slow).max() <= 2 * step * np.abs(layer.weight.detach().numpy()).max()
    assert np.median(np.abs(found - slow)) < 1e-5


def test_gradients_of_rounded_inputs_are_those_of_bounded_ones() -> None:
    torch.manual_seed(0)
    layer = RoundedLinear(16, 8)
    layer.low_high.data = torch.tensor([-1.0, 2.0])
    set_state(layer, "rounding")
    states = (torch.randn(50, 16) * 3).requires_grad_()
    bounded = torch.minimum(torch.maximum(states, layer.bounds()[0]), layer.bounds()[1])
    weight = layer.weight.detach()
    weight = (weight / weight_steps(weight)[:, None]).round() * weight_steps(weight)[:, None]
    aim = torch.randn(50, 8)
    slow = torch.autograd.grad((bounded @ weight.T * aim).sum(), [states, layer.low_high])
    found = torch.autograd.grad((layer(states) * aim).sum(), [states, layer.low_high])
    for one, other in zip(found, slow, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("rounded", [False, True])
def test_the_programs_compute_what_the_model_does(
    model: TextParser, tokenizer: Any, special: SpecialTokens, tmp_path: Path, rounded: bool
) -> None:
    batch = collate([encode_window([sentence], tokenizer, special) for sentence in GOLD])
    with torch.no_grad(), observing(model):
        model(batch)
    set_state(model, "rounding" if rounded else "exact")
    export_programs(model, tmp_path, rounded)
    pieces, words, relations = (
        onnxruntime.InferenceSession(tmp_path / name) for name in (PIECES, WORDS, RELATIONS)
    )
    close = {"atol": 0.1 if rounded else 1e-5, "rtol": 0}  # vectors of pieces are rounded, too
    with torch.no_grad():
        states = model.encode(batch.ids, batch.surface, batch.mask)
        inputs = {"ids": batch.ids.int(), "surface": batch.surface.int(), "mask": batch.mask}
        found = pieces.run(None, {name: value.numpy() for name, value in inputs.items()})
        mask = batch.mask.numpy()
        for ours, theirs in zip(
            found, (states, model.boundaries(states), model.split(states)), strict=True
        ):
            np.testing.assert_allclose(ours[mask], theirs.numpy()[mask], **close)
        means = torch.randn(9, states.shape[2])
        index = torch.arange(9) % 6
        placed = means + model.place(index.clamp(max=3))
        known = torch.cat([model.root[None], placed])
        outputs = [one.name for one in words.get_outputs()]
        values = words.run(None, {"words": means.numpy(), "index": index.int().numpy()})
        said = dict(zip(outputs, values, strict=True))
        for column, scores in model.tag_scores(placed).items():
            assert (said[column] == scores.argmax(1).numpy()).mean() > 0.8
        dependents, heads = model.relation_states(known)
        close["atol"] = 1e-3 if rounded else 1e-5
        np.testing.assert_allclose(said["arc_head"], model.arc_states(known)[1], **close)
        np.testing.assert_allclose(said["relation_dependent"], dependents, **close)
        scores = relations.run(None, {"dependents": dependents.numpy(), "heads": heads.numpy()})
        np.testing.assert_allclose(scores[0], model.relation_scores(dependents, heads), **close)


@pytest.mark.slow_cases
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_training_that_was_stopped_ends_as_one_that_was_not(
    encoder: Path, tokenizer: Any, special: SpecialTokens, tmp_path: Path, precision: Any
) -> None:
    corpus = Corpus.of([GOLD], tokenizer, special)
    options = TrainingOptions(
        epochs=4, rounded=0.5, pieces=256, window=60, precision=precision, sizes=SIZES
    )

    def trained(checkpoint: Path, stop: int | None) -> dict[str, torch.Tensor]:
        torch.manual_seed(3)
        loaded = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
        model = TextParser(loaded, LABELS, SIZES)

        def report(found: training.Report) -> None:
            if found.dev and found.step * 4 == stop * found.steps if stop else False:
                raise KeyboardInterrupt

        train(model, corpus, corpus, options, checkpoint, report)
        return model.state_dict()

    whole = trained(tmp_path / "whole.pt", None)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped.pt", 3)
    resumed = trained(tmp_path / "stopped.pt", None)
    for name, weight in whole.items():
        assert torch.equal(weight, resumed[name]), name


@given(st.sets(st.sampled_from(range(len(GOLD))), min_size=1))
@settings(deadline=None, max_examples=20)
def test_a_trimmed_tokenizer_reads_its_texts_as_before(chosen: set[int]) -> None:
    path = Path(__file__).parents[3] / "service" / "resources" / "tokenizers"
    whole = tokenizers.Tokenizer.from_file(str(path / "parsebank-wordpiece-en" / "tokenizer.json"))
    special = special_tokens_of(whole, {"pad_token": "[PAD]", "unk_token": "[UNK]"})
    assert special is not None
    texts = [GOLD[at].text for at in chosen]
    fewer, framing, kept = trimmed(whole, special, used_pieces(whole, texts))
    assert fewer.get_vocab_size() == framing.vocab_size == len(kept) < whole.get_vocab_size()
    for text in texts:
        before = whole.encode(text, add_special_tokens=False)
        after = fewer.encode(text, add_special_tokens=False)
        assert after.tokens == before.tokens
        assert [kept[one] for one in after.ids] == before.ids
    assert [kept[one] for one in framing.prefix] == list(special.prefix)
    assert kept[framing.pad_id] == special.pad_id


def test_no_piece_of_a_separated_tokenizer_has_two_tokens() -> None:
    joined = ("▁(", "),", "我们", "▁$", "word")
    single = dict.fromkeys("▁(),我们$word")
    vocabulary = [
        ("<unk>", 0.0),
        *((one, -1.0) for one in joined),
        *((one, -5.0) for one in single),
    ]
    whole = tokenizers.Tokenizer(tokenizers.models.Unigram(vocabulary, unk_id=0))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    text = "(word), 我们 $word"
    assert set(joined) < set(whole.encode(text).tokens)
    apart = separated(whole)
    parted = ["▁", "(", "word", ")", ",", "▁", "我", "们", "▁", "$", "word"]
    assert apart.encode(text).tokens == parted
    plain = SpecialTokens(prefix=(), separator=(), suffix=(), pad_id=0, vocab_size=16, unk_id=0)
    fewer, framing, kept = trimmed(apart, plain, used_pieces(apart, ["(word)"]))
    assert fewer.get_vocab_size() == framing.vocab_size == len(kept) == len(vocabulary) - 2
    assert fewer.encode(text).tokens == parted


def test_a_script_without_pieces_gets_some() -> None:
    """Coptic words, which XLM-R's vocabulary has no letter of; rare letters stay unknown."""
    known = [("<unk>", 0.0), ("▁", -2.0), ("▁word", -3.0), ("s", -4.0)]
    whole = tokenizers.Tokenizer(tokenizers.models.Unigram(known, unk_id=0))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    words = [*["ⲡⲣⲱⲙⲉ", "ⲁϥⲥⲱⲧⲙ", "ⲧⲉ", "words"] * 20, "ϭ"]
    made = extended(whole, words)
    assert made.to_str() == extended(whole, words).to_str()
    assert [made.id_to_token(at) for at in range(4)] == [name for name, _ in known]
    assert made.encode("words").ids == whole.encode("words").ids == [2, 3]
    assert 0 in whole.encode("ⲡⲣⲱⲙⲉ").ids
    for word in ("ⲡⲣⲱⲙⲉ", "ⲥⲱⲧⲙ"):
        pieces = made.encode(word)
        assert min(pieces.ids[1:]) > 3, "all but the space are new"
        assert "".join(pieces.tokens) == f"▁{word}"
    assert 0 in made.encode("ϭ").ids
    assert extended(made, words).to_str() == made.to_str()


def test_vectors_of_new_pieces_are_drawn(encoder: Path) -> None:
    loaded = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    before = loaded.get_input_embeddings().weight.detach().clone()
    size = len(before)
    keep_rows(loaded, [5, size + 1, 2])
    after = loaded.get_input_embeddings().weight.detach()
    assert (after[[0, 2]] == before[[5, 2]]).all()
    assert (after[1] - before.mean(0)).abs().max() < 6 * before.std()
    padded = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    keep_rows(padded, [5, size - 1], known=size - 1)
    after = padded.get_input_embeddings().weight.detach()
    assert (after[0] == before[5]).all()
    assert (after[1] != before[-1]).all(), "a row that no piece had is drawn, too"


def test_the_vectors_of_trimmed_pieces_stay(encoder: Path) -> None:
    loaded = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    before = loaded.get_input_embeddings().weight.detach().clone()
    keep_rows(loaded, [5, 0, 7])
    assert torch.equal(loaded.get_input_embeddings().weight, before[[5, 0, 7]])
    assert loaded.config.vocab_size == 3


def test_a_column_that_a_treebank_lacks_is_left_out(encoder: Path, tmp_path: Path) -> None:
    assert "xpos" not in LABELS.tags
    plan = ParserPlan(
        treebanks=[open_treebank(TREEBANK)],
        encoder=str(encoder),
        languages=["en"],
        training=TrainingOptions(epochs=1, sizes=SIZES),
        layers=1,
    )
    reports = []
    build_parser(plan, tmp_path, reports.append)
    assert set(reports[-1].dev) >= {"boundary", "head", "upos"}
    assert "xpos" not in reports[-1].dev


def test_a_file_teaches_nothing_of_columns_that_it_lacks() -> None:
    bare, tagged = SENTENCES[0], SENTENCES[1]
    assert not any(word.xpos for word in bare.words)
    tagged = replace(tagged, words=tuple(replace(word, xpos="X") for word in tagged.words))
    labels = Labels.of([bare, tagged])
    (alone,) = gold_sentences([bare], labels)
    assert (alone.tags["xpos"] == IGNORE).all()
    assert (alone.tags["upos"] != IGNORE).all()
    first, _ = gold_sentences([bare, tagged], labels)
    assert (first.tags["xpos"] == labels.tags["xpos"].index("_")).all()


def test_an_encoder_without_weights_is_named(encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(encoder, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    plan = ParserPlan(treebanks=[open_treebank(TREEBANK)], encoder=str(folder), languages=["en"])
    with pytest.raises(ModelLoadError, match=f"cannot load the encoder '{folder}'"):
        build_parser(plan, tmp_path / "parser", [].append)


def test_what_an_encoder_cannot_read_is_counted(tokenizer: Any, special: SpecialTokens) -> None:
    corpus = Corpus.of([GOLD], tokenizer, special)
    longest = max(corpus.lengths[0]) + special.count(1)
    assert corpus.left_out(longest) == 0
    assert corpus.left_out(longest - 1) == corpus.lengths[0].count(max(corpus.lengths[0]))
    windows = [one for batch in corpus.batches(TrainingOptions(), 0, longest - 1) for one in batch]
    read = sum(len(one.lengths) for one in windows)
    assert read == len(GOLD) - corpus.left_out(longest - 1)


def test_weights_that_are_not_finite_end_a_training(
    encoder: Path, tokenizer: Any, special: SpecialTokens, tmp_path: Path
) -> None:
    corpus = Corpus.of([GOLD], tokenizer, special)
    model = TextParser(AutoModel.from_pretrained(encoder, add_pooling_layer=False), LABELS, SIZES)
    torch.nn.init.constant_(model.root, torch.nan)
    options = TrainingOptions(epochs=1, sizes=SIZES)
    with pytest.raises(DivergedError, match="train again with another seed"):
        train(model, corpus, corpus, options, tmp_path / "checkpoint.pt", lambda _: None)
