"""A tiny parser of Parsebank's own: trained on a few trees, exported, put into models folders."""

from __future__ import annotations

from pathlib import Path

from featurestore import open_store
from service.parsers import Parser, find_parser, load_parser
from service.settings import Settings
from service.tokenizers import load_tokenizer
from tests.trainer.command import parsebank

NAME = "parsebank/tiny"


def train_parser(folder: Path, *settings: str) -> Path:
    """Train for a few steps; gives the run's output."""
    # The tests of the service import this module, and need not all wait for torch.
    from accelerate.state import AcceleratorState, PartialState

    from tests.trainer.treebank import append_treebank, recipe
    from trainer.loop import train
    from trainer.report import result_of
    from trainer.results import write_result

    run = folder / "run"
    with open_store(str(folder / "store")) as store:
        tokenizer = load_tokenizer("parsebank-wordpiece-en")
        for split in ("train", "dev"):
            append_treebank(store, tokenizer, split)
        made = recipe(
            *("max_steps=60", "evaluate_every=60", "learning_rate=0.003", "task.upos=true"),
            *("batch_size=6", "task.parser.states=mix", "task.parser.pieces=mean"),
            *("task.parser.dropout=0", "model.dropout=0", "max_length=128", *settings),
        )
        write_result(result_of(train(made, store, run)), run)
    AcceleratorState._reset_state()
    PartialState._reset_state()
    return run


def run_command(*arguments: object) -> str:
    """Run ``parsebank`` in this process; gives what it prints."""
    found = parsebank(*arguments)
    assert found.exit_code == 0, found.output
    return found.output


def load_added(folder: Path, name: str = NAME) -> Parser:
    """A parser that was added to a models folder, loaded into this process."""
    return load_parser(find_parser(Settings(store="unused", models_dir=folder), name), "cpu")
