"""Search methods without a model of their own: evolution, hill climbing, ensemble, random, exhaustive."""

from bisect import bisect_right

import numpy as np

from tuner.search.configurations import Pool
from tuner.search.method import AbstractMethod, SearchTask, is_starting, start_row
from tuner.search.surrogates import Tpe, Trees

# A steady-state genetic algorithm: children of fast rows, each replaced by the nearest feasible row.
# Goldberg and Deb, 1991, https://doi.org/10.1016/B978-0-08-050684-5.50008-2, for tournaments of two; uniform
# crossover and one mutation per child on average are standard.

POPULATION = 20  # the fastest rows, and the random rows of the start
CROSSOVER = 0.5  # probability that a knob comes from the second parent
EXPLORE = 0.05  # probability of a random row: escapes local minima
CLIMBED = 3  # fastest rows whose neighbours come first
PROBE_EVERY = 2  # proposals
REMEMBERED = 5  # latest probes of a method: a method that is good at the start may not be good later
UNKNOWN = 1.0  # credit of a method without a probe: the largest


class Evolution(AbstractMethod):
    """A genetic algorithm: crosses two of the 20 fastest configurations and mutates the child."""

    def choose(self, rng: np.random.Generator) -> int:
        pool = self.task.pool
        if is_starting(self.task):
            return start_row(self.task, rng)
        parents = pool.fastest()[:POPULATION]
        if len(pool.order) < POPULATION or not parents:
            return int(pool.draw(rng, 1)[0])
        codes = self.task.table.codes
        columns = self.task.table.columns
        # a tournament of two: the smaller index is the faster row
        first, second = (parents[int(rng.integers(len(parents), size=2).min())] for _ in range(2))
        child = np.where(rng.random(len(columns)) < CROSSOVER, codes[second], codes[first])
        mutated = rng.integers([column.levels for column in columns])
        child = np.where(rng.random(len(columns)) < 1 / max(1, len(columns)), mutated, child)
        scope = self.task.scope(rng)
        return self.task.best_unseen(scope, -scope.table.differences(child), rng)


class Exhaustive(AbstractMethod):
    """Exhaustive search: chooses the configuration with the smallest index that is not proposed yet."""

    def choose(self, rng: np.random.Generator) -> int:
        return int(np.argmax(self.task.pool.unseen))


class Local(AbstractMethod):
    """Hill climbing: chooses a configuration that differs in one knob from one of the fastest."""

    def choose(self, rng: np.random.Generator) -> int:
        pool = self.task.pool
        fastest = pool.fastest()
        if is_starting(self.task):
            return start_row(self.task, rng)
        if not fastest or rng.random() < EXPLORE:
            return int(pool.draw(rng, 1)[0])
        for row in fastest[:CLIMBED]:
            surrounding = [near for near in self.task.neighbours.of(row) if pool.unseen[near]]
            if surrounding:
                return int(rng.choice(surrounding))
        scope = self.task.scope(rng)
        changed = (scope.table.codes != self.task.table.codes[fastest[0]]).sum(axis=1)
        return self.task.best_unseen(scope, -changed.astype(np.float32), rng)


# trees and evolution are not samplers by name: alone they win nowhere (docs/decisions/search.md)
ARMS: tuple[type[AbstractMethod], ...] = (Tpe, Local, Trees, Evolution)


# A bandit over other search methods: every second proposal probes one of the methods, round-robin.
# The method with the best probes makes the other proposals.
# Which method made a proposal is not stored, but follows from the index of the proposal; only probes are
# credited. A resumed run therefore gives the same credit as an uninterrupted one. Credit by rank in a sliding
# window: Fialho et al., 2010, https://doi.org/10.1007/978-3-642-15844-5_24.


class Ensemble(AbstractMethod):
    """A search by four methods (ARMS): every second proposal tries one of them in turn.

    The other proposals use the method with the most credit.
    """

    def __init__(self, task: SearchTask) -> None:
        AbstractMethod.__init__(self, task)
        self._arms = tuple(arm(task) for arm in ARMS)

    def choose(self, rng: np.random.Generator) -> int:
        if is_starting(self.task):
            return start_row(self.task, rng)
        probe = probed(len(self.task.pool.order))
        return self._arms[best(self.task.pool) if probe is None else probe].choose(rng)


def probed(number: int) -> int | None:
    """Returns the index in ARMS of the method that makes proposal ``number`` (0, 1, ...) as its probe.

    Every second proposal is a probe, of each method in turn; the other proposals use the best method: None.
    """
    if number % PROBE_EVERY:
        return None
    return (number // PROBE_EVERY) % len(ARMS)


def best(pool: Pool) -> int:
    """Returns the index in ARMS of the search method with the most credit; among equals the first."""
    earned = [credit(pool, arm) for arm in range(len(ARMS))]
    return earned.index(max(earned))


def credit(pool: Pool, arm: int) -> float:
    """Returns how good the latest probes of a search method were, 0 to 1; ``arm``: its index in ARMS.

    Probes are the proposals with an outcome that ``probed`` gives to the method by their index, also if they
    were initial configurations. A
    probe is worth the number of timed outcomes that are not faster, divided by the number of outcomes
    (failures included); a failed probe 0. The result is the mean over the latest 5 (REMEMBERED) probes; 1
    without a probe.
    """
    slowest_first = sorted(-value for value in pool.outcomes.values() if value is not None)
    probes = [row for index, row in enumerate(pool.order) if probed(index) == arm and row in pool.outcomes]
    if not probes:
        return UNKNOWN
    worths = []
    for row in probes[-REMEMBERED:]:
        value = pool.outcomes[row]
        not_faster = 0 if value is None else bisect_right(slowest_first, -value)
        worths.append(not_faster / len(pool.outcomes))
    return float(np.mean(worths))


class RandomRows(AbstractMethod):
    """Random search: chooses a random configuration that was not proposed; the baseline of other methods."""

    def choose(self, rng: np.random.Generator) -> int:
        return int(self.task.pool.draw(rng, 1)[0])
