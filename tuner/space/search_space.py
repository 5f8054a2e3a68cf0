"""The knobs of a strategy, its constraints, and its preferences."""

import math
from dataclasses import dataclass

from tuner.core.candidate import Candidate, Value
from tuner.space.expression import Expression

CHOICES_LIMIT = 4096  # of one knob: samplers keep a table of the similarity of any two


@dataclass(frozen=True)
class Knob:
    """A tunable parameter of a strategy: its name and the values that it may have for one problem."""

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
        """Returns whether the choices are texts, which have no order; otherwise they are integers."""
        return isinstance(self.choices[0], str)


@dataclass(frozen=True)
class SearchSpace:
    """The knobs of one strategy for one problem on one machine, with constraints and preferences."""

    strategy: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Expression, ...] = ()  # in the order of the file
    variables: tuple[tuple[str, Value], ...] = ()  # sizes, element bytes, device limits
    preferences: tuple[Expression, ...] = ()  # a combination that breaks one is tried after all that do not
    projection: tuple[tuple[str, Value], ...] = ()  # knob -> value, where its own does not suit a problem

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
        """Returns the names of the knobs: of the file, then those that only the script declares."""
        return tuple(knob.name for knob in self.knobs)

    @property
    def cartesian(self) -> int:
        """Returns the number of combinations of the knobs' choices, allowed by the constraints or not."""
        return math.prod(len(knob.choices) for knob in self.knobs)

    def contains(self, candidate: Candidate) -> bool:
        """Returns whether a candidate is of this strategy and has, for every knob, one of the knob's choices.

        False for a candidate with another knob as well. The constraints may reject a candidate nevertheless.
        """
        values = dict(candidate.choices)
        is_complete = candidate.strategy == self.strategy and values.keys() == set(self.names)
        return is_complete and all(values[knob.name] in knob.choices for knob in self.knobs)

    def violated(self, candidate: Candidate) -> Expression | None:
        """Returns the first constraint, in the file's order, that a candidate violates; None for none.

        Raises UsageError for a candidate without a knob that a constraint needs.
        """
        return self._first_false(self.constraints, candidate)

    def demoted_by(self, candidate: Candidate) -> Expression | None:
        """Returns the first preference, in the file's order, that a candidate breaks; None for none.

        Raises UsageError for a candidate without a knob that a preference needs.
        """
        return self._first_false(self.preferences, candidate)

    def _first_false(self, expressions: tuple[Expression, ...], candidate: Candidate) -> Expression | None:
        values = {**dict(self.variables), **dict(candidate.choices)}
        return next((each for each in expressions if not each.evaluate(values)), None)
