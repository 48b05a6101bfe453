"""Which engines there are, and which processes of this machine each needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from service.settings import Settings
from syntax.errors import SpecError
from syntax.extras import missing_extra


@dataclass(frozen=True, slots=True)
class JobEngine:
    """Where shards are run, as the manager of jobs sees it.

    Attributes:
        module: Program of a process that claims shards, as `service.jobs.processes` starts it.
        processes: How many of them run at most.
        check: Raises when the settings do not do for this engine.
    """

    module: str
    processes: Callable[[Settings], int]
    check: Callable[[Settings], None] = lambda _: None


def engine_of(settings: Settings) -> JobEngine:
    """The engine that the settings name.

    Raises:
        SpecError: It needs another setting.
        MissingExtraError: It needs a package that is not installed.
    """
    engine = ENGINES[settings.engine]
    engine.check(settings)
    return engine


def _check_dask(settings: Settings) -> None:
    if not settings.dask_scheduler:
        raise SpecError(
            "the engine `dask` needs the address of a running scheduler: set dask_scheduler "
            "(PARSEBANK_DASK_SCHEDULER, --scheduler), as tcp://host:8786"
        )
    if find_spec("distributed") is None:
        raise missing_extra(
            "the engine `dask` needs the package distributed, here and on every worker", "dask"
        )


ENGINES: Final[Mapping[str, JobEngine]] = {
    "local": JobEngine("service.jobs.worker", lambda settings: settings.job_workers),
    # One coordinator, however many workers the cluster has.
    "dask": JobEngine(
        "service.jobs.dask.coordinator",
        lambda settings: min(1, settings.job_workers),
        _check_dask,
    ),
}
