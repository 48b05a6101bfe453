"""The published tokenizers on real pairs, with encoders of their families."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from transformers import XLMRobertaConfig

from clients.benchmarks import XNLI
from featurestore import DatasetHandle, ExampleRow, open_store
from service.parsers import Limits, ParseInput
from service.tokenizers import load_tokenizer
from syntax.alignment import segment_features
from syntax.examples import Example
from syntax.fingerprint import fingerprint
from trainer.loop import train
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

COUNT = 40

ALPHA = ("objectives.tree_distance.weight=0.1", "objectives.tree_depth.weight=0.1")


def backfill(uri: Path, pairs: Path, parser, tokenizer) -> None:
    rows = []
    for seq, item in enumerate(islice(XNLI.read(pairs, "dev", "en"), COUNT)):
        assert isinstance(item, Example)
        parses = [parser.parse(ParseInput("raw", part.text), Limits()) for part in item.segments]
        segments = [segment_features(parse, *tokenizer.encode(parse.text)) for parse in parses]
        texts = tuple(parse.text for parse in parses)
        keys = tuple(map(fingerprint, texts))
        rows.append(
            ExampleRow(
                seq,
                item.example_id,
                fingerprint([item.example_id, keys]),
                parser.identity.fingerprint,
                texts,
                keys,
                tuple(segments),
                item.labels,
            )
        )
    handle = DatasetHandle(
        XNLI.spec("dev", "en"), tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens
    )
    with open_store(uri) as store:
        store.features.append(handle, rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokenizer", "family"),
    [
        ("bert-base-multilingual-cased", "bert"),
        ("xlm-roberta-base_from_multilingual-e5-small", "xlm-roberta"),
    ],
)
def test_the_xnli_recipe_reads_real_pairs(data_dir, tmp_path, english, tokenizer, family) -> None:
    loaded = load_tokenizer(str(data_dir / "tokenizers" / tokenizer))
    backfill(tmp_path / "store", data_dir / "benchmarks" / "xnli", english, loaded)
    encoder = "parsebank-tiny"
    if family == "xlm-roberta":
        encoder = str(tmp_path / "encoder")
        XLMRobertaConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            type_vocab_size=1,
            max_position_embeddings=130,
        ).save_pretrained(encoder)
    data = ("data.train_split=dev", "batch_size=8", "epochs=1")
    recipe = with_settings(
        RECIPES["xnli"](), [*data, *ALPHA, "weights=random", f"encoder={encoder}"]
    )
    with open_store(tmp_path / "store") as store:
        run = train(recipe, store, tmp_path)
    assert run.progress.examples == COUNT
    assert run.progress.evaluations[-1].scores["examples"] == COUNT
