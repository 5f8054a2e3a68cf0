"""The starter files of a user's new strategy, which work unchanged."""

import re
from dataclasses import dataclass
from importlib.resources import files

from tuner.core.errors import UsageError

PLACEHOLDER = "NAME"  # in the files below tuner/scripts/starter
STARTER_FILES = {
    "strategy.mlir.j2": "{name}.mlir.j2",
    "space.yaml": "{name}.yaml",
    "test_strategy.py.txt": "test_{name}.py",
}


@dataclass(frozen=True)
class StarterFile:
    """A file to write: its name in the user's folder, and its text."""

    name: str
    text: str


def starter_files(name: str, taken: tuple[str, ...]) -> tuple[StarterFile, ...]:
    """Returns a template, its space file and its test. Raises UsageError for an invalid or used name."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise UsageError(f"NAME: found {name!r}, allowed letters, digits and _, no digit first")
    if name in taken:
        raise UsageError(f"NAME: {name!r} is a shipped strategy", "choose another name")
    starter = files("tuner") / "scripts" / "starter"
    return tuple(
        StarterFile(written.format(name=name), (starter / kept).read_text("utf-8").replace(PLACEHOLDER, name))
        for kept, written in STARTER_FILES.items()
    )
