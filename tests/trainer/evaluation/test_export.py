"""Every system's encoder after training: exported, loaded by the next run, with its syntax."""

from __future__ import annotations

import pytest
import torch
from transformers import AlbertConfig, DebertaV2Config, ModernBertConfig

from syntax.errors import SpecError
from tests.trainer.runs import batches_of, finished
from trainer.data import open_source, profile_data
from trainer.evaluation.export import export_encoder
from trainer.evaluation.trained import load_model
from trainer.loop import MODEL, Run, train
from trainer.models.build import build_model
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.models.parts import PARTS
from trainer.options import Recipe
from trainer.systems import SYSTEMS

SEPARATE = ("joint_root=false", "separator_edge=none")
SIZES = ("layers=2", "hidden_size=16", "heads=2", "feed_forward=16", "max_positions=64")
BUILT = tuple(f"model.{size}" for size in SIZES)
SETTINGS: dict[str, tuple[str, ...]] = {
    "blocking.v1": ("max_distance=1",),
    "lisa.v1": (),
    "microbert.v1": (*SEPARATE, *BUILT, "sla=true"),
    "pascal.v1": (),
    "plbart.v1": BUILT,
    "sgnet.v1": (*SEPARATE, "aggregation=as_released"),
    "sgnet_transformer.v1": (*SEPARATE, *BUILT, "aggregation=learned"),
    "sla.v1": SEPARATE,
    "stock.v1": (),
    "syntax_bert.v1": (),
    "syntax_masks.v1": (),
    "transformer.v1": BUILT,
    "udprlm.v1": (*BUILT, 'labels=["_", "APP", "det", "root"]', "usi_width=4"),
}
"""Settings with which each system reads the sample."""

WITHOUT_PARTS = {"blocking.v1", "pascal.v1", "stock.v1", "transformer.v1"}
"""Systems that add no weights to the stock encoder."""

WORDS = "layers over stored states or tags of words"
REFUSED = {
    "frozen.v1": WORDS,
    "gate.v1": WORDS,
    "orderfree.v1": WORDS,
    "syntax_gat.v1": r"a graph encoder, which other runs take with model\.gat_from",
}
"""Systems that train no encoder of pieces, and what is said of each."""


def test_every_system_is_here() -> None:
    assert {*SETTINGS, *REFUSED} == set(SYSTEMS)


@pytest.fixture
def recipe_of(small_recipe):
    def make(name: str, *settings: str):
        built = () if BUILT[0] in SETTINGS[name] else ("model.encoder=parsebank-tiny",)
        common = (f"model.name={name}", "model.weights=random", *built, "max_length=64")
        short = ("max_steps=1", "learning_rate=0.1", "warmup_steps=0", "evaluate_every=null")
        return small_recipe(*common, *short, *SETTINGS[name], *settings)

    return make


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", SETTINGS)
def test_an_exported_encoder_gives_the_same_states_to_the_bit(
    store, recipe_of, tmp_path, name
) -> None:
    run, folder = tmp_path / "run", tmp_path / "encoder"
    finished(recipe_of(name), store, run)
    export_encoder(run, folder)
    assert (folder / PARTS).exists() == (name not in WITHOUT_PARTS)
    own = load_model(run).encoder.eval()
    pretrained = ("model.weights=pretrained", f"model.encoder={folder}")
    further = recipe_of(name, *pretrained)
    first = Run(further, store, tmp_path / "next", ())
    taken = first.accelerator.unwrap_model(first.model).encoder.eval()
    assert {key: one.tolist() for key, one in taken.named_parameters()} == {
        key: one.tolist() for key, one in own.named_parameters()
    }
    batch = batches_of(store, further)[0]
    with torch.no_grad():
        states, expected = (one(batch).last_hidden_state for one in (taken, own))
    assert torch.equal(states, expected)
    tuned = train(further, store, tmp_path / "tuned")
    learned = dict(tuned.accelerator.unwrap_model(tuned.model).encoder.named_parameters())
    assert any(not torch.equal(one, learned[key]) for key, one in own.named_parameters())


SIZE = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
KINDS = {
    "albert": AlbertConfig(**SIZE, embedding_size=8),
    "deberta": DebertaV2Config(
        **SIZE, relative_attention=True, pos_att_type=["c2p", "p2c"], type_vocab_size=0
    ),
    "modernbert": ModernBertConfig(
        **SIZE, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=8
    ),
}
OF_KINDS = {
    **{name: SETTINGS[name] for name in SETTINGS if not {*SETTINGS[name]} & {*BUILT}},
    "sgnet.v1": SEPARATE,
    "udprlm.v1": SETTINGS["udprlm.v1"][len(BUILT) :],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_encoders_of_other_kinds_learn_and_come_back_too(
    store, small_recipe, tmp_path, kind, name
) -> None:
    def new(*settings: str) -> tuple[Recipe, SyntaxModel]:
        common = ("max_length=64", f"model.name={name}", *OF_KINDS[name], *settings)
        recipe = small_recipe(*common)
        return recipe, build_model(
            recipe, profile_data(open_source(store, recipe, "dev", "en"), recipe)
        )

    KINDS[kind].save_pretrained(tmp_path / "new")
    random = ("model.weights=random", f"model.encoder={tmp_path / 'new'}")
    if (kind, name) == ("modernbert", "udprlm.v1"):
        with pytest.raises(SpecError, match="would read states behind the encoder's last norm"):
            new(*random)
        return
    recipe, model = new(*random)
    batch = batches_of(store, recipe)[0]
    loss = model.train()(batch).loss
    loss.backward()
    gradients = [one.grad for one in model.encoder.parameters() if one.grad is not None]
    assert loss.isfinite()
    assert gradients
    assert all(one.isfinite().all() for one in gradients)
    model.save_pretrained(tmp_path / "run" / MODEL)
    export_encoder(tmp_path / "run", tmp_path / "encoder")
    _, taken = new("model.weights=pretrained", f"model.encoder={tmp_path / 'encoder'}")
    with torch.no_grad():
        states, expected = (one.eval().encoder(batch).last_hidden_state for one in (taken, model))
    assert torch.equal(states, expected)


@pytest.mark.parametrize("name", REFUSED)
def test_a_system_without_an_encoder_of_pieces_is_refused(bert_config, tmp_path, name) -> None:
    own = {"use_tags": False} if name == "gate.v1" else {}
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": name, **own},
        classes={"label": ["no", "yes"]},
    )
    SyntaxModel(config).save_pretrained(tmp_path / "run" / MODEL)
    with pytest.raises(SpecError, match=REFUSED[name]):
        export_encoder(tmp_path / "run", tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()
