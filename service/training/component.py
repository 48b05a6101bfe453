"""Train one component of a UDPipe model in a process of its own.

UDPipe holds the interpreter's lock while it trains, and reports progress only by writing to the
C++ standard error. The process reads a job as JSON from its standard input; the parent reads the
reports from a pipe:

    python -m service.training.component < job.json
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import ufal.udpipe

from service.processes import python_command, python_environment
from syntax import Sentence
from syntax.errors import ModelLoadError, WorkError
from syntax.files import write_whole
from syntax.strict_json import parse_json
from syntax.trees.conllu import format_conllu, parse_conllu

Kind = Literal["tokenizer", "tagger", "parser"]
KINDS: tuple[Kind, ...] = ("tokenizer", "tagger", "parser")
METHOD = "morphodita_parsito"

_SKIP = "none"
_ROUND = re.compile(r"(?:Iteration|Epoch) (\d+)\b")


class TrainingError(WorkError):
    """UDPipe could not train a component; the message has its last report."""


@dataclass(frozen=True)
class ComponentJob:
    """One component to train, or three to combine.

    Attributes:
        options: Options by component, as UDPipe reads them; a component without is left out.
        train, heldout: CoNLL-U files to learn from, and to choose the best iteration by.
        output: File to write: a UDPipe model with these components.
    """

    name: str
    options: dict[Kind, str]
    train: str
    heldout: str
    output: str


def run_component(job: ComponentJob, on_round: Callable[[int, str], None]) -> None:
    """Train in a new process and pass on each report as (rounds done, UDPipe's own line)."""
    process = subprocess.Popen(
        python_command(__name__),
        env=python_environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    with process:
        try:
            last = _follow(process, job, on_round)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise TrainingError(
            f"training the {job.name} ended with status {process.returncode}: {' / '.join(last)}; "
            "check the treebank and the recipe's options",
            component=job.name,
        )


def train_component(job: ComponentJob) -> None:
    """Train in this process, which cannot react until it is done."""
    train, heldout = read_sentences(Path(job.train)), read_sentences(Path(job.heldout))
    options = [job.options.get(kind, _SKIP) for kind in KINDS]
    error = ufal.udpipe.ProcessingError()
    model = ufal.udpipe.Trainer.train(METHOD, train, heldout, *options, error)
    if error.occurred() or not model:
        raise TrainingError(f"UDPipe cannot train: {error.message}")
    write_whole(Path(job.output), bytes(model))


def combine_components(paths: dict[Kind, Path], sample: Path, output: Path) -> None:
    """Combine components in a training, UDPipe's only way; it learns nothing from the *sample*."""
    options = {kind: f"from_model=file:{path}" for kind, path in paths.items()}
    job = ComponentJob("model", options, str(sample), str(sample), str(output))
    run_component(job, lambda _done, _line: None)


def load_model(path: Path) -> Any:
    model = ufal.udpipe.Model.load(str(path))
    if model is None:
        raise ModelLoadError(f"{path} is missing or is no UDPipe 1 model", path=str(path))
    return model


def tag_sentences(model: Any, sentences: Iterable[Sentence]) -> list[Sentence]:
    """Replace the tags of sentences by a UDPipe model's; heads and relations stay."""
    default = ufal.udpipe.Pipeline.DEFAULT
    error = ufal.udpipe.ProcessingError()
    pipeline = ufal.udpipe.Pipeline(model, "conllu", default, ufal.udpipe.Pipeline.NONE, "conllu")
    output = pipeline.process(format_conllu(sentences), error)
    if error.occurred():
        raise TrainingError(f"UDPipe cannot analyse the treebank: {error.message}")
    return list(parse_conllu(output))


def read_sentences(path: Path) -> Any:
    reader = ufal.udpipe.InputFormat.newConlluInputFormat()
    reader.setText(path.read_text(encoding="utf-8"))
    error, sentences = ufal.udpipe.ProcessingError(), ufal.udpipe.Sentences()
    sentence = ufal.udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        sentences.append(sentence)
        sentence = ufal.udpipe.Sentence()
    if error.occurred():
        raise TrainingError(f"UDPipe cannot read the CoNLL-U: {error.message}")
    return sentences


def _follow(
    process: subprocess.Popen[str], job: ComponentJob, on_round: Callable[[int, str], None]
) -> deque[str]:
    if process.stdin is None or process.stderr is None:
        raise AssertionError("the component's process has no pipes")
    with process.stdin as stdin:
        json.dump(asdict(job), stdin)
    last: deque[str] = deque(maxlen=5)
    for line in process.stderr:
        last.append(line.strip())
        if found := _ROUND.match(line):
            on_round(int(found[1]), line.strip())
    return last


def main() -> int:
    # Python's own handler would wait until UDPipe returns, minutes later.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    job = ComponentJob(**parse_json(sys.stdin.read()))
    try:
        train_component(job)
    except TrainingError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
