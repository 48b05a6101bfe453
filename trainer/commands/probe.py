"""``parsebank probe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from syntax.errors import SpecError
from trainer.commands.shared import ParserOption, one_language, quiet_transformers
from trainer.environment import require_training

TESTS = ("task", "layer A", "layer B", "n", "A - B", "95 %", "p boot", "p perm", "p t")
COLUMNS = ("task", "layer", "score", "95 %", "± (seeds)", "linear", "control", "selectivity")


def probe(
    encoder: Annotated[
        str, typer.Argument(help="Folder of a run or of an encoder, or a name on the model hub.")
    ],
    dataset: Annotated[str, typer.Option(help="Dataset whose examples are probed.")],
    task: Annotated[
        list[str],
        typer.Option(
            help="What to probe, as upos,deprel: distance, depth (structural probes), upos, "
            "deprel, arc (words and pairs), or a class label of the dataset."
        ),
    ],
    store: Where = DEFAULT_STORE,
    layers: Annotated[
        str, typer.Option(help="Layers, as 0,3,6: 0 is the embeddings. `all` for all of them.")
    ] = "all",
    seeds: Annotated[int, typer.Option(help="Probes of each layer.", min=1)] = 3,
    pool: Annotated[
        Literal["cls", "mean", "max"], typer.Option(help="Vector of a text, for labels.")
    ] = "mean",
    lang: Annotated[str, typer.Option(help="Language of the examples.")] = "en",
    splits: Annotated[
        str, typer.Option(help="Splits to train on, to choose on, and to score on.")
    ] = "train,dev,test",
    examples: Annotated[
        int | None, typer.Option(help="Most examples of each split. Default: all.", min=2)
    ] = None,
    train_items: Annotated[
        int, typer.Option(help="Most words or texts that a classifier is trained on.", min=2)
    ] = 20_000,
    hidden: Annotated[
        str, typer.Option(help="Sizes of the hidden layer, chosen on dev; 0: none.")
    ] = "50,100,200",
    dropout: Annotated[str, typer.Option(help="Dropout, chosen on dev.")] = "0,0.1,0.2",
    l2: Annotated[
        str,
        typer.Option(help="L2 of the classifier, chosen on dev; SentEval: 1e-5,1e-4,1e-3,1e-2."),
    ] = "0",
    activation: Annotated[
        Literal["sigmoid", "relu"], typer.Option(help="Of the hidden layer.")
    ] = "sigmoid",
    rank: Annotated[int, typer.Option(help="Rank of structural probes.", min=1)] = 128,
    control: Annotated[
        bool, typer.Option(help="Train probes of words on a control task, too.")
    ] = True,
    mask: Annotated[
        bool, typer.Option("--mask", help="Also probe what SG-Net's mask alone says.")
    ] = False,
    tokenizer: Annotated[
        str | None, typer.Option(help="Tokenizer, if the dataset is stored with several.")
    ] = None,
    parser: ParserOption = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads. Default: torch's choice.", min=1)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write every number to this file (.json), task by task; repeated, the command "
            "goes on with the tasks that it lacks."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Also test the best layer of each task against that of another encoder: the "
            "--output of its probes."
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the curves to this file (.svg, .png, .pdf).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Probe the layers of an encoder: a curve of each task, with intervals and baselines."""
    require_training()
    from syntax.lists import listed
    from trainer.evaluation.pictures import check_picture, draw_curves
    from trainer.probing.against import compare_probes, read_curves
    from trainer.probing.options import (
        ClassifierOptions,
        ProbedData,
        ProbeOptions,
        StructureOptions,
        check_tasks,
    )
    from trainer.results import RESULT, recipe_of

    if picture is not None:
        check_picture(picture)
    other = None if against is None else read_curves(against, listed(task))
    options = ProbeOptions(
        layers=() if layers == "all" else _numbers(int, "layers", layers),
        pool=pool,
        seeds=tuple(range(seeds)),
        train_items=train_items,
        control=control,
        mask=mask,
        classifier=ClassifierOptions(
            hidden=_numbers(int, "hidden", hidden),
            dropout=_numbers(float, "dropout", dropout),
            l2=_numbers(float, "l2", l2),
            activation=activation,
        ),
        structure=StructureOptions(rank=rank),
    )
    named = listed(splits)
    if len(named) != 3:
        raise SpecError(f"`splits={splits}` names {len(named)} splits; expected three")
    read = ",".join(parser) if parser else None
    first, second, third = named
    data = ProbedData(
        dataset, one_language(lang), tokenizer, read, (first, second, third), examples
    )
    with open_there(store) as opened:
        is_run = (Path(encoder) / RESULT).exists()
        read_by = tokenizer or (recipe_of(Path(encoder)).data.tokenizer if is_run else None)
        for name in named:
            check_tasks(listed(task), data.open(opened, name, read_by))
        from trainer.probing.run import probe as probed

        quiet_transformers()
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        content = probed(encoder, opened, data, listed(task), options, output)
    if other is not None:
        content["against"] = compare_probes(content, other, listed(task))
    if picture is not None:
        draw_curves(content["tasks"], encoder, picture)
    if as_json:
        print_json(content)
        return
    print_table(
        COLUMNS, [row for name, one in content["tasks"].items() for row in _rows(name, one)]
    )
    if other is not None:
        rows = [_tested(name, one) for name, one in content["against"].items()]
        print_table(TESTS, rows, title=f"A: {encoder}; B: {other['encoder']}")
    for name, one in content["tasks"].items():
        typer.echo(_notes(name, one), err=True)


def _numbers(kind: Any, name: str, given: str) -> tuple[Any, ...]:
    from syntax.lists import listed

    try:
        return tuple(map(kind, listed(given)))
    except ValueError:
        raise SpecError(f"`{name}={given}` is not a list of numbers, such as 0,1") from None


def _rows(name: str, curve: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            name,
            str(one["layer"]),
            _percent(one["score"]),
            f"{_percent(one['low'])} to {_percent(one['high'])}",
            *(_percent(one.get(key)) for key in ("deviation", "linear", "control", "selectivity")),
        )
        for one in curve["layers"]
    ]


def _tested(name: str, one: dict[str, Any]) -> tuple[object, ...]:
    return (
        name,
        *map(str, one["layers"]),
        one["examples"],
        _percent(one["difference"]),
        f"{_percent(one['low'])} to {_percent(one['high'])}",
        *(f"{one[test]:.3g}" for test in ("bootstrap", "permutation", "t_test")),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _notes(name: str, curve: dict[str, Any]) -> str:
    baselines = ", ".join(f"{of} {_percent(share)}" for of, share in curve["baselines"].items())
    items = ", ".join(f"{split} {count}" for split, count in curve["items"].items())
    unlabelled = sum(curve.get("unlabelled", {}).values())
    more = f"; {unlabelled} texts without the label" if unlabelled else ""
    return f"{name}: {curve['metric']}, %. Baseline: {baselines}. Asked: {items}{more}"
