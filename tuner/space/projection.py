"""Projection: the configuration that a configuration of one problem becomes on another problem.

Constraints depend on sizes, so the knob values that suit one problem are often not allowed for another one. A
projected configuration keeps the given values where the constraints of the other problem allow that, and has
near values elsewhere. It depends on the configuration and the other search space alone, never on a sample.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tuner.core.candidate import Candidate, Value
from tuner.space.search_space import Knob, Rule, SearchSpace, Truth, join_tables

VISITS_LIMIT = 4_000  # values tried for one configuration: at most a second or two


def projected(candidate: Candidate, space: SearchSpace) -> Candidate | None:
    """Returns the allowed configuration of ``space`` that ``candidate`` becomes, or None if there is none.

    For many candidates, one ``Projection`` is faster.
    """
    return Projection(space).of(candidate)


class Projection:
    """Projects configurations of a strategy into the search space of one problem."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._checks = _checks(space)

    def of(self, candidate: Candidate) -> Candidate | None:
        """Returns the configuration that ``candidate`` becomes in the search space.

        Knob after knob, in the space's order, gets the first value that the constraints allow: of the
        candidate's value, the space's ``projection`` value, the next smaller and the next larger ones; where
        none is allowed, the knob before gets its next value. An allowed configuration is its own projection.
        None for another strategy, and where 4000 (VISITS_LIMIT) tried values give no configuration.
        """
        if candidate.strategy != self._space.strategy or self._checks is None:
            return None
        own, instead = dict(candidate.choices), dict(self._space.projection)
        orders = tuple(_order(knob, own.get(knob.name), instead.get(knob.name)) for knob in self._space.knobs)
        picks = next(_Search(self._checks, orders).allowed([]), None)
        if picks is None:
            return None
        values = {knob.name: knob.choices[pick] for knob, pick in zip(self._space.knobs, picks, strict=True)}
        return Candidate.of(self._space.strategy, values)


@dataclass(frozen=True, eq=False)
class _Checks:
    """What is checked when a knob has a value: the constraints that name it and only knobs before it."""

    tables: tuple[tuple[tuple[int, ...], Truth], ...]  # (knobs, truth by their choices)
    rules: tuple[Rule, ...]  # without a table

    def hold(self, picks: list[int]) -> bool:
        """Returns whether the constraints hold for the choices of the first knobs."""
        if not all(truth[tuple([picks[knob] for knob in knobs])] for knobs, truth in self.tables):
            return False
        return all(
            rule.holds({knob: np.array([picks[knob]]) for knob in rule.knobs})[0] for rule in self.rules
        )


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
    rules = [Rule.of(space, constraint) for constraint in space.constraints]
    if not all(rule.holds({})[0] for rule in rules if not rule.knobs):
        return None
    checks = []
    for knob in range(len(space.knobs)):
        ready = [rule for rule in rules if rule.knobs and max(rule.knobs) == knob]
        tables = join_tables(rule.table for rule in ready if rule.table is not None)
        slow = tuple(rule for rule in ready if rule.table is None)
        checks.append(_Checks(tuple((table.knobs, table.truth) for table in tables), slow))
    return tuple(checks)


def _order(knob: Knob, own: Value | None, instead: Value | None) -> tuple[int, ...]:
    values = [value for value in (own, instead) if value in knob.choices]
    if isinstance(own, int) and not knob.is_text:
        numbers = sorted(int(choice) for choice in knob.choices)
        values += [number for number in reversed(numbers) if number < own]
        values += [number for number in numbers if number > own]
    values += knob.choices
    return tuple(knob.choices.index(value) for value in dict.fromkeys(values))
