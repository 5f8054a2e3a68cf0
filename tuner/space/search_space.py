"""The knobs of a strategy, its constraints, and its preferences."""

import math
from dataclasses import dataclass

from tuner.core.candidate import Candidate, Value
from tuner.space.expression import Expression

CHOICES_LIMIT = 4096  # of one knob: samplers keep a table of the similarity of any two


@dataclass(frozen=True)
class Knob:
    """One choice of a strategy: its name and its values for one problem."""

    name: str
    choices: tuple[Value, ...]  # all integers, or all texts

    def __post_init__(self) -> None:
        """Raises ValueError for no choices, for a repeated choice, and for integers mixed with texts."""
        if not self.choices:
            raise ValueError(f"knob {self.name!r} has no choices")
        if len(set(self.choices)) != len(self.choices):
            raise ValueError(f"knob {self.name!r} repeats a choice: {self.choices}")
        if {type(choice) for choice in self.choices} not in ({int}, {str}):
            raise ValueError(f"knob {self.name!r}: found {self.choices}, allowed all integers or all texts")

    @property
    def is_text(self) -> bool:
        """True if the choices are texts, which have no order."""
        return isinstance(self.choices[0], str)


@dataclass(frozen=True)
class SearchSpace:
    """The knobs of one strategy for one problem on one machine, with constraints and preferences."""

    strategy: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Expression, ...] = ()  # in the order of the file
    variables: tuple[tuple[str, Value], ...] = ()  # sizes, element bytes, device limits
    preferences: tuple[Expression, ...] = ()  # a combination that breaks one is tried after all that do not

    def __post_init__(self) -> None:
        """Raises ValueError for a repeated knob, UsageError for an expression with an unknown name."""
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError(f"strategy {self.strategy!r} repeats a knob: {names}")
        known = {*names, *(name for name, _ in self.variables)}
        for expression in (*self.constraints, *self.preferences):
            expression.require(known)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the knobs, in the order of the file."""
        return tuple(knob.name for knob in self.knobs)

    @property
    def cartesian(self) -> int:
        """Returns the number of combinations of choices, allowed or not."""
        return math.prod(len(knob.choices) for knob in self.knobs)

    def contains(self, candidate: Candidate) -> bool:
        """Returns whether the candidate has one of the choices of every knob, allowed together or not."""
        values = dict(candidate.choices)
        is_complete = candidate.strategy == self.strategy and values.keys() == set(self.names)
        return is_complete and all(values[knob.name] in knob.choices for knob in self.knobs)

    def violated(self, candidate: Candidate) -> Expression | None:
        """Returns the first constraint, in the order of the file, that rejects the candidate."""
        return self._first_false(self.constraints, candidate)

    def demoted_by(self, candidate: Candidate) -> Expression | None:
        """Returns the first preference, in the order of the file, that the candidate breaks."""
        return self._first_false(self.preferences, candidate)

    def _first_false(self, expressions: tuple[Expression, ...], candidate: Candidate) -> Expression | None:
        values = {**dict(self.variables), **dict(candidate.choices)}
        return next((each for each in expressions if not each.evaluate(values)), None)
