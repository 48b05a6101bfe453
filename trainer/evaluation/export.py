"""The encoder of a finished run as a folder of its own, which other runs start from."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, cast

from transformers import AutoTokenizer

from syntax.errors import SpecError
from trainer.evaluation.trained import load_model
from trainer.models.config import SyntaxConfig
from trainer.models.parts import save_parts
from trainer.nn.tokenizer import read_tokenizer
from trainer.requirements import Requirements

_LOG: Final = logging.getLogger(__name__)


def export_encoder(run: Path, folder: Path) -> None:
    """Write the stock encoder of a run, and its tokenizer where that is on this machine.

    What a system adds to the stock encoder (gates, graph encoders) is in a file beside it, which
    models of the same system take (`trainer.models.parts`). Heads and objectives stay behind.
    Killed runs have a model, too.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SpecError(f"{folder} is not empty; name a new folder")
    model = load_model(run)
    encoder = model.encoder.stock
    if encoder is None:
        trains = (
            "layers over stored states or tags of words"
            if model.config.model_options().reads_words
            else "a graph encoder, which other runs take with model.gat_from"
        )
        raise SpecError(
            f"{model.config.model['name']} trains no encoder of pieces, but {trains}; export a run "
            "of another model"
        )
    encoder.save_pretrained(folder)
    save_parts(model.encoder, cast(SyntaxConfig, model.config), folder)
    needs = Requirements.from_json(model.config.requires)
    found = read_tokenizer(needs.tokenizer_name)
    if found is None or found.fingerprint != needs.tokenizer:
        _LOG.warning(
            "the files of the tokenizer %s (%s) are not on this machine under that name; put them "
            "into %s, or runs that start from it do not check that data are of its tokenizer",
            needs.tokenizer_name,
            needs.tokenizer[:12],
            folder,
        )
        return
    AutoTokenizer.from_pretrained(needs.tokenizer_name, local_files_only=True).save_pretrained(
        folder
    )
