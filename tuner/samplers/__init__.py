"""Search methods over a feasible set: one file and one line each."""

import importlib

from tuner.errors import UsageError
from tuner.feasible import FeasibleSet
from tuner.sampler import AbstractSampler

# name -> module and class of the method; imported when one is made, because Optuna is slow to import
SAMPLERS: dict[str, tuple[str, str]] = {
    "tpe": ("tpe", "Tpe"),
    "random": ("random_rows", "RandomRows"),
    "exhaustive": ("exhaustive", "Exhaustive"),
}


def make_sampler(name: str, feasible: FeasibleSet, seed: int, first: tuple[int, ...] = ()) -> AbstractSampler:
    """Returns a sampler that proposes the rows ``first``, then what its method chooses.

    Raises UsageError for an unknown name or a negative seed.
    """
    if name not in SAMPLERS:
        raise UsageError(f"sampler: found {name!r}, allowed {', '.join(SAMPLERS)}")
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 and more")
    from tuner.samplers.pool import Pool
    from tuner.samplers.study import StudySampler

    module, method = SAMPLERS[name]
    pool = Pool(feasible.rows)
    made = getattr(importlib.import_module(f"tuner.samplers.{module}"), method)
    return StudySampler(made(feasible, pool, seed, first), pool)
