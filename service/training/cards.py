"""Model cards: what a trained model is, for programs (JSON) and for people (Markdown)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from service.parsers.base import ModelFile
from service.parsers.discovery import places
from service.parsers.records import ModelRecord, RecordedFile, changed_records
from service.parsers.registry import checksum
from service.parsers.udpipe.backend import udpipe_version
from service.settings import Settings
from service.training.evaluation import Scores
from service.training.recipe import Recipe
from syntax.fingerprint import file_sha256
from syntax.trees.conllu.treebank import UNKNOWN, Treebank
from syntax.trees.scoring import METRICS

_INPUTS: Final = {"raw": "raw text", "gold_tokens": "gold words"}

_NEEDED: Final = {
    "XPOS": {"xpos"},
    "UFeats": {"feats"},
    "AllTags": {"xpos", "feats"},
    "Lemmas": {"lemma"},
}


def udpipe_card(
    model: Path, treebank: Treebank, recipe: Recipe, language: str, command: str, scores: Scores
) -> dict[str, Any]:
    """Facts about a UDPipe model, for ``<name>.json``; its licence is that of the treebank."""
    return {
        "name": model.stem,
        "file": model.name,
        "backend": "udpipe",
        "backend_version": udpipe_version(),
        "language": language,
        "treebank": treebank.name,
        "treebank_version": treebank.version,
        "licence": treebank.licence,
        "attribution": treebank.attribution,
        "columns": ["form", "upos", *recipe.columns, "head", "deprel"],
        "sha256": file_sha256(model),
        "size": model.stat().st_size,
        "recipe": asdict(recipe),
        "command": command,
        "scores": scores,
        "date": today(),
    }


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def write_cards(card: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    machine, human = folder / f"{card['name']}.json", folder / f"{card['name']}.md"
    content = json.dumps(card, indent=2, ensure_ascii=False)
    machine.write_text(content + "\n", encoding="utf-8")
    human.write_text("\n".join(_udpipe_readme(card)) + "\n", encoding="utf-8")
    return machine, human


def note_trained(settings: Settings, model: ModelFile, card: Mapping[str, Any]) -> bool:
    """Record a trained model; true if its files lie in the models folder."""
    folder = settings.models_dir
    if folder is None or not all(_is_searched(file, folder) for file in model.files):
        return False
    record = ModelRecord(
        name=model.name,
        backend=model.backend,
        files=tuple(
            RecordedFile(
                file.resolve().relative_to(folder.resolve()).as_posix(),
                file_sha256(file),
                size=file.stat().st_size,
            )
            for file in model.files
        ),
        language=card.get("language"),
        treebank=card.get("treebank"),
        version=card.get("treebank_version"),
        licence=card.get("licence"),
        attribution=card.get("attribution"),
        source=card.get("command"),
        sha256=checksum(model),
        size=model.size,
        date=today(),
    )
    with changed_records(folder) as records:
        records[record.name] = record
    return True


def _is_searched(file: Path, folder: Path) -> bool:
    searched = {place.resolve() for place in places(folder)}
    return not searched.isdisjoint(file.resolve().parents[:2])


def filled_metrics(columns: Collection[str]) -> list[str]:
    return [metric for metric in METRICS if _NEEDED.get(metric, set()) <= set(columns)]


def score_table(
    columns: Collection[str],
    scores: Mapping[str, Scores],
    exact: Mapping[str, Scores] | None = None,
) -> Iterator[str]:
    """Figures by treebank; in brackets, by how much they differ from those of ``exact``."""
    metrics = filled_metrics(columns)
    yield f"| treebank, split, input | {' | '.join(metrics)} |"
    yield "|---" * (len(metrics) + 1) + "|"
    for bank, splits in scores.items():
        for split, by_input in splits.items():
            for kind, figures in by_input.items():
                whole = {} if exact is None else exact[bank][split][kind]
                cells = []
                for metric in metrics:
                    figure = figures.get(metric)
                    cell = "-" if figure is None else f"{figure:.2f}"
                    if figure is not None and whole:
                        cell += f" ({figure - whole[metric]:+.2f})"
                    cells.append(cell)
                yield f"| {bank} {split}, {_INPUTS[kind]} | {' | '.join(cells)} |"


def _udpipe_readme(card: Mapping[str, Any]) -> Iterator[str]:
    filled = ", ".join(column.upper() for column in card["columns"])
    yield from (f"# {card['name']}", "")
    yield f"A UDPipe 1 model (tokenizer, tagger, parser) for `{card['language']}`. It fills the"
    yield f"CoNLL-U columns {filled}."
    missing = [name.upper() for name in ("lemma", "xpos", "feats") if name not in card["columns"]]
    if missing:
        yield f"It gives no {', '.join(missing)}."
    yield "Larger models (Stanza, UDPipe 2) are better by several points of LAS."
    yield from ("", *_licence(card), "## Scores", "", _F1, "")
    yield from score_table(card["columns"], {card["treebank"]: card["scores"]})
    yield from ("", "## Training", "", "```", card["command"], "```", "")
    yield f"Recipe `{card['recipe']['name']}`, UDPipe {card['backend_version']}, {card['date']}."
    yield f"Every option is in `{card['name']}.json`. Learned from the train split; the dev split"
    yield "chose the best iteration; the test split was used for the scores only."
    yield from ("", f"{card['size']:,} bytes, sha256 `{card['sha256']}`")


def own_readme(card: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {card['name']}", "")
    yield f"A parser of running text for {', '.join(card['languages'])}: sentences, words and the"
    yield f"columns {', '.join(column.upper() for column in card['columns'])}, from one encoder"
    yield f"({card['encoder']}, {card['layers']} layers) in 8-bit integers, run by ONNX Runtime."
    yield from ("", *_licence(card), "## Scores", "", _F1)
    yield from ("In brackets: the points that rounding to integers adds or takes.", "")
    yield from score_table(card["columns"], card["scores"], card["scores_exact"])
    yield from ("", "## Training", "", "```", card["command"], "```", "")
    yield f"{card['date']}. Learned from the train splits; the dev splits chose nothing; the test"
    yield "splits were used for the scores only."
    if count := card["sentences_left_out"]:
        yield f"{count:,} sentences have more pieces than the encoder reads, and were left out."
    yield from ("", f"{card['size']:,} bytes of programs.")


_F1: Final = "F1 in percent, by the metrics of the CoNLL 2018 shared task (Zeman et al. 2018)."


def _licence(card: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## Licence and attribution", "")
    yield f"Trained from {card['treebank']}, version {card['treebank_version']}, whose licence is"
    yield f"the model's: **{card['licence']}**. Whoever passes the model on must name the authors"
    yield "and, where the licence says so (SA), share it alike."
    if UNKNOWN in (card["licence"], card["attribution"]):
        yield "The command that made it was told no licence or authors: find out before sharing."
    yield from ("", f"Authors of the treebank: {card['attribution']}", "")
