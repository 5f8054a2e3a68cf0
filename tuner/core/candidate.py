"""One point of a search space: a strategy with a value for each of its knobs."""

from dataclasses import dataclass

Value = int | str


@dataclass(frozen=True)
class Candidate:
    """One value for every knob of one strategy. Hashable: a candidate is its own key in a dictionary."""

    strategy: str
    choices: tuple[tuple[str, Value], ...]  # (knob, value), sorted by knob

    @classmethod
    def of(cls, strategy: str, values: dict[str, Value]) -> "Candidate":
        """Builds the candidate with its knobs in the canonical order."""
        return cls(strategy, tuple(sorted(values.items())))

    @property
    def text(self) -> str:
        """Returns ``strategy(knob=value, ...)``, to print and to log."""
        return f"{self.strategy}({', '.join(f'{name}={value}' for name, value in self.choices)})"
