"""Where the search space that is shipped lies."""

import importlib.resources
from pathlib import Path


def default_space_file() -> Path:
    """Returns the path of the search space that is shipped."""
    return Path(str(importlib.resources.files("tuner") / "search_space.yaml"))
