"""Kernel Tuner's search methods on a space whose times are known, in Kernel Tuner's simulation mode.

Needs the package ``kernel-tuner``; no GPU.
"""

import contextlib
import importlib.util
import io
import json
import random
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search.replay_run import ReplayedSearch
from benchmarks.search.replay_space import ReplaySpace
from tuner.core.candidate import Value
from tuner.space.search_space import Knob

PREFIX = "kernel_tuner:"  # how the names of its searches begin
# all of its searches that need no further package, but exhaustive and multi-objective ones
SEARCHES = (
    *("random_sample", "genetic_algorithm", "diff_evo", "pso", "firefly_algorithm", "simulated_annealing"),
    *("dual_annealing", "basinhopping", "minimize", "mls", "greedy_mls", "ordered_greedy_mls", "greedy_ils"),
    *("hybrid_vndx", "adaptive_tabu_greywolf", "bayes_opt"),
)
MS = 1e3


def is_installed() -> bool:
    """Returns whether Kernel Tuner can be imported."""
    return importlib.util.find_spec("kernel_tuner") is not None


def write_cache(space: ReplaySpace, path: Path) -> None:
    """Writes the space of one strategy as a cache for the simulation mode."""
    knobs = _knobs(space)
    cache = {}
    for row, time_s in enumerate(space.times_s.tolist()):
        values = dict(space.feasible.candidate(row).choices)
        picked = {knob.name: values[knob.name] for knob in knobs}
        cache[",".join(str(value) for value in picked.values())] = {**picked, **_costs(time_s)}
    document = {
        "device_name": "replayed",
        "kernel_name": "replayed",
        "problem_size": [1],
        "tune_params_keys": [knob.name for knob in knobs],
        "tune_params": {knob.name: list(knob.choices) for knob in knobs},
        "objective": "time",
        "cache": cache,
    }
    path.write_text(json.dumps(document))


def replay_kernel_tuner(
    space: ReplaySpace, cache: Path, search: str, seed: int, evaluations: int
) -> ReplayedSearch:
    """Searches with one of Kernel Tuner's methods, among allowed configurations only, as the tuner does."""
    import kernel_tuner

    knobs = _knobs(space)
    np.random.seed(seed)  # some of its searches take no seed
    random.seed(seed)
    start = time.perf_counter()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # that the kernel, which is never compiled, takes no arguments
        results, _ = kernel_tuner.tune_kernel(
            "replayed",
            "__kernel void replayed() {}",
            (1,),
            [],
            {knob.name: list(knob.choices) for knob in knobs},
            restrictions=_allowed(space, knobs),
            lang="OpenCL",
            cache=str(cache),
            simulation_mode=True,
            strategy=search,
            strategy_options={"max_fevals": evaluations},
            iterations=1,
            quiet=True,
            seed=seed,
        )
    spent_s = time.perf_counter() - start
    found = np.array(list(_found(results, [knob.name for knob in knobs])))
    return ReplayedSearch(_held(found, evaluations), len(found), len(results), spent_s)


def _knobs(space: ReplaySpace) -> tuple[Knob, ...]:
    (only,) = space.feasible.spaces  # of several strategies, Kernel Tuner knows nothing
    return only.knobs


def _costs(time_s: float) -> dict[str, Any]:
    """Returns the entries of a cache besides the knobs; compiling and timing cost nothing."""
    timed: dict[str, Any] = (
        {"time": "RuntimeFailedConfig", "times": []}
        if np.isnan(time_s)
        else {"time": time_s * MS, "times": [time_s * MS]}
    )
    free = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
    return {**timed, **dict.fromkeys(free, 0), "timestamp": "2000-01-01 00:00:00+00:00"}


def _allowed(space: ReplaySpace, knobs: tuple[Knob, ...]) -> Callable[[dict[str, Value]], bool]:
    index = space.feasible.index[0]
    rows = set(map(tuple, index.tolist()))
    ranks = {knob.name: {choice: rank for rank, choice in enumerate(knob.choices)} for knob in knobs}

    def is_allowed(picked: dict[str, Value]) -> bool:
        return tuple(ranks[knob.name][picked[knob.name]] for knob in knobs) in rows

    return is_allowed


def _found(results: list[dict[str, Any]], names: list[str]) -> Iterator[float]:
    """Yields the best time after each evaluation; a repeated evaluation is not counted."""
    best, seen = np.inf, set()
    for result in results:
        key = tuple(result[name] for name in names)
        if key in seen:
            continue
        seen.add(key)
        if isinstance(result["time"], int | float):
            best = min(best, result["time"] / MS)
        yield best


def _held(found: np.ndarray, evaluations: int) -> np.ndarray:
    """Returns an array of ``evaluations`` steps: a search that ended early keeps its best time."""
    short = max(0, evaluations - len(found))
    return np.append(found, np.full(short, found[-1] if len(found) else np.inf))[:evaluations]
