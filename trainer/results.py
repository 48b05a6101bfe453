"""Result of a run on disk, for programs (``result.json``) and for people (``result.md``).

``parsebank train RUN/result.json`` repeats the run. Nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from syntax.errors import SpecError
from syntax.files import write_whole
from syntax.strict_json import parse_json, strict_json
from trainer.options import Recipe
from trainer.options.settings import recipe_from_json
from trainer.resume import settled

RESULT: Final = "result.json"
_CLASS_METRICS = ("precision", "recall", "f1")


def write_result(result: dict[str, Any], output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    write_json(output / RESULT, result)
    (output / "result.md").write_text(markdown(result), "utf-8")


def read_result(path: Path) -> dict[str, Any]:
    file = path / RESULT if path.is_dir() else path
    content = read_json(file, f"{path} holds no {RESULT}; is it the output of a finished run?")
    if "recipe" not in content:
        raise SpecError(f"{file} has no recipe; expected the {RESULT} of a run")
    return content


def write_json(path: Path, content: object) -> None:
    """Write strict JSON: NaN and infinity are ``null``; a crash leaves the earlier file whole."""
    write_whole(path, f"{strict_json(content)}\n".encode())


def read_json(path: Path, absent: str) -> dict[str, Any]:
    """A JSON object from a file; ``absent`` is the message if there is no such file."""
    try:
        content = parse_json(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise SpecError(absent) from error
    except ValueError as error:
        raise SpecError(
            f"{path} is not JSON ({error}); run the command that wrote it again"
        ) from error
    if not isinstance(content, dict):
        raise SpecError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


def recipe_of(path: Path) -> Recipe:
    result = read_result(path)
    recipe = recipe_from_json(result["recipe"])
    # A name may come to mean several tokenizers, once the store holds more of them.
    found = result.get("tokenizer", {}).get("fingerprint", recipe.data.tokenizer)
    return replace(recipe, data=replace(recipe.data, tokenizer=found))


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that is done: its output folder, and the content of its ``result.json``."""

    folder: Path
    result: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path | str) -> FinishedRun:
        return cls(Path(folder), read_result(Path(folder)))

    @property
    def recipe(self) -> Recipe:
        return recipe_of(self.folder)

    @property
    def metric(self) -> str:
        return str(self.result["metric"])

    @property
    def score(self) -> float | None:
        """The best headline score on dev; None where it is not a number."""
        value = self.result[self.metric]
        return None if value is None or math.isnan(value) else float(value)


def is_result_of(path: Path, recipe: Recipe) -> bool:
    """True if a finished run was of this recipe, with the tokenizer and version that it found."""
    done = recipe_from_json(read_result(path)["recipe"])
    return done == settled(recipe, done)


def part_name(run: Path, dataset: str, split: str) -> str:
    """Stem of the files of an evaluation: the split, after the name of another dataset."""
    return split if recipe_of(run).data.dataset == dataset else f"{dataset}-{split}"


def markdown(result: dict[str, Any]) -> str:
    dataset, training = result["dataset"], result["recipe"]["training"]
    rows = {
        "dataset": f"{dataset['name']}, version {dataset['version']}",
        "train / dev": f"{_shown(dataset['train'])} / {_shown(dataset['dev'])}",
        "tokenizer": _named(result["tokenizer"]["name"], result["tokenizer"]["fingerprint"]),
        "parsers": ", ".join(_named(name, found) for found, name in result["parsers"].items()),
        "steps": f"{result['steps']} of {_size_of_a_step(result)}",
        "seed": training["seed"],
        "examples a second": f"{result['examples_per_second']:.0f}",
        "time waiting for data": f"{result['data_share']:.1%}",
        "training loss": f"{result['loss_start']:.4f} → {result['loss_end']:.4f}",
        f"dev {result['metric']}": f"{result[result['metric']]:.4f} at step {result['best_step']}",
        "dev loss": f"{result['scores']['loss']:.4f}",
    }
    # Not every task has a baseline.
    if baseline := result.get("baseline"):
        rows[f"baseline ({baseline['name']})"] = f"{baseline['score']:.4f}"
    parts = [f"# {result['recipe']['name']}\n", table(("", ""), list(rows.items()))]
    if further := _further_scores(result):
        parts += ["\n## Further scores on dev\n", table(("", ""), further)]
    if groups := result["scores"].get("per_group"):
        parts += ["\n## Groups\n", table(("group", "examples", "accuracy"), group_rows(groups))]
    if "per_class" in result["scores"]:
        parts += ["\n## Classes\n", _classes(result["scores"])]
    if "confusion" in result["scores"]:
        names, counts = list(result["scores"]["per_class"]), result["scores"]["confusion"]
        rows_of = [(name, *row) for name, row in zip(names, counts, strict=True)]
        parts += ["\n## Confusion (rows gold, columns predicted)\n", table(("", *names), rows_of)]
    return "\n".join(parts) + "\n"


def _size_of_a_step(result: dict[str, Any]) -> str:
    training, processes = result["recipe"]["training"], result["environment"]["processes"]
    batches = training["accumulation"] * processes
    if tokens := training.get("batch_tokens"):
        return f"at most {tokens * batches} tokens a side"
    return f"{training['batch_size'] * batches} examples"


def _further_scores(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, f"{value:.4f}" if isinstance(value, float) else str(value))
        for name, value in result["scores"].items()
        if isinstance(value, int | float) and name not in ("loss", result["metric"])
    ]


def _shown(part: dict[str, Any]) -> str:
    langs = part["languages"]
    each = (f"{lang} {count}" if len(langs) > 1 else lang for lang, count in langs.items())
    return f"{part['examples']} ({part['split']}, {', '.join(each)})"


def _named(name: str, fingerprint: str) -> str:
    return f"{name} (`{fingerprint[:12]}`)"


def _classes(scores: dict[str, Any]) -> str:
    rows = [
        (name, *(f"{of_class[key]:.4f}" for key in _CLASS_METRICS), of_class["support"])
        for name, of_class in scores["per_class"].items()
    ]
    return table(("class", "precision", "recall", "F1", "examples"), rows)


def group_rows(groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    return [(name, str(one["examples"]), f"{one['accuracy']:.4f}") for name, one in groups.items()]


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
