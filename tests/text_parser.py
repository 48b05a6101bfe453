"""A tiny parser of running text: trained on a few trees by the command, in seconds."""

from __future__ import annotations

from pathlib import Path

from tests.word_parser import run_command

TREEBANK = Path(__file__).parent / "fixtures" / "treebank-tiny"


def save_encoder(folder: Path) -> Path:
    """An encoder of random weights for the bundled tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from service.tokenizers import bundled_tokenizers

    tokenizer = AutoTokenizer.from_pretrained(bundled_tokenizers()["parsebank-wordpiece-en"])
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=64,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def train_text_parser(folder: Path, *options: str) -> str:
    """Train a parser into ``folder/models``; gives what the command prints."""
    encoder = save_encoder(folder / "encoder")
    return run_command(
        *("models", "train", "own", "--treebank", TREEBANK, "--encoder", encoder),
        *("--out", folder / "models", "--name", "tiny", "--lang", "en", *options),
    )
