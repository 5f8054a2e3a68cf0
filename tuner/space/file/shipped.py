"""The path of the shipped search space file."""

import importlib.resources
from pathlib import Path


def default_space_file() -> Path:
    """Returns the path of the search space file that is shipped with tuner."""
    return Path(str(importlib.resources.files("tuner") / "search_space.yaml"))
