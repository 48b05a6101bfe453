"""Arrows point down: which package may import what (the table in docs/architecture.md)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("syntax", "featurestore", "service", "clients", "trainer")

MAY_IMPORT = {
    "syntax": set(),
    "featurestore": {"syntax"},
    "clients": {"syntax"},
    "service": {"syntax", "featurestore"},
    "trainer": {"syntax", "featurestore", "clients"},
}
THIRD_PARTY = {
    "syntax": {"numpy", "numba"},
    "featurestore": {"numpy", "pyarrow", "deltalake", "duckdb", "scipy", "matplotlib"},
    "clients": {"numpy", "httpx", "ijson", "datasets", "typer", "rich", "zstandard"},
    "service": {
        *("numpy", "pyarrow", "fastapi", "starlette", "pydantic", "pydantic_settings", "uvicorn"),
        *("tokenizers", "transformers", "ufal", "stanza", "sqlalchemy", "structlog"),
        "prometheus_client",
        "huggingface_hub",
        *("torch", "psutil", "distributed", "limits", "starlette_compress", "zstandard", "httpx"),
        "python_multipart",
    },
    "trainer": {
        *("numpy", "torch", "transformers", "accelerate", "safetensors", "rich"),
        *("scipy", "matplotlib", "wandb"),
    },
}
READS_JSON = ROOT / "syntax" / "strict_json.py"
COMMAND_LIBRARIES = {"typer", "rich"}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """The top-level names that a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def is_command(path: Path) -> bool:
    return path.stem.endswith(("commands", "command")) or path.parent.name == "commands"


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_of_our_own_packages_point_down(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name in imports(path)
        if name in PACKAGES and name not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_each_third_party_library_is_owned(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name in imports(path)
        if name not in sys.stdlib_module_names
        and name not in PACKAGES
        and name not in THIRD_PARTY[package] | (COMMAND_LIBRARIES if is_command(path) else set())
    ]
    assert wrong == []


def test_no_file_outgrows_four_hundred_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for package in PACKAGES
        for path in modules(package)
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_printed_is_never_taken_for_markup(package: str) -> None:
    """Texts have square brackets: Rich would swallow ``[NP]`` and fail on ``[/NP]``."""
    for path in modules(package):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                plain = {key.arg for key in node.keywords if ast.unparse(key.value) == "False"}
                wanted = {"Console": {"markup", "emoji"}, "TextColumn": {"markup"}}
                assert wanted.get(node.func.id, set()) <= plain, f"{path}:{node.lineno}"


@pytest.mark.parametrize("package", PACKAGES)
def test_json_is_parsed_in_one_place(package: str) -> None:
    """Python's own parser raises RecursionError for some texts, which `parse_json` does not."""
    own = {"load", "loads", "JSONDecoder"}
    for path in modules(package):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        used = {x.attr for x in calls if isinstance(x.value, ast.Name) and x.value.id == "json"}
        assert path == READS_JSON or not used & own, path
