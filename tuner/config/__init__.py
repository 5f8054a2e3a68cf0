"""The search space file: text the user writes, read into search spaces."""

from tuner.config.entries import StrategyEntry
from tuner.config.space_file import (
    SpaceFile,
    default_space_file,
    first_rows,
    load_space_file,
    parse_space,
    spaces_for,
)

__all__ = [
    "SpaceFile",
    "StrategyEntry",
    "default_space_file",
    "first_rows",
    "load_space_file",
    "parse_space",
    "spaces_for",
]
