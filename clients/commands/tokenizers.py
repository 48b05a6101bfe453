"""``parsebank tokenizers``: train a tokenizer on a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clients.commands.backfill import DevShare, WholeFiles
from syntax.commands.tables import AsJson, print_table

if TYPE_CHECKING:
    from clients.benchmarks import Benchmark
    from syntax.examples import Segment

tokenizers = typer.Typer(help="Tokenizers of one's own.", no_args_is_help=True)


@tokenizers.callback()
def _group() -> None:
    """Tokenizers of one's own."""  # a single sub-command would be merged into its group


@tokenizers.command()
def train(
    benchmark: Annotated[
        str, typer.Argument(metavar="NAME", help="A reader of `parsebank benchmarks list`.")
    ],
    out: Annotated[Path, typer.Option(help="New folder for the tokenizer.")],
    split: Annotated[list[str], typer.Option(help="Splits, as train,dev; `all` for all found.")],
    lang: Annotated[
        list[str], typer.Option(help="Language codes, as en,fr; `all` for every one found.")
    ],
    path: Annotated[
        Path | None, typer.Option(help="Folder or file of the texts; `sample` needs none.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="As for `parsebank backfill`; else the usual one.")
    ] = None,
    kind: Annotated[
        Literal["wordpiece", "bpe", "words"],
        typer.Option(help="Pieces; `bpe` and `words` give the text back, as translation needs."),
    ] = "wordpiece",
    vocab_size: Annotated[
        int | None,
        typer.Option(
            help="Pieces, special tokens included; else 8,000 and one more for each 75 types "
            "beyond 15,000, and 40,000 of `bpe` and `words`."
        ),
    ] = None,
    special: Annotated[
        list[str] | None,
        typer.Option(help="Of `bpe` and `words`: further special tokens, as <python>,<en>."),
    ] = None,
    cased: Annotated[bool, typer.Option("--cased", help="Keep upper case.")] = False,
    strip_accents: Annotated[
        bool, typer.Option("--strip-accents", help="Remove combining marks.")
    ] = False,
    columns: Annotated[
        list[str] | None, typer.Option(help="Of `table`: text columns, as for `backfill`.")
    ] = None,
    whole_files: WholeFiles = False,
    dev_share: DevShare = None,
    as_json: AsJson = False,
) -> None:
    """Train a tokenizer on the texts of a corpus, and write its folder.

    WordPiece: NFD, lower case, accents kept, words and punctuation apart. The folder can be given
    to --tokenizer, and to Hugging Face's AutoTokenizer.
    """
    from clients.bpe import BpeOptions, train_bpe
    from clients.commands.parts import chosen_reader, wanted_parts
    from clients.wordpiece import WordPieceOptions, save_tokenizer, train_wordpiece
    from syntax.errors import SpecError
    from syntax.lists import listed

    if kind != "wordpiece" and (cased or strip_accents):
        raise SpecError(f"--cased and --strip-accents are of wordpiece; {kind} keeps the text")
    if kind == "wordpiece" and special:
        raise SpecError("--special is of bpe and words; leave it out, or choose one by --kind")
    if out.exists():
        raise SpecError(f"{out} exists already; name a new folder with --out")
    reader = chosen_reader(benchmark, listed(columns), whole_files=whole_files, dev_share=dev_share)
    parts = wanted_parts(reader, path, split, lang)
    rejected: Counter[str] = Counter()
    readings = 0

    def texts() -> Iterator[str]:
        nonlocal readings
        readings += 1
        rejected.clear()
        title = "counting words" if readings == 1 else "training"
        return _shown(_texts(reader, path, parts, mode, rejected), title)

    if kind == "wordpiece":
        options = WordPieceOptions(vocab_size, not cased, strip_accents)
        trained = train_wordpiece(texts, options)
    else:
        sizes = {} if vocab_size is None else {"vocab_size": vocab_size}
        trained = train_bpe(texts, BpeOptions(kind, **sizes, special=listed(special)))
    spec = reader.spec(*parts[0], path=path, mode=mode)
    source = {
        "reader": reader.name,
        "parts": [list(part) for part in parts],
        "mode": spec.mode,
        "source": spec.source,
        "licence": spec.licence,
        "rejected": dict(rejected),
    }
    save_tokenizer(trained, out, source)
    corpus = trained.corpus
    rows = [
        ("tokenizer", str(out)),
        ("fingerprint", trained.fingerprint),
        ("pieces", trained.tokenizer.get_vocab_size()),
        *((name, getattr(corpus, name)) for name in ("texts", "tokens", "types")),
        *((f"rejected: {reason}", count) for reason, count in sorted(rejected.items())),
    ]
    print_table(("what", "value"), rows, as_json)


def _texts(
    reader: Benchmark,
    path: Path | None,
    parts: list[tuple[str, str]],
    mode: str | None,
    rejected: Counter[str],
) -> Iterator[str]:
    from syntax.examples import Rejection

    for split, lang in parts:
        for item in reader.read(path, split, lang, mode):
            if isinstance(item, Rejection):
                rejected[item.reason] += 1
            else:
                yield from map(_text, item.segments)


def _text(segment: Segment) -> str:
    from syntax.trees.conllu import parse_conllu

    if segment.conllu is not None:
        sentences = parse_conllu(segment.conllu)
        return " ".join(token.form for sentence in sentences for token in sentence.tokens)
    return segment.text if segment.text is not None else " ".join(segment.tokens or ())


def _shown(texts: Iterator[str], title: str) -> Iterator[str]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    columns += [TextColumn("{task.completed:,} texts", markup=False), TimeElapsedColumn()]
    console = Console(stderr=True, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        for text in texts:
            yield text
            bar.advance(task)
