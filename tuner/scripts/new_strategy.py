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
    """A starter file of a custom strategy: its file name, and its text."""

    name: str
    text: str


def starter_files(name: str, taken: tuple[str, ...]) -> tuple[StarterFile, ...]:
    """Returns three files of a custom strategy ``name``: script template, search space file, test.

    Raises UsageError for a name that is no identifier or is one of ``taken``.
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is None:
        raise UsageError(f"NAME: found {name!r}, allowed letters, digits and _, no digit first")
    if name in taken:
        raise UsageError(f"NAME: {name!r} is a shipped strategy", "choose another name")
    starter = files("tuner") / "scripts" / "starter"
    return tuple(
        StarterFile(written.format(name=name), (starter / kept).read_text("utf-8").replace(PLACEHOLDER, name))
        for kept, written in STARTER_FILES.items()
    )
