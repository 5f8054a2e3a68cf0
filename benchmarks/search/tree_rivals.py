"""Two tree-based search methods of other tuners, on scikit-learn: rivals of the samplers, for comparison.

``forest`` follows SMAC and BaCO: a random forest of log seconds, expected improvement at every unseen row,
and sometimes a random row. ``lfbo`` follows Helion: trees classify rows as good, weighted by their
improvement (Song et al., 2022, https://arxiv.org/abs/2206.13035); the most probable rows of a generation are
tried together.
"""

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.search.replay_run import ReplayedSearch
from benchmarks.search.replay_space import ReplaySpace
from tuner.search.surrogates import log_expected_improvement

PREFIX = "scikit_learn:"
START_ROWS = 10
FOREST_TREES, LFBO_TREES = 10, 100
RANDOM_SHARE = 0.2  # of the forest's proposals: SMAC's for hyperparameters
GOOD_SHARE = 0.1  # of the rows with an outcome, classified as good
GENERATION = 10  # rows that are tried between two fits of the classifier

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Told:
    """The state of a rival: features of every row, unseen rows, and log seconds of the rows tried."""

    features: Array  # (rows, features)
    unseen: npt.NDArray[np.intp]
    rows: list[int]
    logs: Array  # of the tried rows; failures count as the slowest


Choice = Callable[[Told, np.random.Generator], list[int]]


def is_installed() -> bool:
    """Returns whether scikit-learn can be imported."""
    return importlib.util.find_spec("sklearn") is not None


def replay_tree_rival(space: ReplaySpace, rival: str, seed: int, evaluations: int) -> ReplayedSearch:
    """Searches with a rival, from random rows on."""
    rng = np.random.default_rng(seed)
    features = _features(space)
    is_unseen = np.ones(len(features), bool)
    rows: list[int] = []
    asks, spent_s = 0, 0.0
    while len(rows) < min(evaluations, len(features)):
        start = time.perf_counter()
        unseen = np.flatnonzero(is_unseen)
        given = Told(features, unseen, rows, _logs(space.times_s[rows]))
        chosen = RIVALS[rival](given, rng) if len(rows) >= START_ROWS else [int(rng.choice(unseen))]
        asks, spent_s = asks + 1, spent_s + time.perf_counter() - start
        is_unseen[chosen] = False
        rows += chosen
    times_s = np.nan_to_num(space.times_s[rows[:evaluations]], nan=np.inf)
    return ReplayedSearch(np.minimum.accumulate(times_s), len(times_s), asks, spent_s)


def _forest(given: Told, rng: np.random.Generator) -> list[int]:
    """Returns the row with the largest expected improvement, or a random row."""
    from sklearn.ensemble import RandomForestRegressor

    if rng.random() < RANDOM_SHARE:
        return [int(rng.choice(given.unseen))]
    forest = RandomForestRegressor(FOREST_TREES, random_state=int(rng.integers(2**31)))
    forest.fit(given.features[given.rows], given.logs)
    rows = given.features[given.unseen].astype(np.float32)
    said = np.stack([tree.predict(rows) for tree in forest.estimators_])
    deviation = np.maximum(said.std(axis=0), 1e-3)
    gain = log_expected_improvement(
        said.mean(axis=0).astype(np.float32), deviation.astype(np.float32), float(given.logs.min())
    )
    return [int(rng.choice(given.unseen[gain >= gain.max()]))]


def _lfbo(given: Told, rng: np.random.Generator) -> list[int]:
    """Returns the rows that are most probably good."""
    from sklearn.ensemble import RandomForestClassifier

    limit = float(np.quantile(given.logs, GOOD_SHARE))
    gained = np.maximum(limit - given.logs, 0)
    is_good = given.logs <= limit
    mean = gained[is_good].mean() or 1.0
    weights = np.where(is_good, np.maximum(gained / mean, 1e-3), 1.0)
    trees = RandomForestClassifier(LFBO_TREES, random_state=int(rng.integers(2**31)))
    trees.fit(given.features[given.rows], is_good, sample_weight=weights)
    said = trees.predict_proba(given.features[given.unseen])
    good = said[:, -1] + 1e-6 * rng.random(len(said))
    return [int(row) for row in given.unseen[np.argsort(-good)[:GENERATION]]]


RIVALS: dict[str, Choice] = {"forest": _forest, "lfbo": _lfbo}


def _features(space: ReplaySpace) -> Array:
    """Returns the value of each integer, the rank of each text: trees use the order alone."""
    matrix = space.feasible.matrix()
    columns = []
    for place, values in enumerate(matrix.values):
        numbers = values if all(isinstance(value, int) for value in values) else range(len(values))
        known = np.array([*numbers, -1], np.float64)  # the last: a strategy without this knob
        columns.append(known[matrix.rows[:, place]])
    return np.stack(columns, axis=1)


def _logs(times_s: Array) -> Array:
    slowest = np.nanmax(times_s, initial=0.0) or 1.0
    return np.array([math.log(slowest if np.isnan(time_s) else time_s) for time_s in times_s])
