"""How hypothesis runs, and fixtures that every package's tests share."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.once import made_once

# xdist runs a process on each core: several threads of torch in each would wait for each other, and
# losses are compared bit by bit.
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

# What collecting the tests makes stays; looking through it for garbage would take a third of it.
gc.disable()

# No time limits, which a busy machine or a first compilation breaks; other examples in every run.
settings.register_profile(
    "parsebank", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("parsebank")

# A shell starts `make test &` with interrupts ignored, also in every child; some tests send them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All cases but the first of a test marked ``slow_cases`` are slow."""
    seen = set()
    for item in items:
        if item.get_closest_marker("slow_cases"):
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker("slow")
            seen.add(test)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: tests of services, kills and leases wait for a sixth of the time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real treebanks, models, tokenizers and benchmarks (``PARSEBANK_DATA``)."""
    folder = os.environ.get("PARSEBANK_DATA")
    if not folder:
        pytest.skip("needs real data: set PARSEBANK_DATA to the folder that docs/data.md describes")
    path = Path(folder)
    if not (path / "treebanks").is_dir():
        pytest.fail(f"PARSEBANK_DATA={folder} has no treebanks/ in it")
    return path


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a test run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if own.name.startswith("popen-") else own  # that of a process of xdist


@pytest.fixture(scope="session")
def parser_run(common: Path) -> Path:
    """Output of a run that trained a tiny parser."""
    from tests.word_parser import train_parser

    return made_once(common / "own" / "run", lambda: train_parser(common / "own"))


@pytest.fixture(scope="session")
def exported_parser(parser_run: Path) -> Path:
    """That parser, exported."""
    from tests.word_parser import run_command

    folder = parser_run.with_name("exported")
    return made_once(folder, lambda: run_command("export-parser", parser_run, folder))


@pytest.fixture(scope="session")
def own_models(exported_parser: Path) -> Path:
    """A models folder with that parser as ``parsebank/tiny``."""
    from tests.word_parser import run_command

    folder = exported_parser.with_name("models")
    added = ("models", "add", "tiny", "--from", exported_parser, "--models-dir", folder)
    return made_once(folder, lambda: run_command(*added))
