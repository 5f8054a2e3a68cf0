"""The choices a strategy leaves open, and which combinations are allowed."""

from dataclasses import dataclass

import numpy as np

from tuner.expression import Expression

Value = int | str


@dataclass(frozen=True)
class Knob:
    """One choice: its name and the values it may take, for one problem."""

    name: str
    choices: tuple[Value, ...]

    def __post_init__(self) -> None:
        """Raises ValueError for no choices or a repeated one."""
        if not self.choices:
            raise ValueError(f"knob {self.name!r} has no choices")
        if len(set(self.choices)) != len(self.choices):
            raise ValueError(f"knob {self.name!r} repeats a choice: {self.choices}")


@dataclass(frozen=True)
class Candidate:
    """One value for every knob of one strategy. Hashable: its own key."""

    strategy: str
    choices: tuple[tuple[str, Value], ...]  # (knob, value), sorted by knob

    @classmethod
    def of(cls, strategy: str, values: dict[str, Value]) -> "Candidate":
        """Builds the candidate with its knobs in the canonical order."""
        return cls(strategy, tuple(sorted(values.items())))

    @property
    def text(self) -> str:
        """Returns ``strategy(knob=value, ...)`` for people and logs."""
        return f"{self.strategy}({', '.join(f'{name}={value}' for name, value in self.choices)})"


@dataclass(frozen=True)
class SearchSpace:
    """The knobs of one strategy for one problem on one machine, and what they must satisfy."""

    strategy: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Expression, ...] = ()
    variables: tuple[tuple[str, Value], ...] = ()  # sizes, element bytes, device limits
