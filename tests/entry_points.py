"""The entry points of this checkout: those of an older installation are replaced for the tests.

An environment may be installed from an earlier commit, or, as worktrees are, from another checkout. What
``pip install -e .`` leaves in a checkout, ``mlir_tuner.egg-info``, then says what pyproject.toml says.
"""

import os
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
METADATA = "Metadata-Version: 2.1\nName: mlir-tuner\nVersion: 0\n"
Points = dict[str, dict[str, str]]  # group -> name -> value


def declared() -> Points:
    """Returns the entry points that pyproject.toml declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"console_scripts": project["scripts"], **project["entry-points"]}


def installed() -> Points:
    """Returns the entry points that a Python process sees; {} without an installation."""
    points: Points = {}
    try:
        entries = distribution("mlir-tuner").entry_points
    except PackageNotFoundError:
        return points
    for entry in entries:
        points.setdefault(entry.group, {})[entry.name] = entry.value
    return points


def refresh() -> None:
    """Writes the metadata of the checkout anew where the entry points differ from pyproject.toml."""
    points = declared()
    if installed() == points:
        return
    folder = ROOT / "mlir_tuner.egg-info"
    folder.mkdir(exist_ok=True)
    lines = [f"[{group}]\n{_lines(names)}\n" for group, names in points.items()]
    for name, text in (("PKG-INFO", METADATA), ("entry_points.txt", "\n".join(lines))):
        draft = folder / f"{name}.{os.getpid()}"  # several processes of tests begin at once
        draft.write_text(text)
        draft.replace(folder / name)
    # of processes that tests start
    paths = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)


def _lines(names: dict[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in names.items())
