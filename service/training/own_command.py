"""``parsebank models train own``: a parser of running text, run as the service runs it."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from service.training.command import record_trained
from syntax.extras import missing_extra
from syntax.parsing.folder import CARD, EXACT, FILES, PROGRAMS

if TYPE_CHECKING:
    from service.parsers.base import Parser
    from service.parsers.text.backend import TextParser
    from service.training.evaluation import Scores
    from syntax.trees.conllu.treebank import Treebank
    from syntax.trees.sentence import Sentence

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
    lang: Annotated[
        list[str] | None,
        typer.Option(
            help="ISO code of a language that it serves; may be repeated. Default: those of the "
            "treebanks."
        ),
    ] = None,
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
    precision: Annotated[
        Literal["fp32", "bf16"],
        typer.Option(help="bf16 is mixed; on processors with AMX it is faster."),
    ] = "fp32",
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
    from service.training.cards import score_table
    from syntax.trees.conllu.treebank import open_treebank

    banks = [open_treebank(one) for one in treebank]
    name = name or banks[0].name.removeprefix("UD_").lower()
    paths = [("treebank", one) for one in treebank]
    paths += [("encoder", Path(encoder)), *(("corpus", one) for one in corpus or ())]
    told = {
        "layers": str(layers or ""),
        "epochs": str(epochs),
        "precision": precision,
        "seed": str(seed),
        "treebank-version": treebank_version,
        "licence": licence,
        "attribution": attribution,
    }
    options = [part for key, value in told.items() if value for part in (f"--{key}", value)]
    options += [part for code in lang or () for part in ("--lang", code)]
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
    for line in score_table(card["columns"], card["scores"], card["scores_exact"]):
        typer.echo(line)
    if count := card["sentences_left_out"]:
        typer.echo(f"left out {count:,} sentences with more pieces than the encoder reads")


def call_command(ctx: typer.Context, name: str, *arguments: str, problem: str, extra: str) -> None:
    """Run a command of the same command line; ``problem`` and ``extra`` tell why it is missing."""
    commands: Any = getattr(ctx.find_root().command, "commands", {})
    if name not in commands:
        raise missing_extra(problem, extra)
    commands[name].main([*arguments], prog_name=f"parsebank {name}", standalone_mode=False)


def _add_exceptions(work: Path, banks: Sequence[Treebank]) -> None:
    from service.parsers.records import model_card

    typer.echo("looking for exceptions among lemmas")
    found = lemma_exceptions(_loaded(work), [one for bank in banks for one in bank.read("train")])
    for folder in (work, work / EXACT):
        card = model_card(folder / CARD)
        card["labels"]["exceptions"] = found
        _write_json(folder / CARD, card)


def lemma_exceptions(parser: Parser, sentences: Sequence[Sentence]) -> dict[str, dict[str, str]]:
    """Commonest lemma of each form, by UPOS, where the parser is right less often than it.

    Scripts of edits miss these; Stanza looks them up too (Qi et al. 2020, section 2.1).
    """
    from service.training.evaluation import parsed_words

    lemmas: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    right = Counter[tuple[str, str]]()
    for sentence, parse in zip(sentences, parsed_words(parser, sentences), strict=True):
        for word, lemma in zip(sentence.words, parse.lemma, strict=True):
            if word.lemma is not None and word.upos is not None:
                pair = word.form, word.upos
                lemmas[pair][word.lemma] += 1
                right[pair] += lemma == word.lemma
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for (form, upos), seen in sorted(lemmas.items()):
        lemma, times = min(seen.items(), key=lambda one: (-one[1], one[0]))
        if right[form, upos] < times:
            found[form][upos] = lemma
    return dict(found)


def _loaded(folder: Path) -> TextParser:
    from service.parsers.base import ParserIdentity
    from service.parsers.text.backend import load_text_parser
    from service.parsers.text.folder import model_in

    return load_text_parser(
        model_in(folder), ParserIdentity(f"parsebank/{folder.name}", (), {}), "cpu"
    )


def _scores(folder: Path, banks: Sequence[Treebank]) -> dict[str, Scores]:
    """Scores by treebank, of the columns that it has."""
    from service.training.cards import filled_metrics
    from service.training.evaluation import evaluate_parser
    from syntax.trees.conllu.treebank import filled_columns

    parser = _loaded(folder)
    scores: dict[str, Scores] = {}
    for bank in banks:
        for split in ("dev", "test"):
            typer.echo(f"scoring {folder.name} on {bank.name} {split}")
            gold = bank.read(split)
            metrics = filled_metrics(filled_columns(gold))
            scores.setdefault(bank.name, {})[split] = {
                kind: {metric: figures[metric] for metric in metrics}
                for kind, figures in evaluate_parser(parser, gold).items()
            }
    return scores


def _described(
    work: Path, name: str, scores: Mapping[str, Any], command: Sequence[str]
) -> dict[str, Any]:
    from service.parsers.records import model_card
    from service.training.cards import own_readme, today

    card = model_card(work / CARD)
    facts = {
        "name": name,
        "size": sum((work / program).stat().st_size for program in PROGRAMS),
        "command": f"parsebank models train own {shlex.join(command)}",
        "scores": scores["rounded"],
        "scores_exact": scores["exact"],
        "date": today(),
    }
    labels = card.pop("labels")  # long, and so the last
    card = {**card, **facts, "labels": labels}
    _write_json(work / CARD, card)
    (work / "README.md").write_text("\n".join(own_readme(card)) + "\n", encoding="utf-8")
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
