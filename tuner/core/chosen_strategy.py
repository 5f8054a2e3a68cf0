"""A strategy that a run tries: one that is shipped, or a user's own."""

from dataclasses import dataclass
from pathlib import Path

PATH_FOLLOWS = "=/"  # in a text; names of recorded strategies may have a "=" too


@dataclass(frozen=True)
class ChosenStrategy:
    """A strategy by name, with the absolute path of its script where that is not shipped."""

    name: str
    path: Path | None = None  # None: the one that is shipped

    @property
    def text(self) -> str:
        """Returns ``name``, or ``name=/path/of/script``, as databases and documents have it."""
        return self.name if self.path is None else f"{self.name}={self.path}"

    @classmethod
    def parse(cls, text: str) -> "ChosenStrategy":
        """Reads what ``text`` returns."""
        name, has_path, rest = text.partition(PATH_FOLLOWS)
        return cls(name, Path(f"/{rest}") if has_path else None)
