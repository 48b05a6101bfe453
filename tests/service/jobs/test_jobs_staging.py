"""Staged uploads: complete and durable, or gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service.jobs.crumbs import Crumbs
from service.jobs.staging import (
    StagedLine,
    StagedShardError,
    StagingArea,
    read_shard,
    shard_path,
)
from syntax.fingerprint import fingerprint


def stage(area: StagingArea, job: str, bodies: list[str], shard_segments: int = 2) -> Path:
    upload = area.begin(job, shard_segments)
    for number, body in enumerate(bodies, 2):
        if upload.is_full:
            upload.write_shard()
        upload.add(number, fingerprint(body), body, segments=1)
    upload.finish()
    upload.close()
    return area.folder(job)


def read_all(folder: Path) -> list[StagedLine]:
    shards = len(list(folder.glob("shard-*.parquet")))
    return [line for number in range(shards) for line in read_shard(folder, number)]


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


def test_the_last_shard_is_shared_out(tmp_path: Path) -> None:
    folder = stage(StagingArea(tmp_path), "job", [str(n) for n in range(36)], shard_segments=16)
    shards = len(list(folder.glob("shard-*.parquet")))
    assert [len(read_shard(folder, number)) for number in range(shards)] == [16, 16, 4]
    folder = stage(StagingArea(tmp_path), "full", [str(n) for n in range(16)], shard_segments=16)
    shards = len(list(folder.glob("shard-*.parquet")))
    assert [len(read_shard(folder, number)) for number in range(shards)] == [4, 4, 4, 4]


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "flipped", "no repeats"])
def test_a_damaged_shard_is_named(tmp_path: Path, damage: str) -> None:
    folder = stage(StagingArea(tmp_path), "job", ["a" * 500, "b" * 500, "c"])
    path = shard_path(folder, 0)
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "no repeats":
        (folder / "repeats.npy").unlink()
    else:
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
        read_shard(folder, 0)


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


def trail(folder: Path, tries: int, keys: list[str], ended: bool = False) -> frozenset[str]:
    with Crumbs(folder, 0, tries) as crumbs:
        for key in keys:
            crumbs.watch(key)
        if ended:
            crumbs.clear()
        return crumbs.suspects


def test_a_text_is_blamed_after_the_second_death_on_it(tmp_path: Path) -> None:
    good, bad = fingerprint("good"), fingerprint("bad")
    assert trail(tmp_path, 1, [good, bad]) == frozenset()
    assert trail(tmp_path, 2, [good, bad]) == frozenset()
    assert trail(tmp_path, 3, [good]) == {bad}
    assert trail(tmp_path, 4, []) == {bad}


def test_deaths_on_different_texts_or_between_texts_blame_nothing(tmp_path: Path) -> None:
    assert trail(tmp_path, 1, [fingerprint("a")]) == frozenset()
    assert trail(tmp_path, 2, [fingerprint("b")]) == frozenset()
    assert trail(tmp_path, 3, [fingerprint("b")], ended=True) == frozenset()
    assert trail(tmp_path, 4, [], ended=True) == frozenset()
    assert trail(tmp_path, 5, []) == frozenset()
