"""Staged uploads: complete and durable, or gone."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.jobs.staging import (
    StagedLine,
    StagedShardError,
    StagedShardMissingError,
    StagingArea,
    read_shard,
    shard_path,
)
from service.jobs.worker import InFlightLog
from syntax.fingerprint import fingerprint


def stage(
    area: StagingArea,
    job: str,
    bodies: list[str],
    shard_segments: int = 2,
    joined: Callable[[int], bool] = lambda _: False,
) -> Path:
    upload = area.begin(job, shard_segments)
    for number, body in enumerate(bodies):
        if upload.is_full(joined(number)):
            upload.write_shard()
        upload.add(number + 2, fingerprint(body), body, 1, joined(number))
    upload.finish()
    upload.close()
    return area.folder(job)


def read_all(folder: Path) -> list[StagedLine]:
    shards = len(list(folder.glob("shard-*.parquet")))
    return [line for number in range(shards) for line in read_shard(folder, number).lines()]


def test_shards_give_back_every_line_in_order(tmp_path: Path) -> None:
    bodies = [f'{{"n": {n}, "text": "é\\ud800"}}' for n in range(5)]
    folder = stage(StagingArea(tmp_path), "job", bodies)
    lines = read_all(folder)
    assert [line.body for line in lines] == bodies
    assert [line.position for line in lines] == list(range(5))
    assert [line.line for line in lines] == list(range(2, 7))
    assert [line.key for line in lines] == [fingerprint(body) for body in bodies]
    assert not any(line.is_repeat for line in lines)


def test_repeats_are_found_across_shards_but_not_the_first_of_them(tmp_path: Path) -> None:
    folder = stage(StagingArea(tmp_path), "job", ["a", "b", "a", "c", "b", "a"])
    lines = read_all(folder)
    assert [line.is_repeat for line in lines] == [False, False, True, False, True, True]


def sizes(folder: Path) -> list[int]:
    shards = len(list(folder.glob("shard-*.parquet")))
    return [len(read_shard(folder, number).lines()) for number in range(shards)]


def test_the_last_shard_is_shared_out_in_parts_that_grow_smaller(tmp_path: Path) -> None:
    area = StagingArea(tmp_path)
    folder = stage(area, "job", [str(n) for n in range(36)], shard_segments=16)
    assert sizes(folder) == [16, 7, 5, 3, 2, 2, 1]
    folder = stage(area, "full", [str(n) for n in range(16)], shard_segments=16)
    assert sizes(folder) == [6, 4, 2, 2, 2]


def test_lines_that_share_a_text_stay_together_while_memory_allows(tmp_path: Path) -> None:
    area = StagingArea(tmp_path)
    bodies = [str(n) for n in range(24)]
    folder = stage(area, "triples", bodies, shard_segments=4, joined=lambda n: n % 3 > 0)
    assert sizes(folder) == [6, 6, 6, 3, 3]
    folder = stage(area, "all", bodies, shard_segments=4, joined=lambda n: n > 0)
    assert sizes(folder) == [8, 8, 8]


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped"])
def test_a_damaged_shard_is_named(tmp_path: Path, damage: str) -> None:
    folder = stage(StagingArea(tmp_path), "job", ["a" * 500, "b" * 500, "c"])
    path = shard_path(folder, 0)
    content = path.read_bytes()
    third = len(content) // 3
    noise = bytes(byte ^ 0xFF for byte in content[third : 2 * third])
    path.write_bytes(
        {
            "empty": b"",
            "truncated": content[:-20],
            "flipped": content[:third] + noise + content[2 * third :],
        }[damage]
    )
    with pytest.raises(StagedShardError, match=r"shard-000000.parquet cannot be read"):
        read_shard(folder, 0).lines()


@pytest.mark.parametrize("name", ["shard-000000.parquet", "repeats.npy"])
def test_a_shard_that_is_not_seen_is_named(tmp_path: Path, name: str) -> None:
    folder = stage(StagingArea(tmp_path), "job", ["a", "b", "c"])
    (folder / name).unlink()
    with pytest.raises(StagedShardMissingError, match="replicas must share one state_dir"):
        read_shard(folder, 0)


def test_sweep_waits_for_an_upload_of_another_process(tmp_path: Path) -> None:
    area = StagingArea(tmp_path / "staging")
    code = (
        "import pathlib; from service.jobs.staging import StagingArea\n"
        f"area = StagingArea(pathlib.Path({str(area.root)!r}))\n"
        "with area.locked():\n"
        "    area.folder('new').mkdir(); print('begun', flush=True); input()\n"
        "    (area.folder('new') / 'kept').touch(); upload = area.folder('new') / 'uploading'\n"
        "    import fcntl; file = upload.open('wb'); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process, ThreadPoolExecutor() as threads:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        swept = threads.submit(area.sweep, set)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "locked\n"
        assert swept.result() == []
        assert (area.folder("new") / "kept").exists()
        process.stdin.write("\n")
    assert area.sweep(set) == ["new"]


def test_sweeping_spares_known_jobs_and_uploads_under_way(tmp_path: Path) -> None:
    area = StagingArea(tmp_path)
    for job in ("known", "orphan"):
        stage(area, job, ["a"])
    upload = area.begin("under-way", 10)
    assert StagingArea(tmp_path).sweep(lambda: {"known"}) == ["orphan"]
    upload.discard()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["known"]


def test_an_upload_whose_process_died_is_an_orphan(tmp_path: Path) -> None:
    code = (
        "import os, pathlib; from service.jobs.staging import StagingArea\n"
        f"upload = StagingArea(pathlib.Path({str(tmp_path)!r})).begin('torn', 1)\n"
        "upload.add(2, '0' * 32, 'x', 1); upload.write_shard(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert (tmp_path / "torn").is_dir()
    assert StagingArea(tmp_path).sweep(set) == ["torn"]


def trail(
    folder: Path, tries: int, *hands: list[str], ended: bool = False
) -> tuple[frozenset[str], frozenset[str]]:
    """Take texts in hand, and die: who is to blame by then, and who is in doubt."""
    with InFlightLog(folder, 0, tries) as in_flight:
        for keys in hands:
            in_flight.watch(*keys)
        if ended:
            in_flight.watch()
        return in_flight.fatal_keys, in_flight.isolated_keys


GOOD, BAD, OTHER = (fingerprint(name) for name in ("good", "bad", "other"))


def test_in_flight_log_blames_a_text_after_two_deaths(tmp_path: Path) -> None:
    assert trail(tmp_path, 1, [GOOD], [BAD]) == (set(), set())
    assert trail(tmp_path, 2, [GOOD], [BAD]) == (set(), {BAD})
    assert trail(tmp_path, 3, [GOOD]) == ({BAD}, {BAD})
    assert trail(tmp_path, 4) == ({BAD}, {BAD, GOOD})


@pytest.mark.slow
def test_in_flight_log_blames_a_text_after_one_death_in_long_computing(tmp_path: Path) -> None:
    """Not one on which the process only waited, nor the one after a text that took long."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from service.jobs import worker\n"
        "from service.jobs.worker import InFlightLog, StepTimer\n"
        "worker.SLOW_SHARE = 0.03\n"  # a busy machine may give no more
        "folder, tries, keys = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]\n"
        "with StepTimer(1.0) as timer, InFlightLog(folder, 0, tries) as log, "
        "timer.marking_slow(log):\n"
        "    for key in keys:\n"
        "        log.watch(key); timer.restart()\n"
        "        time.sleep(0.3 * (key != keys[-1]))\n"
        "    sum(range(10**12)) if sys.argv[3] == 'compute' else time.sleep(100)"
    )
    for tries, (how, *keys) in enumerate((("wait", OTHER), ("compute", GOOD, BAD)), 1):
        command = [sys.executable, "-c", code, str(tmp_path), str(tries), how, *keys]
        ended = subprocess.run(command, check=False, timeout=100)
        assert ended.returncode == -signal.SIGALRM
    with InFlightLog(tmp_path, 0, 3) as in_flight:
        assert in_flight.slow_keys == in_flight.fatal_keys == {BAD}
        assert in_flight.isolated_keys == {OTHER, BAD}


def test_in_flight_log_isolates_texts_that_were_in_flight_together(tmp_path: Path) -> None:
    assert trail(tmp_path, 1, [OTHER], [GOOD, BAD]) == (set(), set())
    assert trail(tmp_path, 2, [GOOD, BAD]) == (set(), {GOOD, BAD})
    assert trail(tmp_path, 3, [GOOD], [BAD]) == (set(), {GOOD, BAD})
    assert trail(tmp_path, 4, [GOOD], [BAD]) == (set(), {GOOD, BAD})
    assert trail(tmp_path, 5) == ({BAD}, {GOOD, BAD})


def test_in_flight_log_blames_no_text_for_different_deaths(tmp_path: Path) -> None:
    assert trail(tmp_path, 1, [GOOD, BAD], [GOOD])[0] == set()
    assert trail(tmp_path, 2, [BAD])[0] == set()
    assert trail(tmp_path, 3, [BAD], ended=True)[0] == set()
    assert trail(tmp_path, 4, ended=True)[0] == set()
    assert trail(tmp_path, 5)[0] == set()
