"""SG-Net over the Transformer's encoder: the mix, both readings of equation 7, and its gradient."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from clients.bpe import BpeOptions, train_bpe
from clients.wordpiece import save_tokenizer
from featurestore import DatasetHandle, ExampleRow, MemoryDataset
from service.tokenizers import load_tokenizer
from syntax.alignment import segment_features
from syntax.batches import AssemblySpec
from syntax.examples import DatasetSpec
from syntax.matrices import sgnet_mask
from syntax.trees.conllu import parse_from_sentences, read_conllu
from tests.trainer.conftest import walk
from trainer.models.config import SyntaxConfig
from trainer.nn.attention import EAGER, SDPA
from trainer.options import SgNetTransformerOptions, TransformerOptions
from trainer.systems import SYSTEMS

NAME = SgNetTransformerOptions().mask_name
SIZE = {"layers": 2, "hidden_size": 16, "heads": 2, "feed_forward": 32}


def encoder_of(model="sgnet_transformer.v1", attention=SDPA, **options):
    torch.manual_seed(3)
    told = SYSTEMS[model].options(**SIZE, **options)
    stock = {**told.new_encoder(), "vocab_size": 60, "pad_token_id": 0}
    config = SyntaxConfig(
        encoder=stock, attention=attention, model={"name": model, **SIZE, **options}
    )
    return SYSTEMS[model].load_encoder()(config).eval()


@pytest.fixture
def guided_batch(make_batch, with_extra):
    def mask(parents, special, upos):
        return sgnet_mask(parents, special=special)

    return with_extra(make_batch(pad=2), NAME, mask)


@torch.no_grad()
def test_with_alpha_one_it_is_the_plain_encoder_bit_for_bit(guided_batch) -> None:
    encoder, plain = encoder_of(alpha=1.0), encoder_of("transformer.v1")
    plain.encoder.load_state_dict(encoder.encoder.state_dict())
    expected = plain(guided_batch).last_hidden_state
    assert torch.equal(encoder(guided_batch).last_hidden_state, expected)
    assert not torch.equal(encoder_of()(guided_batch).last_hidden_state, expected)


@torch.no_grad()
def test_without_syntax_it_is_the_plain_encoder(guided_batch) -> None:
    encoder, plain = encoder_of(use_syntax=False), encoder_of("transformer.v1")
    plain.load_state_dict(encoder.state_dict())
    found = encoder(guided_batch).last_hidden_state
    assert torch.equal(found, plain(guided_batch).last_hidden_state)


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize("masking", ["add", "multiply"])
@torch.no_grad()
def test_equation_7_in_both_readings(guided_batch, attention, masking) -> None:
    """The slow twin of one head at a time; a multiplied score of 0 leaves a weight."""
    encoder, seen = encoder_of(attention=attention, masking=masking), {}
    layer = encoder.guided.self_attn
    layer.register_forward_pre_hook(lambda _, args: seen.update(states=args[0]))
    layer.out_proj.register_forward_pre_hook(lambda _, args: seen.update(output=args[0]))
    encoder(guided_batch)
    mask = guided_batch.extras[NAME]
    for row, size in enumerate(guided_batch.lengths_B.tolist()):
        states = seen["states"][row, :size]
        expected = torch.zeros_like(states)
        for head in range(2):
            part = slice(head * 8, head * 8 + 8)
            q, k, v = (
                linear(states)[:, part] for linear in (layer.q_proj, layer.k_proj, layer.v_proj)
            )
            logits, allowed = q @ k.T / 8**0.5, mask[row, :size, :size]
            forbidden = 0.0 if masking == "multiply" else -torch.inf
            expected[:, part] = logits.masked_fill(~allowed, forbidden).softmax(-1) @ v
        assert (seen["output"][row, :size] - expected).abs().max() < 1e-5


def test_the_published_shares_are_fixed_and_the_others_learned(guided_batch) -> None:
    assert list(encoder_of().aggregation.parameters()) == []
    encoder = encoder_of(aggregation="learned")
    encoder.aggregation.reset_parameters()
    encoder(guided_batch).last_hidden_state.square().sum().backward()
    assert encoder.aggregation.weights_2.grad.abs().max() > 0
    assert encoder.aggregation.gamma.grad.abs() > 0


def test_special_tokens_see_themselves_alone(guided_batch) -> None:
    mask = guided_batch.extras[NAME]
    for row, at in guided_batch.special_tokens_mask_BL.nonzero().tolist():
        if guided_batch.attention_mask_BL[row, at]:
            assert mask[row, at].nonzero().flatten().tolist() == [at]


def test_the_layer_begins_as_those_of_the_encoder_and_obeys_its_mask() -> None:
    encoder = encoder_of()
    encoder.check_attention()
    assert encoder.guided.fc1.weight.shape == encoder.encoder.layers[0].fc1.weight.shape
    assert issubclass(SgNetTransformerOptions, TransformerOptions)


def rows_of(parses, tokenizer):
    for seq, parse in enumerate(parses):
        features = segment_features(parse, *tokenizer.encode(parse.text))
        names = (f"{seq}", f"{seq:032x}", "0" * 32, (parse.text,), (f"{seq:032x}",))
        yield ExampleRow(seq, *names, (features,), {})


def test_the_mask_of_1000_french_sentences_is_as_long_as_their_pieces(data_dir, tmp_path) -> None:
    """Each has a multiword token, such as `du`; a word sees its ancestors, by walking up."""
    files = sorted((data_dir / "treebanks" / "UD_French-Sequoia").glob("*.conllu"))
    sentences = chain.from_iterable(map(read_conllu, files))
    several = (one for one in sentences if any(len(x.word_ids) > 1 for x in one.tokens))
    parses = [parse_from_sentences([one]) for one in islice(several, 1000)]
    texts = [parse.text for parse in parses]
    save_tokenizer(train_bpe(lambda: texts, BpeOptions(vocab_size=4000)), tmp_path / "bpe", {})
    tokenizer = load_tokenizer(str(tmp_path / "bpe"))
    spec = DatasetSpec("translation", "train", "fr", ("source",), (), "gold")
    handle = DatasetHandle(
        spec, tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens, matrices=False
    )
    data = MemoryDataset(handle, [*rows_of(parses, tokenizer)], {"0" * 32: {"name": "gold"}})
    trees = {"policy": "broadcast", "joint_root": False, "separator_edge": "none"}
    told = AssemblySpec(matrices=(NAME,), **trees)
    alone, seen = Tokenizer.from_file(str(tmp_path / "bpe" / "tokenizer.json")), 0
    for batch in data.stream(batch_size=50, max_length=None, shuffle=False, assembly=told):
        for row, name in enumerate(batch["example_id"]):
            parse = parses[int(name)]
            ids, mask = alone.encode(parse.text).ids, batch[NAME][row]
            L = len(ids)
            assert batch["lengths"][row] == L
            assert batch["input_ids"][row, :L].tolist() == ids
            assert not mask[:L, L:].any()
            words = batch["word_ids"][row, :L].tolist()
            parents = [head - 1 for head in parse.head]
            above = [set(walk(parents, word)) for word in range(len(parents))]
            expected = [
                [i == j or (w >= 0 and v >= 0 and v in above[w]) for j, v in enumerate(words)]
                for i, w in enumerate(words)
            ]
            assert np.array_equal(mask[:L, :L], expected)
            seen += 1
    assert seen == 1000
