"""Which stock encoders a model takes: tokenizer, precision, what their attention does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from transformers import (
    AlbertConfig,
    AutoModel,
    BertConfig,
    BertForSequenceClassification,
    CamembertConfig,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    MPNetConfig,
    PretrainedConfig,
    RobertaConfig,
    T5Config,
    XLMRobertaConfig,
)

from service.tokenizers import bundled_tokenizers
from syntax.errors import SpecError
from trainer.data import open_source, profile_data
from trainer.loop import train
from trainer.models.build import build_model
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.nn.stock import check_fits, load_encoder_config
from trainer.nn.tokenizer import read_tokenizer
from trainer.options import DataOptions, FrozenOptions, SyntaxBertOptions
from trainer.systems import SYSTEMS
from trainer.systems.frozen.states import FrozenStockEncoder
from trainer.tasks.classes import ClassifierOfFirst

SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT = {**SIZE, "intermediate_size": 32}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DEBERTA_V3 = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "position_buckets": 4,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
FAMILIES: dict[str, PretrainedConfig] = {
    "albert": AlbertConfig(**BERT, embedding_size=8, **SPECIAL),
    "bert": BertConfig(**BERT),
    "camembert": CamembertConfig(**BERT, type_vocab_size=1, **SPECIAL),
    "deberta": DebertaConfig(**BERT, relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "deberta-v2": DebertaV2Config(**BERT, **DEBERTA_V3),
    "deberta-v2 with a convolution": DebertaV2Config(**BERT, **DEBERTA_V3, conv_kernel_size=3),
    "distilbert": DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=32),
    "electra": ElectraConfig(**BERT, embedding_size=8),
    "modernbert": ModernBertConfig(**BERT, **SPECIAL, cls_token_id=1, sep_token_id=2),
    "mpnet": MPNetConfig(**BERT),
    "roberta": RobertaConfig(**BERT, type_vocab_size=1),
    "xlm-roberta": XLMRobertaConfig(**BERT, type_vocab_size=1),
}
OWN = {
    "sgnet.v1": {"layer": "as_published"},
    "udprlm.v1": {"labels": ["_", "APP", "root"]},
}
"""Options that a system needs here."""


def table_of_encoders() -> dict[str, set[str]]:
    """Systems, and the families that the page says they take."""
    page = (Path(__file__).parents[3] / "docs" / "train.md").read_text()
    part = page.partition("### Which encoders work")[2].partition("\n### ")[0]
    head, _, *rows = (line[2:-2].split(" | ") for line in part.splitlines() if "|" in line)
    taken: dict[str, set[str]] = {}
    for place, cell in enumerate(head[1:], 1):
        for system in re.findall(r"`([\w.]+)`", cell):
            found = (row[0].split(", ") for row in rows if row[place] != "no")
            taken[system] = {name.lower() for names in found for name in names}
    return taken


OBEY = table_of_encoders()
"""The families whose attention each model can reach into."""


def model_of(family: str, model: str, attention: str = SDPA, **options) -> SyntaxModel:
    torch.manual_seed(3)
    config = SyntaxConfig(
        encoder={**FAMILIES[family].to_dict(), "vocab_size": 60},
        attention=attention,
        model={"name": model, **OWN.get(model, {}), **options},
        classes={"label": ["no", "yes", "maybe"]},
    )
    return SyntaxModel(config)


def test_the_page_says_of_every_family_and_system_with_syntax_what_works() -> None:
    assert {*FAMILIES} >= set().union(*OBEY.values())
    without = {"frozen.v1", "gate.v1", "microbert.v1", "orderfree.v1", "plbart.v1", "stock.v1"}
    built = {"sgnet_transformer.v1", "syntax_gat.v1", "transformer.v1"}
    assert {*OBEY} == {*SYSTEMS} - without - built


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize("model", OBEY)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_is_taken_if_its_attention_obeys_and_else_refused(
    family, model, attention
) -> None:
    if family in OBEY[model]:
        encoder = model_of(family, model, attention).train().encoder
        before = torch.get_rng_state()
        encoder.check_attention()
        assert torch.equal(torch.get_rng_state(), before), "nothing is drawn"
        assert all(part.training for part in encoder.modules())
    else:
        kind = FAMILIES[family].model_type
        with pytest.raises(SpecError, match=f"'{kind}'.*set model.use_syntax=false"):
            model_of(family, model, attention).encoder.check_attention()


@pytest.mark.parametrize("layers", [[0], [1]])
def test_local_attention_in_some_layers_is_checked_in_these(layers) -> None:
    model_of("electra", "sla.v1", local_layers=layers).encoder.check_attention()


def test_an_attention_that_drops_a_mask_or_reads_padding_is_refused() -> None:
    """Encoders of a family that obeys, each with one fault."""
    deaf = model_of("bert", "syntax_bert.v1").encoder
    layer = deaf.encoder.encoder.layer[1].attention.self
    layer.layer_idx = 0
    with pytest.raises(SpecError, match=r"2 layers read the parts \[0, 0\] of 2"):
        deaf.check_attention()
    layer.layer_idx = 1
    deaf.check_attention()
    leaky = deaf.encoder
    leaky.register_forward_pre_hook(_without_mask, with_kwargs=True)
    with pytest.raises(SpecError, match="a mask that changes states by"):
        deaf.check_attention()


def _without_mask(_module, args, options):
    return args, {**options, "attention_mask": torch.ones_like(options["attention_mask"])}


@pytest.mark.parametrize("model", OBEY)
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_without_syntax_every_family_is_its_stock_encoder(family, model, batch) -> None:
    encoder = model_of(family, model, use_syntax=False).eval().encoder
    stock = AutoModel.from_config(
        encoder.encoder.config.__class__(**encoder.encoder.config.to_dict())
    )
    stock.load_state_dict(encoder.encoder.state_dict(), strict=False)
    mask = batch.attention_mask_BL
    expected = stock.eval()(batch.input_ids_BL, attention_mask=mask.long()).last_hidden_state
    rounding = 1e-6 if family == "deberta-v2" else 0.0  # ours is fused, transformers' is not
    assert (encoder(batch).last_hidden_state - expected)[mask].abs().max() <= rounding
    assert {name.partition(".")[0] for name, _ in encoder.named_parameters()} == {"encoder"}


@pytest.mark.parametrize("family", sorted(OBEY["syntax_bert.v1"]))
@torch.no_grad()
def test_trees_reach_every_family_that_obeys(family, batch, make_batch) -> None:
    """Also where word embeddings are narrower than states, as in ELECTRA."""
    model, moved = model_of(family, "syntax_bert.v1", max_distance=1).eval(), make_batch()
    moved.distances()[0, 3, :9] = moved.distances()[0, :9, 3] = 5
    states = [model.encoder(one).last_hidden_state for one in (batch, moved)]
    changed = (states[0] - states[1]).abs().amax((1, 2)) > 0
    assert changed.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        (ElectraConfig(**BERT, max_position_embeddings=40), 40),
        (RobertaConfig(**BERT, max_position_embeddings=40), 38),
        (ModernBertConfig(**BERT, **SPECIAL, max_position_embeddings=40), 40),
    ],
)
def test_a_text_may_be_as_long_as_there_are_positions(config, positions, tokenizer) -> None:
    config.vocab_size = 100000
    check_fits(config, DataOptions(dataset="any", max_length=positions), tokenizer.special_tokens)
    with pytest.raises(SpecError, match=f"has {positions} positions"):
        check_fits(
            config, DataOptions(dataset="any", max_length=positions + 1), tokenizer.special_tokens
        )


def test_a_model_with_a_decoder_is_refused(tmp_path, tokenizer) -> None:
    T5Config().save_pretrained(tmp_path)
    with pytest.raises(SpecError, match="'t5', which is no encoder by itself"):
        load_encoder_config(SyntaxBertOptions(encoder=str(tmp_path)), tokenizer.special_tokens)


@pytest.fixture
def pretrained(tmp_path, tokenizer):
    """A folder of weights that fit the data, with the files of a tokenizer or without."""

    def make(tokens: str | None = "own", family: str = "bert", dtype=torch.float32) -> str:
        folder = tmp_path / f"{family}-{tokens}-{dtype}"
        config = FAMILIES[family]
        config.vocab_size = tokenizer.special_tokens.vocab_size
        torch.manual_seed(5)
        AutoModel.from_config(config).half().to(dtype).save_pretrained(folder)
        if tokens is not None:
            (bundled,) = bundled_tokenizers().values()
            shutil.copytree(bundled, folder, dirs_exist_ok=True)
        if tokens == "other":
            path = folder / "tokenizer.json"
            content = json.loads(path.read_text())
            vocabulary = content["model"]["vocab"]
            vocabulary["the"], vocabulary["of"] = vocabulary["of"], vocabulary["the"]
            path.write_text(json.dumps(content))
        return str(folder)

    return make


SHORT = ("weights=pretrained", "max_steps=2", "evaluate_every=null")


def test_the_tokenizer_beside_weights_has_the_identity_that_the_service_gives(
    pretrained, tokenizer
) -> None:
    found = read_tokenizer(pretrained())
    assert found.fingerprint == tokenizer.fingerprint
    assert len(found.pieces) == tokenizer.special_tokens.vocab_size
    ids, _ = tokenizer.encode("the cat")
    assert found.pieces[ids[0]] == "the"
    assert read_tokenizer(pretrained("other")).fingerprint != tokenizer.fingerprint
    assert read_tokenizer(pretrained(None)) is None


@pytest.mark.parametrize("name", ["bert-base-uncased", "bert-base-multilingual-cased"])
def test_real_tokenizers_have_the_identity_that_the_service_gives(data_dir, name) -> None:
    from service.tokenizers import load_tokenizer

    folder = str(data_dir / "tokenizers" / name)
    assert read_tokenizer(folder).fingerprint == load_tokenizer(folder).fingerprint


def test_weights_of_another_tokenizer_are_refused_unless_asked_for(
    store, small_recipe, pretrained, tmp_path
) -> None:
    recipe = small_recipe(*SHORT, f"encoder={pretrained('other')}")
    with pytest.raises(SpecError, match=r"Backfill with .*, or set model\.any_tokenizer=true") as e:
        train(recipe, store, tmp_path / "refused")
    assert set(e.value.detail) == {"expected", "found"}
    forced = replace(recipe, model=replace(recipe.model, any_tokenizer=True))
    assert len(train(forced, store, tmp_path / "run").progress.losses) == 2


def test_weights_without_a_tokenizer_train_and_that_is_said(
    store, small_recipe, pretrained, tmp_path, caplog
) -> None:
    recipe = small_recipe(*SHORT, f"encoder={pretrained(None)}")
    assert len(train(recipe, store, tmp_path / "run").progress.losses) == 2
    assert "that it reads pieces of parsebank-wordpiece-en" in caplog.text


def test_a_frozen_encoder_of_another_tokenizer_is_refused_too(store, pretrained) -> None:
    data = store.dataset("sample", split="dev", lang="en")
    options = FrozenOptions(encoder=pretrained("other"))
    with pytest.raises(SpecError, match=r"model\.any_tokenizer=true"):
        FrozenStockEncoder(options, data)
    assert FrozenStockEncoder(replace(options, any_tokenizer=True), data).width == 16


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_frozen_states(family, store, pretrained) -> None:
    data = store.dataset("sample", split="dev", lang="en")
    frozen = FrozenStockEncoder(FrozenOptions(encoder=pretrained(family=family), layer=1), data)
    first = next(iter(frozen.states(data)))
    assert first.states.shape == (first.words.sum(), 16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_trained_in_float32(
    store, small_recipe, pretrained, tmp_path, dtype
) -> None:
    """With the losses of the same weights in float32; bfloat16 has rounded them once more."""
    half, whole = (
        train(small_recipe(*SHORT, f"encoder={folder}"), store, tmp_path / name)
        for name, folder in (("half", pretrained(dtype=dtype)), ("whole", pretrained()))
    )
    assert {weight.dtype for weight in half.model.parameters()} == {torch.float32}
    if dtype == torch.float16:
        assert half.progress.losses == whole.progress.losses
    else:
        assert half.progress.losses == pytest.approx(whole.progress.losses, rel=0.01)


SLA = (*SHORT, "model.name=sla.v1", "joint_root=false")


def test_the_release_of_local_attention_marks_punctuation_of_the_encoders_tokenizer(
    store, small_recipe, pretrained, tmp_path
) -> None:
    folder = pretrained()
    recipe = small_recipe(*SLA, f"encoder={folder}", "punctuation=pieces", "gate=as_released")
    run = train(recipe, store, tmp_path / "run")
    pieces = read_tokenizer(folder).pieces
    marked = [pieces[n] for n in run.model.encoder.punctuation_V.nonzero().flatten().tolist()]
    assert {".", ",", "$", "?"} <= set(marked)
    assert all(len(piece) == 1 for piece in marked)


def test_punctuation_by_string_needs_the_files_of_a_tokenizer(
    store, small_recipe, pretrained, tmp_path
) -> None:
    recipe = small_recipe(*SLA, f"encoder={pretrained(None)}", "punctuation=pieces")
    with pytest.raises(SpecError, match=r"set model\.punctuation=true"):
        train(recipe, store, tmp_path / "run")


@torch.no_grad()
def test_the_pooler_of_bert_classifies_as_berts_own_classifier_does(
    store, small_recipe, pretrained, tmp_path
) -> None:
    """Pooler, dropout, linear: the logits are those of transformers' own model."""
    folder = pretrained()
    settings = (*SHORT, f"encoder={folder}", "use_syntax=false", "task.pooler=true")
    recipe = small_recipe(*settings)
    model = build(recipe, store)
    twin = BertForSequenceClassification.from_pretrained(folder, num_labels=3).eval()
    twin.classifier.load_state_dict(model.head.classifier.output.state_dict())
    ids, mask = torch.arange(5, 13)[None], torch.ones(1, 8).long()
    expected = twin(ids, attention_mask=mask).logits
    states = model.encoder.encoder(ids, attention_mask=mask).last_hidden_state
    found = model.head.classifier.eval()(states)
    assert (found - expected).abs().max() < 1e-6
    fresh = build(small_recipe(*settings[:-1]), store).head.classifier.eval()
    fresh.output.load_state_dict(twin.classifier.state_dict())
    assert (fresh(states) - expected).abs().max() > 1e-3, "a new layer is another"


@torch.no_grad()
def test_only_the_pooled_state_is_dropped_behind_the_pooler() -> None:
    """In training the first dropout is left out: the same state, whatever is drawn."""
    states = torch.randn(2, 3, 8)
    for pooler in (True, False):
        head = ClassifierOfFirst(8, 3, 0.5, pooler=pooler).train()
        seen = []
        head.dense.register_forward_pre_hook(lambda _, args, seen=seen: seen.append(args[0]))
        head(states)
        assert torch.equal(seen[0], states[:, 0]) == pooler


def test_an_encoder_without_a_pretrained_pooler_is_refused(store, small_recipe, pretrained) -> None:
    electra = (*SHORT, f"encoder={pretrained(family='electra')}")
    words = ("model.name=frozen.v1", "joint_root=false", "encoder=parsebank-tiny", "weights=random")
    for settings, message in ((electra, "has no pretrained pooler"), (words, "reads words, .*")):
        with pytest.raises(SpecError, match=rf"{message}; set task\.pooler=false"):
            build(small_recipe(*settings, "task.pooler=true"), store)


def build(recipe, store) -> SyntaxModel:
    source = open_source(store, recipe, "train", "en")
    return build_model(recipe, profile_data(source, recipe))


def told_by(code: str, **variables: str) -> list[str]:
    """Output of a process with further variables."""
    own = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**own, **variables},
        cwd=Path(__file__).parents[3],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_the_tokenizer_of_a_cached_hub_name_is_compared(pretrained, tmp_path, tokenizer) -> None:
    """In a process of its own, which finds its cache where the environment says."""
    snapshot = tmp_path / "cache" / "models--someone--encoder" / "snapshots" / ("0" * 40)
    shutil.copytree(pretrained(), snapshot)
    reference = snapshot.parents[1] / "refs" / "main"
    reference.parent.mkdir()
    reference.write_text("0" * 40)
    code = (
        "from trainer.nn.tokenizer import read_tokenizer as read\n"
        "print(read('someone/encoder').fingerprint, read('someone/other'))"
    )
    said = told_by(code, HF_HUB_CACHE=str(tmp_path / "cache"), HF_HUB_OFFLINE="1")
    assert said == [tokenizer.fingerprint, "None"]


@pytest.mark.slow
def test_offline_asks_no_hub_for_an_encoder(tmp_path) -> None:
    """In a process of its own, whose hub is a server here that notes who asks."""
    asked = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_GET = do_HEAD  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    code = (
        "from torch import float32\n"
        "from transformers import BertConfig\n"
        "from syntax.errors import ModelLoadError\n"
        "from trainer.nn.stock import load_encoder, load_encoder_config, load_pooler\n"
        "from trainer.options import SyntaxBertOptions\n"
        "config = BertConfig()\n"
        "for load in (\n"
        "    lambda: load_encoder('someone/encoder', config),\n"
        "    lambda: load_pooler('someone/encoder', config),\n"
        "    lambda: load_encoder_config(SyntaxBertOptions(encoder='someone/encoder'), None),\n"
        "):\n"
        "    try:\n"
        "        load()\n"
        "    except ModelLoadError as error:\n"
        "        print(error.error_type)\n"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = told_by(
            code,
            HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}",
            HF_HUB_CACHE=str(tmp_path / "cache"),
            PARSEBANK_OFFLINE="Yes",
        )
        server.shutdown()
    assert said == ["model_load"] * 3
    # The hub's library asks about itself.
    assert [path for path in asked if "someone" in path] == []
