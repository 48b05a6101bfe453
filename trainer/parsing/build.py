"""From treebanks and an encoder to the folder that the service reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from syntax import Sentence
from syntax.batches import SpecialTokens
from syntax.errors import SpecError
from syntax.fingerprint import file_sha256, fingerprint
from syntax.parsing.folder import CARD, EXACT, FORMAT, TOKENIZER
from syntax.tokenizers import special_tokens_of
from syntax.trees.conllu.treebank import Treebank
from trainer.nn.stock import load_encoder, read_encoder_config
from trainer.nn.tokenizer import fast_tokenizer
from trainer.parsing.corpus import gold_sentences
from trainer.parsing.export import export_programs
from trainer.parsing.labels import Labels
from trainer.parsing.model import TextParser, positions
from trainer.parsing.quantization import set_state
from trainer.parsing.training import Corpus, Report, TrainingOptions, train
from trainer.parsing.vocabulary import (
    extended,
    keep_rows,
    separated,
    trimmed,
    used_pieces,
)


@dataclass(frozen=True)
class ParserPlan:
    """Ingredients of a parser.

    Attributes:
        languages: ISO codes of those that it serves.
        encoder: Folder of weights and tokenizer, or a name on the model hub that is cached.
        corpora: Further texts whose pieces stay.
        layers: The first layers of the encoder that stay; all by default.
    """

    treebanks: Sequence[Treebank]
    encoder: str
    languages: Sequence[str]
    corpora: Sequence[Path] = ()
    whole_vocabulary: bool = False
    layers: int | None = None
    training: TrainingOptions = field(default_factory=TrainingOptions)


def build_parser(plan: ParserPlan, folder: Path, report: Callable[[Report], None]) -> None:
    """Train a parser and write its programs, tokenizer and card into a folder.

    A checkpoint lets the same call go on after a stop. The programs in the folder are of 8-bit
    integers; those in `syntax.parsing.folder.EXACT` are not rounded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    splits = {split: [bank.read(split) for bank in plan.treebanks] for split in ("train", "dev")}
    labels = Labels.of(sentence for file in splits["train"] for sentence in file)
    torch.manual_seed(plan.training.seed)
    encoder, tokenizer, special = _encoder(plan, [s for file in splits["train"] for s in file])
    model = TextParser(encoder, labels, plan.training.sizes)
    learned, held_out = (
        Corpus.of([gold_sentences(file, labels) for file in splits[split]], tokenizer, special)
        for split in ("train", "dev")
    )
    checkpoint = folder / f"checkpoint-{_identity(plan)[:16]}.pt"
    train(model, learned, held_out, plan.training, checkpoint, report)
    model.eval()
    export_programs(model, folder)
    set_state(model, "exact")
    (folder / EXACT).mkdir(exist_ok=True)
    export_programs(model, folder / EXACT, rounded=False)
    card = _card(plan, labels, special, encoder.config)
    card["sentences_left_out"] = learned.left_out(positions(encoder.config))
    for place in (folder, folder / EXACT):
        tokenizer.save(str(place / TOKENIZER), pretty=False)
        text = json.dumps(card, indent=1, ensure_ascii=False)
        (place / CARD).write_text(f"{text}\n", encoding="utf-8")


def _encoder(plan: ParserPlan, sentences: Sequence[Sentence]) -> tuple[Any, Any, SpecialTokens]:
    found = fast_tokenizer(plan.encoder)
    if found is None:
        raise SpecError(f"{plan.encoder} has no fast tokenizer on this machine; give its folder")
    words = (word.form for sentence in sentences for word in sentence.words)
    known = found.backend_tokenizer.get_vocab_size()
    tokenizer = extended(separated(found.backend_tokenizer), words)
    special = special_tokens_of(tokenizer, dict(found.special_tokens_map))
    if special is None:
        raise SpecError(f"the tokenizer of {plan.encoder} puts no tokens around a text")
    config = read_encoder_config(plan.encoder, cached=True)
    encoder: Any = load_encoder(plan.encoder, config, dtype="auto", cached=True)
    if plan.layers is not None:
        encoder.encoder.layer = encoder.encoder.layer[: plan.layers]
        encoder.config.num_hidden_layers = plan.layers
    kept = list(range(tokenizer.get_vocab_size()))
    if not plan.whole_vocabulary:
        texts = [sentence.text for sentence in sentences]
        further = (path.read_text(encoding="utf-8") for path in plan.corpora)
        used = used_pieces(tokenizer, texts) | used_pieces(tokenizer, further)
        tokenizer, special, kept = trimmed(tokenizer, special, used)
    keep_rows(encoder, kept, known)
    return encoder, tokenizer, special


def _identity(plan: ParserPlan) -> str:
    """Fingerprint of all that decides the trained weights: each plan has its own checkpoint."""
    files = [file for file in sorted(Path(plan.encoder).glob("*")) if file.is_file()]
    return fingerprint(
        {
            "treebanks": [file_sha256(bank.path("train")) for bank in plan.treebanks],
            "encoder": [file_sha256(file) for file in files] or plan.encoder,
            "corpora": [file_sha256(path) for path in plan.corpora],
            "whole_vocabulary": plan.whole_vocabulary,
            "layers": plan.layers,
            "training": asdict(plan.training),
        }
    )


def _card(plan: ParserPlan, labels: Labels, special: SpecialTokens, config: Any) -> dict[str, Any]:
    banks = plan.treebanks
    return {
        "format": FORMAT,
        "language": plan.languages[0],
        "languages": list(plan.languages),
        "treebank": ", ".join(bank.name for bank in banks),
        "treebank_version": ", ".join(bank.version for bank in banks),
        "licence": "; ".join(dict.fromkeys(bank.licence for bank in banks)),
        "attribution": "; ".join(dict.fromkeys(bank.attribution for bank in banks)),
        "columns": ["form", *labels.tags, "head", "deprel"],
        "encoder": Path(plan.encoder).name,
        "layers": config.num_hidden_layers,
        "training": asdict(plan.training),
        "versions": {name: version(name) for name in ("torch", "transformers", "onnx")},
        "max_pieces": positions(config),
        "special_tokens": special.to_json(),
        "labels": labels.to_json(),
    }
