"""Arrows point down: which package, and which layer of a package, may import what.

The tables are those of docs/architecture.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("parsebank", "syntax", "featurestore", "service", "clients", "trainer")

MAY_IMPORT = {
    "syntax": set(),
    "featurestore": {"syntax"},
    "clients": {"syntax"},
    "service": {"syntax", "featurestore"},
    "trainer": {"syntax", "featurestore", "clients"},
    "parsebank": {"syntax", "featurestore", "clients", "trainer"},
}
THIRD_PARTY = {
    "parsebank": set(),
    "syntax": {"numpy", "numba"},
    "featurestore": {"numpy", "pyarrow", "deltalake", "duckdb", "scipy", "matplotlib", "spacy"},
    "clients": {
        *("numpy", "httpx", "ijson", "datasets", "typer", "rich", "tokenizers", "zstandard"),
        "IPython",  # of the notebook that runs the client
    },
    "service": {
        *("numpy", "pyarrow", "fastapi", "starlette", "pydantic", "pydantic_core"),
        *("pydantic_settings", "uvicorn"),
        *("tokenizers", "transformers", "ufal", "onnxruntime", "stanza", "spacy"),
        *("sqlalchemy", "structlog"),
        "prometheus_client",
        "huggingface_hub",
        *("torch", "psutil", "distributed", "limits", "starlette_compress", "zstandard", "httpx"),
        "python_multipart",
    },
    "trainer": {
        *("numpy", "torch", "transformers", "accelerate", "safetensors", "rich"),
        *(
            "scipy",
            "matplotlib",
            "sacrebleu",
            "codebleu",
            "wandb",
            "onnx",
            "onnxruntime",
            "tokenizers",
        ),
        "distributed",
        "pyarrow",  # of the examples that a trial of `parsebank reproduce` keeps
    },
}
# From the lowest layer to the highest. A module belongs to the entry that names it or a folder
# above it (``*`` stands for any folder), the longest that fits; an empty name is the package's own
# ``__init__``.
LAYERS: dict[str, tuple[set[str], ...]] = {
    "parsebank": ({""}, {"__main__"}),
    "syntax": (
        {"errors", "compiled", "spans", "files", "fingerprint", "strict_json"},
        {"extras", "lists", "mixing", "options", "plugins", "registry", "shapes"},
        {"variant", "examples", "labels", "tokenizers"},
        {"drawing"},
        {"trees"},
        {"matrices"},
        {"subwords"},
        {"batches"},
        {"alignment", "contrast", "parsing"},
        {""},
        {"commands"},
    ),
    "featurestore": (
        {"records"},
        {"tables"},
        {"stream", "sql"},
        {"dataset"},
        {"store"},
        {"maintenance"},
        {"reports"},
        {""},
        {"commands"},
    ),
    "clients": (
        {"files", "processes", "shards", "spelling"},
        {"client"},
        {"progress"},
        {""},
        {"benchmarks", "bpe", "cut", "display", "expand", "fill", "wordpiece"},
        {"demo"},
        {"commands"},
        {"cli"},
    ),
    "service": (
        {"", "errors", "logs", "processes", "resources", "settings", "timing"},
        {"parsers"},
        {"tokenizers", "tokenizer_cache", "tokenizer_classes"},
        {"workers"},
        {"pipeline"},
        {"jobs", "lindat", "render", "sql"},
        {"services", "schemas"},
        {"metrics", "readiness"},
        {"security"},
        {"middleware", "page", "routes"},
        {"app", "checks"},
        {"embedded", "protocol", "relay", "server"},
        {"training"},
        {"models"},
        {"commands"},
    ),
    "trainer": (
        {"", "checkpoint", "environment", "evaluation.predictions", "loader", "metrics"}
        | {"outcomes", "requirements"},
        {"batch", "denoising", "masking", "options", "progress", "restarts", "ring"},
        {"matrices.forest", "models.outputs", "nn"},
        {"objectives", "tasks"},
        {"systems"},
        {"options.recipe", "options.settings"},
        {"models", "matrices", "observers", "resume", "results", "schedule", "seeds", "stored"},
        {"data", "recipes", "systems.*.recipes"},
        {"evaluation", "loop", "parsing", "probing", "report", "streams"},
        {"api"},
        {"reproduction", "studies"},
        {"commands"},
    ),
}
EXCEPTIONS = {
    # Weights of another run's encoder are loaded with the configuration that is saved beside them.
    ("trainer", "systems.syntax_mbert.loading", "models.config"),
}
"""Imports of a higher layer that are allowed: package, module, what it imports."""

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


def module_name(path: Path) -> str:
    """Dotted name of a module below its package; empty for the package itself."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts[1:])
    return name.removesuffix("__init__").rstrip(".")


def inner_imports(package: str) -> dict[str, set[str]]:
    """The modules of the same package that each imports, wherever the import stands.

    Those below ``if TYPE_CHECKING`` are left out: they name types and run nothing.
    """
    names = {module_name(path) for path in modules(package)}
    found = {}
    for path in modules(package):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing_only = {
            id(below)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for below in ast.walk(node)
        }
        imported: set[str] = set()
        for node in ast.walk(tree):
            if id(node) in typing_only:
                continue
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # `from package import module` imports the module, not a name of the package.
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                below = {name for name in whole if name.removeprefix(f"{package}.") in names}
                imported |= below or {node.module}
        own = {name for name in imported if name.partition(".")[0] == package}
        inner = {name.removeprefix(package).removeprefix(".") for name in own}
        found[module_name(path)] = inner - {module_name(path)}
    return found


def layer_of(module: str, layers: tuple[set[str], ...]) -> int | None:
    """The layer of a module: that of the longest entry that is the module or a folder above it."""
    found = [
        (len(entry), number)
        for number, entries in enumerate(layers)
        for entry in entries
        if module == entry or (entry and fnmatchcase(f"{module}.", f"{entry}.*"))
    ]
    return max(found)[1] if found else None


@pytest.mark.parametrize("package", LAYERS)
def test_each_module_has_a_layer(package: str) -> None:
    names = [module_name(path) for path in modules(package)]
    assert [name for name in names if layer_of(name, LAYERS[package]) is None] == []


@pytest.mark.parametrize("package", LAYERS)
def test_imports_inside_a_package_point_down(package: str) -> None:
    layers = LAYERS[package]
    wrong = [
        f"{package}.{module} imports {package}.{other}"
        for module, imported in inner_imports(package).items()
        for other in imported
        if (layer_of(other, layers) or 0) > (layer_of(module, layers) or 0)
        and (package, module, other) not in EXCEPTIONS
    ]
    assert wrong == []


@pytest.mark.parametrize("package", LAYERS)
def test_no_modules_of_a_package_import_each_other_in_a_circle(package: str) -> None:
    graph = inner_imports(package)
    left = {name: {other for other in graph[name] if other in graph} for name in graph}
    # What imports nothing that is left is in no circle.
    while free := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in free}
    # Nor is what nothing that is left imports.
    while top := left.keys() - {other for imported in left.values() for other in imported}:
        left = {name: imported for name, imported in left.items() if name not in top}
    assert left == {}


def test_a_function_level_import_counts_and_one_for_types_does_not() -> None:
    graph = inner_imports("featurestore")
    assert "dataset.dataset" in graph["store"]
    assert "store" not in graph["dataset.dataset"]


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
