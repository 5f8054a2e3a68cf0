"""Projection: the configuration of one problem that a configuration of another problem becomes.

Constraints depend on sizes, so the knob values that suit one problem are often not allowed for another one.
A projected configuration keeps the given values where the constraints of the other problem allow that, and
has near values elsewhere. It depends on the configuration and the other search space alone: on no sample.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.core.candidate import Candidate, Value
from tuner.space.search_space import ConstraintTable, Knob, Rule, SearchSpace, join_tables

VISITS_LIMIT = 4_000  # values tried for one configuration: at most a second or two


def projected(candidate: Candidate, space: SearchSpace) -> Candidate | None:
    """Returns the allowed configuration of ``space`` to which ``candidate`` is projected.

    None if ``Projection.of``, which says how, gives none. For many candidates, one ``Projection`` is faster.
    """
    return Projection(space).of(candidate)


class Projection:
    """Projects configurations of a strategy into one problem's search space: to near, allowed ones."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._checks = _checks(space)

    def of(self, candidate: Candidate) -> Candidate | None:
        """Returns the allowed configuration of the search space to which ``candidate`` is projected.

        Each knob, in the space's order, gets the first value that the constraints allow: the candidate's own,
        the space's ``projection`` value, smaller choices, nearest first, larger ones, then the others. If
        none is allowed, the knob before gets its next value. An allowed configuration is its own projection.
        None for another strategy, and if none is found: no configuration is allowed, or 4000 (VISITS_LIMIT)
        tried values give none.
        """
        if candidate.strategy != self._space.strategy or self._checks is None:
            return None
        own = dict(candidate.choices)
        fallbacks = dict(self._space.projection)
        orders = []
        for knob in self._space.knobs:
            fallback = fallbacks.get(knob.name)
            orders.append(_order(knob, own.get(knob.name), fallback))
        picks = next(_Search(self._checks, tuple(orders)).allowed([]), None)
        if picks is None:
            return None
        values = {}
        for knob, pick in zip(self._space.knobs, picks, strict=True):
            values[knob.name] = knob.choices[pick]
        return Candidate.of(self._space.strategy, values)


@dataclass(frozen=True, eq=False)
class _Checks:
    """What is checked when a knob gets a value: the constraints that name it, and else only earlier knobs."""

    tables: tuple[ConstraintTable, ...]
    rules: tuple[Rule, ...]  # without a table

    def hold(self, picks: list[int]) -> bool:
        """Returns whether the constraints hold; ``picks``: the choice indices of the knobs so far."""
        for table in self.tables:
            if not table.truth[tuple(map(picks.__getitem__, table.knobs))]:
                return False
        for rule in self.rules:
            columns = {knob: np.array([picks[knob]]) for knob in rule.knobs}
            if not rule.holds(columns)[0]:
                return False
        return True


class _Search:
    """A search for the first allowed configuration, in the order of the knobs and of their values."""

    def __init__(self, checks: tuple[_Checks, ...], orders: tuple[tuple[int, ...], ...]) -> None:
        self._checks = checks
        self._orders = orders  # per knob: its choices, the one to try first at the front
        self._visits = 0

    def allowed(self, picks: list[int]) -> Iterator[list[int]]:
        if len(picks) == len(self._orders):
            yield picks
            return
        for pick in self._orders[len(picks)]:
            self._visits += 1
            if self._visits > VISITS_LIMIT:
                return
            grown = [*picks, pick]
            if self._checks[len(picks)].hold(grown):
                yield from self.allowed(grown)


def _checks(space: SearchSpace) -> tuple[_Checks, ...] | None:
    """Returns the checks per knob; None where a constraint without knobs does not hold."""
    by_last_knob: list[list[Rule]] = [[] for _ in space.knobs]
    for constraint in space.constraints:
        rule = Rule.of(space, constraint)
        if rule.knobs:
            by_last_knob[max(rule.knobs)].append(rule)
        elif not rule.holds({})[0]:
            return None
    return tuple(map(_checks_of, by_last_knob))


def _checks_of(rules: list[Rule]) -> _Checks:
    tables = []
    slow = []
    for rule in rules:
        if rule.table is None:
            slow.append(rule)
        else:
            tables.append(rule.table)
    return _Checks(join_tables(tables), tuple(slow))


def _order(knob: Knob, own: Value | None, fallback: Value | None) -> tuple[int, ...]:
    """Returns the indices of a knob's choices in the order in which they are tried.

    First ``own``, the value of the configuration, then ``fallback``, then smaller numbers, the nearest first,
    then larger ones, then all others.
    """
    values = [value for value in (own, fallback) if value is not None and value in knob.choices]
    if isinstance(own, int) and not knob.is_text:
        numbers = sorted(map(int, knob.choices))
        values += reversed(numbers[: bisect_left(numbers, own)])
        values += numbers[bisect_right(numbers, own) :]
    values += knob.choices
    return tuple(map(knob.choices.index, dict.fromkeys(values)))
