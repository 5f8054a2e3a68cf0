"""The search space of a strategy for one problem: knobs, constraints with truth tables, preferences.

``SearchSpace`` has ``Knob`` values and constraints. A ``Rule`` is a constraint with its ``ConstraintTable``,
so that checking many configurations is a look-up.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.space.expressions import Expression

CHOICES_LIMIT = 4096  # choices of one knob: samplers keep a table of the similarity of any two choices
Truth = npt.NDArray[np.bool_]
Picks = Mapping[int, npt.NDArray[np.integer]]  # knob -> per configuration, index of its choice
TABLE_LIMIT = 1 << 17  # combinations in a table: evaluated within a millisecond, small enough for the cache


@dataclass(frozen=True)
class Knob:
    """A tunable parameter of a strategy: its name and the values that it may have for one problem.

    Raises ValueError without choices, for a repeated choice, and for integers next to texts.
    """

    name: str
    choices: tuple[Value, ...]  # all integers, or all texts

    def __post_init__(self) -> None:
        if not self.choices:
            raise ValueError(f"knob {self.name!r} has no choices")
        if len(set(self.choices)) != len(self.choices):
            raise ValueError(f"knob {self.name!r} repeats a choice: {self.choices}")
        if set(map(type, self.choices)) not in ({int}, {str}):
            raise ValueError(f"knob {self.name!r}: found {self.choices}, allowed all integers or all texts")

    @property
    def is_text(self) -> bool:
        return isinstance(self.choices[0], str)


@dataclass(frozen=True)
class SearchSpace:
    """The knobs of one strategy for one problem on one machine, with constraints and preferences.

    Raises ValueError for a repeated knob, UsageError for an expression with a name that is neither a knob nor
    a variable.
    """

    strategy: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Expression, ...] = ()  # in the order of the file
    variables: tuple[tuple[str, Value], ...] = ()  # (name, value): sizes, element bytes, device limits
    preferences: tuple[Expression, ...] = ()  # a combination that breaks one is tried after all that do not
    projection: tuple[tuple[str, Value], ...] = ()  # knob -> value in place of one that is not allowed

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError(f"strategy {self.strategy!r} repeats a knob: {names}")
        known = {*names, *(name for name, _ in self.variables)}
        for expression in (*self.constraints, *self.preferences):
            expression.require(known)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(knob.name for knob in self.knobs)

    @property
    def cartesian(self) -> int:
        """Returns the number of combinations of the knobs' choices, allowed or not."""
        return math.prod(len(knob.choices) for knob in self.knobs)

    def contains(self, candidate: Candidate) -> bool:
        """Returns whether a candidate is of this strategy and has, for every knob, one of its choices.

        Constraints are not checked.
        """
        values = dict(candidate.choices)
        is_complete = candidate.strategy == self.strategy and values.keys() == set(self.names)
        return is_complete and all(values[knob.name] in knob.choices for knob in self.knobs)

    def violated(self, candidate: Candidate) -> Expression | None:
        """Returns the first constraint that a candidate violates; None if it meets all.

        Raises UsageError if the candidate lacks a knob that an evaluated constraint names.
        """
        return self._first_false(self.constraints, candidate)

    def demoted_by(self, candidate: Candidate) -> Expression | None:
        """Returns the first preference that a candidate breaks; None if it meets all.

        Raises UsageError if the candidate lacks a knob that an evaluated preference names.
        """
        return self._first_false(self.preferences, candidate)

    def _first_false(self, expressions: tuple[Expression, ...], candidate: Candidate) -> Expression | None:
        values = {**dict(self.variables), **dict(candidate.choices)}
        return next((expression for expression in expressions if not expression.evaluate(values)), None)


# Constraints as truth tables: evaluated once per combination of the constraint's knobs, then looked up.
# A constraint has few knobs with few choices each, while an enumeration asks for many configurations. A
# constraint whose knobs have too many combinations is evaluated for each configuration instead.


@dataclass(frozen=True, eq=False)
class ConstraintTable:
    """The truth table of a constraint: whether it holds, for every combination of its knobs' choices."""

    knobs: tuple[int, ...]  # by their index in the space
    truth: Truth  # one axis per knob

    def holds(self, picks: Picks) -> Truth:
        """Returns, per configuration, whether the constraint holds.

        ``picks``: knob -> array of choice indices; must have every knob of the table.
        """
        return self.truth.ravel().take(self._flat(picks, self.knobs, self.truth.shape))

    def holds_for_each(self, picks: Picks, last: int) -> Truth:
        """Returns, per configuration and choice of the knob ``last``, whether the constraint holds.

        ``picks``: knob -> array of choice indices, without ``last``.
        """
        axis = self.knobs.index(last)
        others = self.knobs[:axis] + self.knobs[axis + 1 :]
        moved = np.moveaxis(self.truth, axis, -1)
        flat = self._flat(picks, others, moved.shape[:-1])
        return np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]).take(flat, axis=0)

    def joined(self, other: "ConstraintTable") -> "ConstraintTable":
        """Returns a table over the knobs of both tables that is True where both constraints hold."""
        knobs = tuple(sorted({*self.knobs, *other.knobs}))
        return ConstraintTable(knobs, _spread(self, knobs) & _spread(other, knobs))

    def size_with(self, other: "ConstraintTable") -> int:
        """Returns how many entries the table ``joined(other)`` has."""
        sizes = dict(zip(self.knobs, self.truth.shape, strict=True))
        return math.prod((sizes | dict(zip(other.knobs, other.truth.shape, strict=True))).values())

    @staticmethod
    def _flat(picks: Picks, knobs: tuple[int, ...], shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
        if not knobs:
            return np.zeros(_rows(picks), np.intp)
        flat = picks[knobs[0]].astype(np.intp)
        for knob, size in zip(knobs[1:], shape[1:], strict=True):
            flat *= size
            flat += picks[knob]
        return flat


@dataclass(frozen=True, eq=False)
class Rule:
    """A constraint of a search space, with its truth table if that is small enough; made by ``Rule.of``."""

    space: SearchSpace
    constraint: Expression
    knobs: tuple[int, ...]  # knobs that the constraint names, by their index in the space
    table: ConstraintTable | None  # None: too many combinations, or one cannot be evaluated

    @classmethod
    def of(cls, space: SearchSpace, constraint: Expression) -> "Rule":
        """Returns the rule of a constraint, with its truth table unless that is too large.

        Without a table, ``holds`` evaluates the constraint each time: above TABLE_LIMIT (131072)
        combinations, or if one cannot be evaluated.
        """
        knobs = tuple(index for index, name in enumerate(space.names) if name in constraint.names)
        shape = tuple(len(space.knobs[knob].choices) for knob in knobs)
        if math.prod(shape) > TABLE_LIMIT:
            return cls(space, constraint, knobs, None)
        rows = math.prod(shape)
        every = dict(zip(knobs, np.indices(shape).reshape(len(shape), rows), strict=True))
        try:
            truth = evaluated(space, constraint, every, rows)
        except UsageError:  # perhaps only for combinations that another constraint rejects
            return cls(space, constraint, knobs, None)
        return cls(space, constraint, knobs, ConstraintTable(knobs, truth.reshape(shape)))

    def holds(self, picks: Picks) -> Truth:
        """Returns, per configuration, whether the constraint holds.

        ``picks``: knob -> array of choice indices. Raises UsageError for values that the constraint cannot
        take.
        """
        if self.table is not None:
            return self.table.holds(picks)
        return evaluated(self.space, self.constraint, picks, _rows(picks))


def evaluated(space: SearchSpace, constraint: Expression, picks: Picks, rows: int) -> Truth:
    """Returns, for each of ``rows`` configurations, whether the constraint holds; without a truth table.

    ``picks``: knob -> array of choice indices. Raises UsageError for values that the constraint cannot take.
    """
    columns = {
        space.knobs[knob].name: np.array(space.knobs[knob].choices)[column]
        for knob, column in picks.items()
        if space.knobs[knob].name in constraint.names
    }
    truth = constraint.evaluate({**dict(space.variables), **columns})
    return np.broadcast_to(np.asarray(truth) != 0, (rows,))


def join_tables(tables: Iterable[ConstraintTable]) -> tuple[ConstraintTable, ...]:
    """Returns tables that hold the same constraints in fewer look-ups, each of at most 131072 entries."""
    joined: list[ConstraintTable] = []
    for table in tables:
        match = next((n for n, known in enumerate(joined) if known.size_with(table) <= TABLE_LIMIT), None)
        if match is None:
            joined.append(table)
        else:
            joined[match] = joined[match].joined(table)
    return tuple(joined)


def _spread(table: ConstraintTable, knobs: tuple[int, ...]) -> Truth:
    sizes = dict(zip(table.knobs, table.truth.shape, strict=True))
    return table.truth.reshape([sizes.get(knob, 1) for knob in knobs])


def _rows(picks: Picks) -> int:
    if picks:
        return len(next(iter(picks.values())))
    return 1
