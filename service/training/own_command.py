"""``parsebank models train own``: a parser of running text, run as the service runs it."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from service.training.command import record_trained
from syntax.commands.call import call_command
from syntax.parsing.folder import CARD, EXACT, FILES, PROGRAMS

if TYPE_CHECKING:
    from service.parsers.text.backend import TextParser
    from service.training.evaluation import Scores
    from syntax.trees.conllu.treebank import Treebank

_TRAIN: Final = "train-parser"


def train_own(
    ctx: typer.Context,
    treebank: Annotated[
        list[Path],
        typer.Option(help="Folder with *-ud-{train,dev,test}.conllu; may be repeated."),
    ],
    encoder: Annotated[
        str, typer.Option(help="Folder of a BERT, RoBERTa or XLM-R encoder with its tokenizer.")
    ],
    out: Annotated[Path, typer.Option(help="Models folder for the model.")] = Path("models"),
    name: Annotated[
        str, typer.Option(help="Served as parsebank/NAME. Default: as the first treebank.")
    ] = "",
    lang: Annotated[str, typer.Option(help="ISO code. Default: of the first treebank.")] = "",
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Text whose pieces stay in the vocabulary, too; may be repeated."),
    ] = None,
    whole_vocabulary: Annotated[
        bool, typer.Option("--whole-vocabulary", help="Keep all pieces of the encoder.")
    ] = False,
    layers: Annotated[
        int | None, typer.Option(min=1, help="Keep only the first layers of the encoder.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the treebanks.")] = 15,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 1,
    treebank_version: Annotated[str, typer.Option(help="Release or commit.")] = "",
    licence: Annotated[str, typer.Option(help="Licence. Default: from the READMEs.")] = "",
    attribution: Annotated[str, typer.Option(help="Authors. Default: from the READMEs.")] = "",
) -> None:
    """Train a parser of running text: sentences, words, lemmas, tags and trees from one encoder.

    It is scored on dev and test, rounded and not, and served at once. An interrupted training goes
    on after its last pass when the same command is given again.
    """
    from service.parsers.text.folder import model_in
    from syntax.trees.conllu.treebank import open_treebank

    banks = [open_treebank(one) for one in treebank]
    name = name or banks[0].name.removeprefix("UD_").lower()
    paths = [("treebank", one) for one in treebank]
    paths += [("encoder", Path(encoder)), *(("corpus", one) for one in corpus or ())]
    told = {
        "lang": lang,
        "layers": str(layers or ""),
        "epochs": str(epochs),
        "seed": str(seed),
        "treebank-version": treebank_version,
        "licence": licence,
        "attribution": attribution,
    }
    options = [part for key, value in told.items() if value for part in (f"--{key}", value)]
    options += ["--whole-vocabulary"] if whole_vocabulary else []
    work = out / f"{name}.work"
    given = [part for key, path in paths for part in (f"--{key}", str(path))]
    call_command(
        ctx,
        *(_TRAIN, str(work), *given, *options),
        problem="a parser is trained with torch",
        extra="train",
    )
    _add_exceptions(work, banks)
    scores = {"rounded": _scores(work, banks), "exact": _scores(work / EXACT, banks)}
    shown = [part for key, path in paths for part in (f"--{key}", path.name)]
    card = _described(work, name, scores, [*shown, "--name", name, *options])
    record_trained(model_in(_installed(work, out, name)), card)
    for line in _score_rows(card):
        typer.echo(line)
    if count := card["sentences_left_out"]:
        typer.echo(f"left out {count:,} sentences with more pieces than the encoder reads")


def _add_exceptions(work: Path, banks: Sequence[Treebank]) -> None:
    from service.parsers.records import model_card
    from service.training.lemmas import lemma_exceptions

    typer.echo("looking for exceptions among lemmas")
    found = lemma_exceptions(_loaded(work), [one for bank in banks for one in bank.read("train")])
    for folder in (work, work / EXACT):
        card = model_card(folder / CARD)
        card["labels"]["exceptions"] = found
        _write_json(folder / CARD, card)


def _loaded(folder: Path) -> TextParser:
    from service.parsers.base import ParserIdentity
    from service.parsers.text.backend import load_text_parser
    from service.parsers.text.folder import model_in

    return load_text_parser(
        model_in(folder), ParserIdentity(f"parsebank/{folder.name}", (), {}), "cpu"
    )


def _scores(folder: Path, banks: Sequence[Treebank]) -> dict[str, Scores]:
    from service.training.evaluation import evaluate_parser

    parser = _loaded(folder)
    scores: dict[str, Scores] = {}
    for bank in banks:
        for split in ("dev", "test"):
            typer.echo(f"scoring {folder.name} on {bank.name} {split}")
            found = evaluate_parser(parser, bank.read(split))
            scores.setdefault(bank.name, {})[split] = found
    return scores


def _described(
    work: Path, name: str, scores: Mapping[str, Any], command: Sequence[str]
) -> dict[str, Any]:
    from service.parsers.records import model_card

    card = model_card(work / CARD)
    facts = {
        "name": name,
        "size": sum((work / program).stat().st_size for program in PROGRAMS),
        "command": f"parsebank models train own {shlex.join(command)}",
        "scores": scores["rounded"],
        "scores_exact": scores["exact"],
        "date": datetime.now(UTC).date().isoformat(),
    }
    labels = card.pop("labels")  # long, and so the last
    card = {**card, **facts, "labels": labels}
    _write_json(work / CARD, card)
    (work / "README.md").write_text("\n".join(_markdown(card)) + "\n", encoding="utf-8")
    return card


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def _installed(work: Path, out: Path, name: str) -> Path:
    """Install a model; an earlier one of this name serves until then."""
    from service.parsers.text.folder import FAMILY

    target = out / FAMILY / name
    draft = target.with_name(f".{name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for file in (*FILES, "README.md"):
        shutil.copyfile(work / file, draft / file)
    shutil.rmtree(target, ignore_errors=True)
    return draft.rename(target)


def _score_rows(card: Mapping[str, Any]) -> Iterator[str]:
    from service.training.cards import filled_metrics
    from syntax.trees.scoring import METRICS

    metrics = filled_metrics(METRICS, card["columns"])
    yield f"| treebank, split, input | {' | '.join(metrics)} |"
    yield "|---" * (len(metrics) + 1) + "|"
    for bank, splits in card["scores"].items():
        for split, by_input in splits.items():
            for kind, figures in by_input.items():
                whole = card["scores_exact"][bank][split][kind]
                cells = (
                    f"{figures[one]:.2f} ({figures[one] - whole[one]:+.2f})" for one in metrics
                )
                yield f"| {bank} {split}, {_INPUTS[kind]} | {' | '.join(cells)} |"


_INPUTS: Final = {"raw": "raw text", "gold_tokens": "gold words"}


def _markdown(card: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {card['name']}", "")
    yield f"A parser of running text for `{card['language']}`: sentences, words and the columns"
    yield f"{', '.join(column.upper() for column in card['columns'])}, from one encoder"
    yield f"({card['encoder']}, {card['layers']} layers) in 8-bit integers, run by ONNX Runtime."
    yield from ("", "## Licence and attribution", "")
    yield f"Trained from {card['treebank']}, version {card['treebank_version']}, whose licence is"
    yield f"the model's: **{card['licence']}**. Whoever passes the model on must name the authors"
    yield "and, where the licence says so (SA), share it alike."
    yield from ("", f"Authors of the treebank: {card['attribution']}", "", "## Scores", "")
    yield "F1 in percent, as the CoNLL 2018 shared task defines the metrics (Zeman et al. 2018); in"
    yield "brackets, the points that rounding to integers adds or takes."
    yield from ("", *_score_rows(card), "", "## Training", "")
    yield from ("```", card["command"], "```", "")
    yield f"{card['date']}. Learned from the train splits; the dev splits chose nothing; the test"
    yield "splits were used for the scores only."
    if count := card["sentences_left_out"]:
        yield f"{count:,} sentences have more pieces than the encoder reads, and were left out."
    yield from ("", f"{card['size']:,} bytes of programs.")
