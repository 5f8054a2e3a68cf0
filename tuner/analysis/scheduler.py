"""The scheduler of a campaign: which problem gets the next trial, and which configuration is tried on it.

A campaign tunes many problems under one budget, with a common pool of configurations.
"""

import math
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tuner.analysis.time_matrix import KnownTimes, corrected_scores, octaves_of, require_sizes
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem

# The worst efficiency with 3, 4 and 5 rounds is .88, .92 and .92, after 15 % of all trials in the replay of
# benchmarks/results/many_shapes_replay.json
ROUNDS = 4  # trials of every problem before times decide
POOL_TRIALS = 16  # of a problem: from then on the sampler proposes every second one
EXPLORED = 0.05  # share of trials that go to a random problem
WINDOW = 3  # trials over which the latest gain is counted
# Time over least time of a problem without a time: the greatest ratio of those with one, or this if that is
# more. Large products are near their least time; rows and elementwise fusions take several times as long.
UNTIMED_RATIO = 2.0
LEAST_LEFT = 0.05  # share of a time that a trial may save, also where the roofline allows no shorter time
QUIET = 16  # trials without a gain of SMALL after which a problem gets none while others still gain
SMALL = 0.01  # of a time
REST = 0.05  # of the time of all problems: if those that still gain can save no more, the search ends
LATEST = 0.2  # weight of the latest gain; the rest is the time left divided by the number of trials


@dataclass(frozen=True)
class ColumnPool:
    """The configurations of a campaign (columns), and the projection of each onto every problem of it.

    The projection is the nearest configuration that the constraints of the problem allow. Raises ValueError
    for tables of another size than problems x columns, and for a cost that is not positive.
    """

    problems: tuple[Problem, ...]
    counts: tuple[int, ...]  # how often each problem occurs in what is tuned, at least 1
    columns: tuple[Candidate, ...]  # unprojected, each once
    # [problem][column]: the projection; None: it does not apply
    candidates: tuple[tuple[Candidate | None, ...], ...]
    costs: tuple[tuple[float, ...], ...]  # [problem][column], of the cost model; inf where there is none
    is_demoted: tuple[tuple[bool, ...], ...]  # [problem][column]: it breaks a preference, so it comes last
    firsts: tuple[int | None, ...] = ()  # [problem]: the column that it has without tuning; (): not known

    def __post_init__(self) -> None:
        tables = {"candidates": self.candidates, "costs": self.costs, "is_demoted": self.is_demoted}
        require_sizes(len(self.problems), len(self.columns), self.counts, **tables)
        if any(cost <= 0 or math.isnan(cost) for cost in chain.from_iterable(self.costs)):
            raise ValueError("costs: found a cost that is not positive")

    def equal_columns(self, problem: int, candidate: Candidate) -> list[int]:
        """Returns the indices of the configurations that become ``candidate`` on a problem (index)."""
        return [
            column for column, projection in enumerate(self.candidates[problem]) if projection == candidate
        ]


# Every problem gets ROUNDS trials, or none where a roofline says the least times, as of fusions: what has no
# trial then promises what its least time says. Its first one is the configuration that it has without tuning.
# The next trial goes where it promises to save most time, as in TVM's task scheduler
# (https://doi.org/10.48550/arXiv.1805.08166 and Ansor, https://arxiv.org/abs/2006.06762, section 6), weighted
# by how often a problem occurs, and by how far its time is from the least. Within a problem, configurations
# of the pool are tried in the order of the corrected cost model; where the pool ends, the run's own sampler
# proposes.


@dataclass(frozen=True)
class NextTrial:
    """The next trial of a campaign: the problem, and the configuration of the pool to try on it."""

    problem: int  # index of the problem
    column: int | None  # of the pool; None: the run's sampler proposes


class Scheduler:
    """Chooses the problem and the configuration of each trial of a campaign.

    The campaign calls ``suggest``, then ``take`` with what is tried, later ``tell`` with its time. A
    suggestion depends on its number, the constructor's arguments and the earlier calls alone.
    """

    def __init__(
        self, pool: ColumnPool, seed: int, floors_s: tuple[float, ...] = (), *, tries_all: bool = False
    ) -> None:
        """``floors_s``: per problem, its least possible seconds by a roofline; (): unknown.

        ``tries_all``: each problem gets a trial before any problem gets a second one, as if a user has set
        the number of trials; else a problem gets its first trial when it promises to save the most time.
        Raises ValueError if ``floors_s`` is neither empty nor of one number per problem.
        """
        if floors_s and len(floors_s) != len(pool.problems):
            raise ValueError(f"floors_s: found {len(floors_s)}, allowed {len(pool.problems)}")
        self._has_floors = bool(floors_s)
        self._tries_all = tries_all
        self._floors_s = np.array(floors_s or (0.0,) * len(pool.problems), np.float64)
        self._pool = pool
        self._seed = seed
        size = (len(pool.problems), len(pool.columns))
        self._costs = np.array(pool.costs, np.float64).reshape(size)
        self._octaves = octaves_of(pool.problems)
        self._times_s = np.full(size, np.nan)
        applies = [[projection is not None for projection in row] for row in pool.candidates]
        self._is_open = np.array(applies, np.bool_).reshape(size)
        self._is_demoted = np.array(pool.is_demoted, np.bool_).reshape(size)
        self._is_exhausted = [False] * len(pool.problems)  # the sampler has nothing more to propose
        self._taken = [0] * len(pool.problems)
        self._least_s: list[list[float]] = [[] for _ in pool.problems]  # least time after each outcome

    def suggest(self, number: int) -> NextTrial | None:
        """Returns the problem and configuration of trial ``number`` of the campaign.

        None if nothing is left to try.
        """
        problem = self._next_problem(np.random.default_rng((self._seed, number)))
        if problem is None:
            return None
        return NextTrial(problem, self._next_column(problem))

    def take(self, problem: int, candidate: Candidate) -> None:
        """Marks ``candidate`` as proposed on a problem (index): it is not suggested there again."""
        self._taken[problem] += 1
        self._is_open[problem, self._pool.equal_columns(problem, candidate)] = False

    def tell(self, problem: int, candidate: Candidate, time_s: float | None) -> None:
        """Stores the seconds per call of a candidate on a problem (index); None: failed or not timed."""
        least_s = self._least_s[problem]
        best_s = least_s[-1] if least_s else np.inf
        least_s.append(best_s if time_s is None else min(best_s, time_s))
        if time_s is not None:
            self._times_s[problem, self._pool.equal_columns(problem, candidate)] = time_s

    def end_sampler(self, problem: int) -> None:
        self._is_exhausted[problem] = True

    @property
    def has_nothing_left(self) -> bool:
        """Returns whether the problems that still improve can save at most REST (5 %) of the time of all.

        A problem's time cannot fall below its roofline. False if rooflines are not known, or if a problem
        that still improves has no time yet.
        """
        least_s = np.array([times[-1] if times else np.inf for times in self._least_s])
        is_open = np.array([not self._is_quiet(problem) for problem in range(len(least_s))])
        if not self._has_floors or not np.isfinite(least_s[is_open]).all():
            return False
        counts = np.array(self._pool.counts, np.float64)
        whole_s = counts[np.isfinite(least_s)] @ least_s[np.isfinite(least_s)]
        left_s = np.maximum(least_s[is_open] - self._floors_s[is_open], 0.0)
        return bool(counts[is_open] @ left_s <= REST * whole_s)

    def _is_quiet(self, problem: int) -> bool:
        times_s = self._least_s[problem]
        if self._is_exhausted[problem] and not self._is_open[problem].any():
            return True
        return len(times_s) > QUIET and not times_s[-1] < (1 - SMALL) * times_s[-1 - QUIET]

    def _next_problem(self, rng: np.random.Generator) -> int | None:
        left = [
            problem
            for problem, is_exhausted in enumerate(self._is_exhausted)
            if not is_exhausted or self._is_open[problem].any()
        ]
        if not left:
            return None
        gains = self._gains()
        if self._has_floors:
            for problem in left:
                if self._taken[problem] == 0 and (self._tries_all or np.isinf(gains[problem])):
                    return problem
            left = [problem for problem in left if not self._is_quiet(problem)] or left
        else:
            fewest = min(left, key=lambda problem: self._taken[problem])
            if self._taken[fewest] < ROUNDS:
                return fewest
        if rng.random() < EXPLORED:
            return int(rng.choice(left))
        gains = self._with_failed(gains)
        return max(left, key=lambda problem: gains[problem])

    def _gains(self) -> npt.NDArray[np.float64]:
        """Returns per problem the seconds that a trial promises to save, times the problem's count.

        inf for a problem without a time whose possible saving cannot be estimated from other problems.
        """
        gains = np.full(len(self._taken), np.inf)
        ratio = self._ratio()
        for problem, least_s in enumerate(self._least_s):
            if not least_s and ratio is not None and self._floors_s[problem] > 0:
                left_s = (ratio - 1) * self._floors_s[problem]
                gains[problem] = left_s / max(1, self._taken[problem])  # some of these are under way
            elif least_s and np.isfinite(least_s[-1]):
                # saved per trial by the last WINDOW trials; nothing where there was no time before them
                before = least_s[max(0, len(least_s) - 1 - WINDOW)]
                latest = (before - least_s[-1]) / WINDOW if np.isfinite(before) else 0.0
                # what could be saved at all, of which each trial so far makes the next one less promising
                left_s = max(least_s[-1] - self._floors_s[problem], LEAST_LEFT * least_s[-1])
                gains[problem] = LATEST * latest + (1 - LATEST) * left_s / max(1, self._taken[problem])
        return gains * np.array(self._pool.counts, np.float64)

    def _ratio(self) -> float | None:
        """Returns the greatest best time / roofline time, at least UNTIMED_RATIO; None before any time."""
        ratio = None
        for least_s, floor_s in zip(self._least_s, self._floors_s, strict=True):
            if least_s and np.isfinite(least_s[-1]) and floor_s > 0:
                ratio = max(ratio or UNTIMED_RATIO, float(least_s[-1] / floor_s))
        return ratio

    def _with_failed(self, gains: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        # without a time: as the most promising one after ROUNDS trials, and less with each trial that failed
        known = gains[np.isfinite(gains)]
        most = float(known.max()) if len(known) else 1.0
        return np.where(np.isfinite(gains), gains, ROUNDS * most / np.maximum(1, self._taken))

    def _next_column(self, problem: int) -> int | None:
        is_open = self._is_open[problem]
        first = self._pool.firsts[problem] if self._has_floors and self._pool.firsts else None
        if self._taken[problem] == 0 and first is not None and is_open[first]:
            return first
        preferred = is_open & ~self._is_demoted[problem]
        is_late = self._taken[problem] >= POOL_TRIALS and self._taken[problem] % 2 == 1
        if not self._is_exhausted[problem] and (is_late or not preferred.any()):
            return None
        known = KnownTimes(self._costs, self._times_s, self._octaves)
        scores = corrected_scores(known, self._costs[problem], self._octaves[problem])
        open_columns = np.flatnonzero(preferred if preferred.any() else is_open)
        return int(open_columns[np.argmin(scores[open_columns])])
