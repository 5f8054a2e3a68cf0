"""Search methods over a feasible set: one file and one line each."""

import importlib
from typing import TYPE_CHECKING

from tuner.errors import UsageError
from tuner.feasible import FeasibleSet
from tuner.sampler import AbstractSampler

if TYPE_CHECKING:
    from tuner.samplers.method import AbstractMethod
    from tuner.samplers.task import Task

# name -> module and class of the method; imported when one is made, because Optuna is slow to import
SAMPLERS: dict[str, tuple[str, str]] = {
    "tpe": ("tpe", "Tpe"),
    "trees": ("trees", "Trees"),
    "local": ("local", "Local"),
    "evolution": ("evolution", "Evolution"),
    "ensemble": ("ensemble", "Ensemble"),
    "random": ("random_rows", "RandomRows"),
    "exhaustive": ("exhaustive", "Exhaustive"),
}


OPTUNA = "optuna:"  # before the name of one of Optuna's own
OPTUNA_NAMES = ("tpe", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc", "random")


def make_sampler(name: str, feasible: FeasibleSet, seed: int, first: tuple[int, ...] = ()) -> AbstractSampler:
    """Returns a sampler that proposes the rows ``first``, then what its method chooses.

    Raises UsageError for an unknown name, one whose packages are missing, or a negative seed.
    """
    require_sampler(name)
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 and more")
    from tuner.samplers.pool import Pool
    from tuner.samplers.study import StudySampler
    from tuner.samplers.task import Task

    pool = Pool(feasible.rows)
    return StudySampler(_method(name, Task(feasible, pool, seed, first)), pool)


def require_sampler(name: str) -> None:
    """Raises UsageError for an unknown name."""
    if name in SAMPLERS or (name.startswith(OPTUNA) and name.removeprefix(OPTUNA) in OPTUNA_NAMES):
        return
    raise UsageError(
        f"sampler: found {name!r}, allowed {', '.join(SAMPLERS)}, {OPTUNA}{{{','.join(OPTUNA_NAMES)}}}"
    )


def _method(name: str, task: "Task") -> "AbstractMethod":
    if name.startswith(OPTUNA):
        from tuner.samplers.optuna_rows import OptunaRows

        return OptunaRows(task, name.removeprefix(OPTUNA))
    module, method = SAMPLERS[name]
    made: AbstractMethod = getattr(importlib.import_module(f"tuner.samplers.{module}"), method)(task)
    return made
