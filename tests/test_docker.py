"""The container files: schema, linter, and agreement with the project they package."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values

from service.settings import Settings

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


def services() -> dict[str, Any]:
    """The services of the compose file, its merge keys resolved."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return dict(compose["services"])


def test_compose_builds_the_dockerfiles_that_exist() -> None:
    builds = [service["build"] for service in services().values() if "build" in service]
    assert {build["dockerfile"] for build in builds} == {
        f"docker/{path.name}" for path in DOCKERFILES
    }
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = {
        name for build in builds for name in build.get("args", {}).get("EXTRAS", "").split(",")
    }
    assert named - {""} <= set(extras["project"]["optional-dependencies"])


def test_only_the_service_starts_without_a_profile() -> None:
    assert [name for name, service in services().items() if "profiles" not in service] == [
        "service"
    ]


@pytest.mark.parametrize("name", services())
def test_a_container_has_a_memory_limit_a_tag_and_files_that_exist(name: str) -> None:
    service = services()[name]
    assert service["mem_limit"]
    assert "build" in service or re.search(r":[\w.-]*\d", service["image"])
    mounted = [volume.split(":")[0] for volume in service.get("volumes", ())]
    bound = [path for path in mounted if path.startswith("./") and path != "./runs"]
    assert all((ROOT / path).is_dir() for path in bound)
    published = [str(port) for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("name", ["service", "service-gpu"])
def test_the_service_knows_its_settings_in_every_profile(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the profiles' files set reaches the container, and is a setting."""
    environment = services()[name]["environment"]
    given = {
        **dotenv_values(ROOT / "ops" / "postgres.env"),
        **dotenv_values(ROOT / "ops" / "s3.env"),
    }
    unseen = set(given) - set(environment) - {"POSTGRES_PASSWORD"}
    assert unseen == set()
    ours = {key: given.get(key, value) for key, value in environment.items()}
    for key, value in ours.items():
        if key.startswith("PARSEBANK_") and value is not None and "${" not in value:
            monkeypatch.setenv(key, value)
    monkeypatch.setenv("PARSEBANK_MODEL_MEMORY_MB", "3072")
    settings = Settings()
    assert settings.jobs_url == "postgresql://parsebank:parsebank@postgres/parsebank"
    assert settings.store == "s3://parses/store"
    assert settings.allowed_hosts == ["service"]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_every_copied_path_reaches_the_build(dockerfile: Path) -> None:
    lines = dockerfile.read_text(encoding="utf-8").splitlines()
    copied = {part for line in lines if line.startswith("COPY ") for part in line.split()[1:-1]}
    admitted = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied <= {line[1:] for line in admitted if line.startswith("!")}
    assert all((ROOT / path).exists() for path in copied)


def test_the_service_is_not_the_first_process_of_its_container() -> None:
    assert services()["service"]["init"] is True
    assert services()["service-gpu"]["init"] is True
