"""The command that adds an extra fits the way Parsebank was installed."""

import ast
import json
import re
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from syntax.errors import MissingExtraError
from syntax.extras import install_command, missing_extra

ROOT = Path(__file__).parents[2]
PACKAGES = ("syntax", "featurestore", "service", "clients", "trainer")


def installed(folder: Path, origin: dict | None) -> Distribution:
    """A distribution whose origin pip recorded so."""
    record = folder / "parsebank-0.1.0.dist-info"
    record.mkdir()
    if origin is not None:
        (record / "direct_url.json").write_text(json.dumps(origin))
    return PathDistribution(record)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'parsebank[train]'"),
        (
            {"url": "file:///home/a%20b/parsebank", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/parsebank[train]'",
        ),
        ({"url": "file:///opt/parsebank", "dir_info": {}}, "pip install '/opt/parsebank[train]'"),
        (
            {"url": "file:///tmp/parsebank-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'parsebank[train] @ file:///tmp/parsebank-0.1.0-py3-none-any.whl'",
        ),
        (
            {
                "url": "https://git.example/parsebank.git",
                "vcs_info": {"vcs": "git", "commit_id": "c0ffee"},
            },
            "pip install 'parsebank[train] @ git+https://git.example/parsebank.git@c0ffee'",
        ),
    ],
)
def test_the_command_has_the_origin_of_the_installation(tmp_path, origin, command) -> None:
    assert install_command("train", installed(tmp_path, origin)) == command


def test_the_constraints_of_the_folder_hold_for_its_extras(tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").touch()
    origin = {"url": tmp_path.as_uri(), "dir_info": {}}
    assert install_command("train", installed(tmp_path, origin)) == (
        f"pip install -c {tmp_path}/constraints.txt '{tmp_path}[train]'"
    )


def test_the_error_has_the_problem_the_command_and_the_extra() -> None:
    error = missing_extra("pictures need matplotlib", "pictures")
    assert isinstance(error, MissingExtraError)
    assert error.message == f"pictures need matplotlib; run `{install_command('pictures')}`"
    assert error.detail["extra"] == "pictures"


@pytest.mark.slow
def test_every_named_extra_exists() -> None:
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    sources = [path for part in PACKAGES for path in (ROOT / part).rglob("*.py")]
    calls = [
        node
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "missing_extra"
    ]
    arguments = [argument for call in calls for argument in call.args[1:2]]
    named = {one.value for one in arguments if isinstance(one, ast.Constant)}
    assert named >= {"train", "stanza", "dask", "pictures"}
    assert named <= extras


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["-e"]], ids=["folder", "editable"])
def test_pip_takes_the_command_as_it_stands(tmp_path: Path, flags: list[str]) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env/bin/python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, *flags, str(ROOT)], check=True)
    # Another interpreter's packages serve the import; the record of the origin is its own.
    code = (
        "import sys; from importlib.metadata import distributions; from pathlib import Path;"
        f"site = Path({python!r}).parents[1];"
        "found, = distributions(name='parsebank', path=map(str, site.glob('lib/*/site-packages')));"
        "from syntax.extras import install_command; print(install_command('pictures', found))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    assert told.startswith("pip install -c ")
    line = told.replace("pip install", f"{python} -m pip install --quiet --no-deps --dry-run", 1)
    subprocess.run(line, shell=True, check=True)


def test_an_import_meets_no_absent_package_and_finds_it_later():
    code = """
from syntax.extras import absent
with absent("wave"):
    try:
        import wave
    except ModuleNotFoundError as error:
        assert error.name == "wave"
    else:
        raise AssertionError("it was found")
import wave
with absent("wave"):  # what is imported stays
    import wave
"""
    subprocess.run([sys.executable, "-c", code], check=True)
