"""One point of a search space: a strategy with a value for each of its knobs."""

from dataclasses import dataclass

Value = int | str


@dataclass(frozen=True)
class Candidate:
    """A strategy with a value for each of its knobs: one configuration of the search space.

    Hashable, so a candidate can be a key of a dictionary. A partial candidate, which some functions accept,
    leaves knobs out.
    """

    strategy: str
    choices: tuple[tuple[str, Value], ...]  # (knob, value), sorted by knob

    @classmethod
    def of(cls, strategy: str, values: dict[str, Value]) -> "Candidate":
        """Returns the candidate of a strategy with the given knob values, sorted by the knobs' names."""
        return cls(strategy, tuple(sorted(values.items())))

    @property
    def text(self) -> str:
        """Returns the candidate as ``strategy(knob=value, ...)``, for printing and logging."""
        return f"{self.strategy}({', '.join(f'{name}={value}' for name, value in self.choices)})"
