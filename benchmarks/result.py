"""Dated results of benchmarks."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).parent / "results"


def write_result(
    name: str, content: Mapping[str, Any], *, libraries: Iterable[str] = (), **machine: Any
) -> None:
    """Write ``results/NAME-DATE.json``: date, machine, versions of libraries, and the content.

    ``libraries`` that are not installed are left out; ``machine`` adds to what is known of it, such
    as threads.
    """
    now = datetime.now(UTC)
    whole = {
        "date": now.isoformat(timespec="seconds"),
        "machine": {"cpu": processor(), "cores": os.cpu_count(), **machine},
        "versions": {"python": platform.python_version(), **dict(_versions(libraries))},
        **content,
    }
    path = RESULTS / f"{name}-{now.date()}.json"
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}")


def processor() -> str:
    """Model and instructions for integers of the processor, as far as Linux tells them."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    told = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = told.get("flags", "").split()
    known = [flag for flag in ("avx2", "avx512_vnni", "avx_vnni") if flag in flags]
    return " ".join([told.get("model name", platform.machine()), *known])


def four_digits(content: Any) -> Any:
    """The content with numbers of four significant digits."""
    return json.loads(json.dumps(content), parse_float=lambda text: float(f"{float(text):.4g}"))


def _versions(libraries: Iterable[str]) -> Iterator[tuple[str, str]]:
    for library in libraries:
        try:
            yield library, version(library)
        except PackageNotFoundError:
            continue
