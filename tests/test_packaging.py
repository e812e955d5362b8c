"""What is in the package that users install, and that it stands on its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mcp_envelope"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree without any network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def names(wheel: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_everything_of_the_package_is_shipped(names: set[str]) -> None:
    """Every module, the typing marker and every published schema is in the wheel."""
    wanted = {
        path.relative_to(ROOT / "src").as_posix()
        for path in PACKAGE.rglob("*")
        if path.suffix in {".py", ".json"} or path.name == "py.typed"
    }
    assert "mcp_envelope/py.typed" in wanted
    assert any(name.endswith("envelope.schema.v0.1.json") for name in wanted)
    assert wanted <= names


def test_nothing_else_is_shipped(names: set[str]) -> None:
    """Tests, tools and caches stay out: the wheel has the package and its own data only."""
    tops = {name.split("/")[0] for name in names}
    assert tops == {"mcp_envelope", f"mcp_envelope-{PROJECT['version']}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_metadata(wheel: Path) -> None:
    """The metadata says what the project promises: licence, Pythons, typed, few dependencies."""
    with zipfile.ZipFile(wheel) as archive:
        inside = f"mcp_envelope-{PROJECT['version']}.dist-info"
        metadata = HeaderParser().parsestr(archive.read(f"{inside}/METADATA").decode())
        entry_points = archive.read(f"{inside}/entry_points.txt").decode()
        licence = archive.read(f"{inside}/licenses/LICENSE")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])
    assert "mcp-envelope = mcp_envelope.__main__:main" in entry_points
    base = {
        re.split(r"[<>=!~ ]", text)[0]
        for text in metadata.get_all("Requires-Dist") or []
        if "extra ==" not in text
    }
    codecs = {"blake3", "cryptography", "jiter", "jsonschema-rs", "orjson"}
    assert base == codecs | {"httptools", "uvicorn", "uvloop"}  # docs/adr says why


def test_no_python_is_shut_out() -> None:
    """Python has a lower bound and no upper one: a new release must not wait for us."""
    assert PROJECT["requires-python"] == ">=3.11"
    assert "<" not in PROJECT["requires-python"]


def test_every_tool_is_pinned() -> None:
    """Each direct dependency has an exact version in the constraints file."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [text for group in groups["dependency-groups"].values() for text in group]
    wanted += PROJECT["dependencies"]
    pinned = (ROOT / "tools" / "constraints.txt").read_text(encoding="utf-8")
    direct = {re.split(r"[<>=!~ ]", text)[0] for text in wanted if isinstance(text, str)}
    assert not [name for name in sorted(direct) if f"\n{name}==" not in pinned]


def test_version_is_one() -> None:
    """The package, its metadata and the change log agree on the version."""
    code = "import mcp_envelope; print(mcp_envelope.__version__)"
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=surroundings
    )
    assert answer.stdout.strip() == PROJECT["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {PROJECT['version']}" in changes


@pytest.mark.install
def test_plain_pip_installs_a_working_package(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own the wheel brings what it needs, and the command works."""
    venv.create(tmp_path / "env", with_pip=True)
    programs = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = str(programs / "python")
    surroundings = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: str) -> str:
        return subprocess.run(
            words, cwd=tmp_path, env=surroundings, check=True, capture_output=True, text=True
        ).stdout

    run(python, "-m", "pip", "install", "-qq", str(wheel))
    (tmp_path / "call.json").write_text('{"ok":true,"count":3}', encoding="utf-8")
    wrapped = run(str(programs / "mcp-envelope"), "wrap", "call.json")
    assert json.loads(wrapped) == {
        "schema_version": "mcp.envelope.v0.1",
        "result": {"ok": True, "count": 3},
    }
    listed = run(python, "-m", "pip", "list", "--format=json")
    found = {package["name"].replace("_", "-") for package in json.loads(listed)}
    base = {"blake3", "jiter", "jsonschema-rs", "mcp-envelope", "orjson", "typing-extensions"}
    base |= {"click", "h11", "httptools", "uvicorn", "uvloop"}
    base |= {"cryptography", "cffi", "pycparser"}
    assert found - {"pip", "setuptools"} <= base
