"""A training run in a process of its own, which may be killed: every step notes what it read.

python -m tests.trainer.recorded STORE OUTPUT RECIPE.json ATTEMPT [--resume]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from featurestore import open_store
from syntax import fingerprint
from tests.forked import installed
from tests.trainer.sampled import RareOptions
from trainer import loop
from trainer.batch import SyntaxBatch
from trainer.loop import Run, train
from trainer.objectives import OBJECTIVES, ObjectiveEntry
from trainer.options.settings import recipe_from_json

DONE = "done.json"
TWO = ("torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m")


def without_gpu() -> dict[str, str]:
    """The variables of a process on a machine without a GPU, as a user there starts it."""
    kept = {name: value for name, value in os.environ.items() if name != "ACCELERATE_USE_CPU"}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


def launched(*arguments: str, processes: int = 1, **options: Any) -> subprocess.Popen[Any]:
    """``python -m`` with these arguments, or as many processes of them that train together."""
    program = str(installed() / "python")
    launch = TWO if processes == 2 else ()
    return subprocess.Popen(
        [program, "-m", *launch, *arguments],
        env={**without_gpu(), "PYTHON_EXEC": program},
        **options,
    )


class RecordedRun(Run):
    """A run that notes the examples of each step before it goes on."""

    attempt = 1

    def step(self, batches: Sequence[SyntaxBatch]) -> None:
        """One step, and the note of it: on disk, whatever happens to the process next."""
        super().step(batches)
        rank = self.accelerator.process_index
        note = {
            "step": self.progress.step,
            "pid": os.getpid(),
            "streams": sorted({batch.stream for batch in batches}),
            "examples": [name for batch in batches for name in batch.example_ids],
        }
        with Path(self.output, f"read-{self.attempt}-{rank}.jsonl").open("a") as file:
            file.write(json.dumps(note) + "\n")


def notes(output: Path, attempt: int, rank: int = 0) -> list[dict[str, Any]]:
    """What one process has noted so far; a line that is being written is left out."""
    file = output / f"read-{attempt}-{rank}.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def examples_of_steps(output: Path) -> dict[int, list[str]]:
    """What each step of the run read, over all processes; of a step done again, the last time."""
    found: dict[int, list[str]] = {}
    for attempt in (1, 2):
        steps: dict[int, list[str]] = {}
        for rank in (0, 1):
            for note in notes(output, attempt, rank):
                steps[note["step"]] = steps.get(note["step"], []) + note["examples"]
        found.update(steps)
    return found


def outcome(output: Path) -> dict[str, Any]:
    """Losses and scores of a run that came to its end."""
    found: dict[str, Any] = json.loads((output / DONE).read_text())
    return found


def main() -> None:
    """Train, and leave the losses and scores in ``done.json``, and a digest of the weights."""
    OBJECTIVES.add("rare.v1", ObjectiveEntry(RareOptions, "tests.trainer.sampled:Rare"))
    uri, output, recipe, attempt, *resume = sys.argv[1:]
    RecordedRun.attempt = int(attempt)
    loop.Run = RecordedRun  # type: ignore[misc]
    Path(output).mkdir(parents=True, exist_ok=True)
    chosen = recipe_from_json(json.loads(Path(recipe).read_text()))
    with open_store(uri) as store:
        run = train(chosen, store, Path(output), resume=bool(resume))
    weights = run.accelerator.unwrap_model(run.model).parameters()
    digest = fingerprint([weight.tolist() for weight in weights])
    Path(output, f"weights-{run.accelerator.process_index}").write_text(digest)
    if run.accelerator.is_main_process:
        scores = [evaluation.scores for evaluation in run.progress.evaluations]
        content = {"losses": run.progress.losses, "scores": scores}
        Path(output, DONE).write_text(json.dumps(content))


if __name__ == "__main__":
    main()
