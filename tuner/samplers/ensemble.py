"""A bandit over other search methods: every second proposal probes one of the methods, round-robin.

The method with the best probes makes the other proposals.

The method that made a proposal is not stored, so it follows from the index of the proposal; only probes are
credited. A resumed run therefore gives the same credit as an uninterrupted one. Credit by rank in a sliding
window: Fialho et al., 2010, https://doi.org/10.1007/978-3-642-15844-5_24.
"""

from bisect import bisect_right

import numpy as np

from tuner.samplers.evolution import Evolution
from tuner.samplers.initial_rows import is_starting, start_row
from tuner.samplers.local import Local
from tuner.samplers.method import AbstractMethod
from tuner.samplers.proposals import Pool
from tuner.samplers.task import SearchTask
from tuner.samplers.tpe import Tpe
from tuner.samplers.trees import Trees

PROBE_EVERY = 2  # proposals
REMEMBERED = 5  # latest probes of a method: a method that is good at the start may not be good later
UNKNOWN = 1.0  # credit of a method without a probe: the largest


# trees and evolution are no samplers by name: alone they win nowhere (docs/decisions/0047)
ARMS: tuple[type[AbstractMethod], ...] = (Tpe, Local, Trees, Evolution)


class Ensemble(AbstractMethod):
    """Search by four methods: every second proposal tries each method in rotation, the rest use the best.

    The best method is the one with the most credit, which the outcomes of its latest tries give.
    """

    def __init__(self, task: SearchTask) -> None:
        AbstractMethod.__init__(self, task)
        self._arms = tuple(arm(task) for arm in ARMS)

    def choose(self, rng: np.random.Generator) -> int:
        """Returns the index of the configuration that the probed method, or the best method, chooses.

        At the start of a run, before models can be fitted, returns that of ``start_row``.
        """
        if is_starting(self.task):
            return start_row(self.task, rng)
        probe = probed(len(self.task.pool.order))
        return self._arms[best(self.task.pool) if probe is None else probe].choose(rng)


def probed(turn: int) -> int | None:
    """Returns which method proposal ``turn`` (0, 1, ...) probes and is credited to, by its index in ARMS.

    None if the proposal is no probe: then the method with the most credit makes it. Counts all proposals: the
    first ones, which are made before any method is asked, are credited in the same way.
    """
    return None if turn % PROBE_EVERY else (turn // PROBE_EVERY) % len(ARMS)


def best(pool: Pool) -> int:
    """Returns the search method with the most credit, by its index in ARMS; of equal credits the first."""
    earned = [credit(pool, arm) for arm in range(len(ARMS))]
    return earned.index(max(earned))


def credit(pool: Pool, arm: int) -> float:
    """Returns how good the latest probes of a search method were, 0 to 1; ``arm`` is its index in ARMS.

    The probes are the latest 5 (REMEMBERED) proposals with an outcome that ``probed`` credits to the method.
    For each probe: the share of all outcomes that are times no shorter than the probe's; 0 for a failure. The
    result is their mean, and 1 for a method without a probe.
    """
    slower = sorted(-value for value in pool.outcomes.values() if value is not None)
    probes = [row for turn, row in enumerate(pool.order) if probed(turn) == arm and row in pool.outcomes]
    beaten = [
        0.0 if (value := pool.outcomes[row]) is None else bisect_right(slower, -value) / len(pool.outcomes)
        for row in probes[-REMEMBERED:]
    ]
    return float(np.mean(beaten)) if beaten else UNKNOWN
