"""The bundled UDPipe model and tokenizer: intact, small, licensed, as good as their cards."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import service
from service.parsers import load_parser
from service.parsers.udpipe.backend import model_in
from service.resources.tokenizers.train_wordpiece import (
    SPECIAL_TOKENS,
    save_tokenizer,
    sentence_texts,
    train_tokenizer,
)
from service.training.evaluation import evaluate_parser
from service.training.recipe import DEFAULT
from syntax.fingerprint import file_sha256
from syntax.trees.conllu import read_conllu

RESOURCES = Path(service.__file__).parent / "resources"
MODELS = RESOURCES / "models"
TOKENIZER = RESOURCES / "tokenizers" / "parsebank-wordpiece-en"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "treebank-tiny"

LARGEST_SIZE = 6_000_000
LEAST_LAS = {"raw": 75.8, "gold_tokens": 78.3}


@pytest.fixture(scope="module")
def model() -> Path:
    (found,) = MODELS.glob("*.udpipe")
    return found


@pytest.fixture(scope="module")
def card(model: Path) -> dict[str, Any]:
    return dict(json.loads(model.with_suffix(".json").read_text(encoding="utf-8")))


def test_a_model_file_is_the_one_on_its_card(model: Path, card: dict[str, Any]) -> None:
    assert card["file"] == model.name
    assert card["sha256"] == file_sha256(model)
    assert card["size"] == model.stat().st_size <= LARGEST_SIZE


def test_the_cards_carry_licence_and_attribution(model: Path, card: dict[str, Any]) -> None:
    assert card["licence"] == "CC BY-SA 4.0"
    assert (card["treebank"], card["treebank_version"]) == ("UD_English-EWT", "15d613d8")
    text = model.with_suffix(".md").read_text(encoding="utf-8")
    assert "CC BY-SA 4.0" in text
    assert card["attribution"] in text
    assert card["command"] in text


def test_the_model_was_made_by_its_recipe(card: dict[str, Any]) -> None:
    assert card["recipe"] == json.loads(json.dumps(asdict(DEFAULT)))


def test_the_card_promises_enough(card: dict[str, Any]) -> None:
    scores = card["scores"]["test"]
    for kind, least in LEAST_LAS.items():
        assert scores[kind]["LAS"] >= least


@pytest.mark.slow
def test_the_model_scores_what_its_card_says(model, card, data_dir) -> None:
    path = data_dir / "treebanks" / "UD_English-EWT" / "en_ewt-ud-test.conllu"
    scores = evaluate_parser(load_parser(model_in(model)), list(read_conllu(path)))
    for kind, figures in scores.items():
        assert figures == pytest.approx(card["scores"]["test"][kind], abs=0.05)


def test_the_tokenizer_loads_without_a_network() -> None:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER, local_files_only=True)
    assert tokenizer.is_fast
    assert len(tokenizer) == 6000
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL_TOKENS)) == [0, 1, 2, 3, 4]
    encoded = tokenizer("Time flies.", "Café?", return_offsets_mapping=True)
    pieces = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert (pieces[0], pieces[1], pieces[-1]) == ("[CLS]", "time", "[SEP]")
    assert encoded["offset_mapping"][1] == (0, 4)
    assert set(encoded["token_type_ids"]) == {0, 1}
    assert tokenizer.unk_token_id not in encoded["input_ids"]


def test_a_tokenizer_trained_twice_has_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        save_tokenizer(train_tokenizer(sentence_texts(FIXTURE), 120), tmp_path / folder)
    one, two = (tmp_path / folder / "tokenizer.json" for folder in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.slow
def test_the_shipped_tokenizer_is_what_its_script_makes(tmp_path: Path, data_dir: Path) -> None:
    texts = sentence_texts(data_dir / "treebanks" / "UD_English-EWT")
    save_tokenizer(train_tokenizer(texts), tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (TOKENIZER / name).read_bytes()


def test_a_treebank_without_train_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*-ud-train\.conllu"):
        list(sentence_texts(tmp_path))
