"""The container files: schema, linter, and agreement with the project they package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )


def test_compose_file_follows_the_compose_specification() -> None:
    checker = BIN / "check-jsonschema"
    done = run(checker, "--builtin-schema", "vendor.compose-spec", ROOT / "docker-compose.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_dockerfiles_pass_the_linter(dockerfile: Path) -> None:
    done = run(BIN / "hadolint", dockerfile)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_builds_the_dockerfiles_that_exist() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    named = {service["build"]["dockerfile"] for service in compose["services"].values()}
    assert named == {f"docker/{path.name}" for path in DOCKERFILES}


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_every_copied_path_reaches_the_build(dockerfile: Path) -> None:
    lines = dockerfile.read_text(encoding="utf-8").splitlines()
    copied = {part for line in lines if line.startswith("COPY ") for part in line.split()[1:-1]}
    admitted = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied <= {line[1:] for line in admitted if line.startswith("!")}
    assert all((ROOT / path).exists() for path in copied)


def test_the_service_is_not_the_first_process_of_its_container() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert compose["services"]["service"]["init"] is True
