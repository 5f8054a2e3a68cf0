"""What the distribution ships, checked in the working tree; CI installs the real wheel outside it."""

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tuner

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
GLOBS = PROJECT["tool"]["setuptools"]["package-data"]["tuner"]


@pytest.mark.parametrize("name", ["db", "strategies", "search_space.yaml"])
def test_link_in_the_package_leads_to_the_top_of_the_repository(name: str) -> None:
    link = ROOT / "tuner" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{name}"
    assert link.resolve() == ROOT / name
    assert link.exists()


@pytest.mark.parametrize("folder", ["strategies", "db/migrations"])
def test_every_file_that_is_not_python_is_shipped(folder: str) -> None:
    package = ROOT / "tuner"
    shipped = {path for glob in GLOBS for path in package.glob(glob)}
    files = {
        path for path in (package / folder).iterdir() if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert files
    assert files <= shipped


def test_installed_version_is_the_version_of_the_source() -> None:
    assert importlib.metadata.version("mlir-tuner") == tuner.__version__


def test_installed_command_is_the_one_declared() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="tuner")
    assert command.value == PROJECT["project"]["scripts"]["tuner"]
    assert callable(command.load())


def test_every_dependency_has_its_reason_written_down() -> None:
    reasons = (ROOT / "docs" / "dependencies.md").read_text()
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = PROJECT["project"]["dependencies"] + [text for texts in extras.values() for text in texts]
    names = [re.split(r"[^\w.-]", text)[0] for text in wanted]
    missing = [name for name in names if f"`{name}`" not in reasons]
    assert missing == []
