"""A strategy that a run tries: shipped with tuner, or a user's script."""

from dataclasses import dataclass
from pathlib import Path

PATH_FOLLOWS = "=/"  # in a text; names of recorded strategies may have a "=" too


@dataclass(frozen=True)
class ChosenStrategy:
    """A strategy that a run tries: its name, and the absolute path of its script if it is a user's."""

    name: str
    path: Path | None = None  # None: the shipped script

    @property
    def text(self) -> str:
        """Returns ``name``, or ``name=/path/of/script`` for a user's script: the stored form."""
        return self.name if self.path is None else f"{self.name}={self.path}"

    @classmethod
    def parse(cls, text: str) -> "ChosenStrategy":
        """Returns the strategy of a text ``name`` or ``name=/path/of/script``; the inverse of ``text``."""
        name, has_path, rest = text.partition(PATH_FOLLOWS)
        return cls(name, Path(f"/{rest}") if has_path else None)
