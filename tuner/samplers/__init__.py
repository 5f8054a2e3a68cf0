"""Search methods over a feasible set: one file and one line each."""

import importlib
from typing import TYPE_CHECKING

from tuner.core.errors import UsageError
from tuner.core.sampler import AbstractSampler

if TYPE_CHECKING:  # the command line reads the names for its help
    from tuner.samplers.method import AbstractMethod
    from tuner.samplers.task import SearchTask
    from tuner.space.feasible_set import FeasibleSet

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


def make_sampler(
    name: str, feasible: "FeasibleSet", seed: int, first: tuple[int, ...] = ()
) -> AbstractSampler:
    """Returns a sampler that proposes the rows ``first``, then what its method chooses, demoted rows last.

    Raises UsageError for an unknown name, one whose packages are missing, or a negative seed.
    """
    require_sampler(name)
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 and more")
    if feasible.is_preferred.all():
        return _sampler(name, feasible, seed, first)
    from tuner.samplers.demoted_last import DemotedLast

    return DemotedLast(feasible, lambda part: _sampler(name, part, seed), first)


def _sampler(name: str, feasible: "FeasibleSet", seed: int, first: tuple[int, ...] = ()) -> AbstractSampler:
    from tuner.samplers.proposals import Pool
    from tuner.samplers.study import StudySampler
    from tuner.samplers.task import SearchTask

    pool = Pool(feasible.rows)
    return StudySampler(_method(name, SearchTask(feasible, pool, seed, first)), pool)


def require_sampler(name: str) -> None:
    """Raises UsageError for an unknown name."""
    if name in SAMPLERS or (name.startswith(OPTUNA) and name.removeprefix(OPTUNA) in OPTUNA_NAMES):
        return
    raise UsageError(
        f"sampler: found {name!r}, allowed {', '.join(SAMPLERS)}, {OPTUNA}{{{','.join(OPTUNA_NAMES)}}}"
    )


def _method(name: str, task: "SearchTask") -> "AbstractMethod":
    if name.startswith(OPTUNA):
        from tuner.samplers.optuna_rows import OptunaRows

        return OptunaRows(task, name.removeprefix(OPTUNA))
    module, method = SAMPLERS[name]
    made: AbstractMethod = getattr(importlib.import_module(f"tuner.samplers.{module}"), method)(task)
    return made
