"""Search methods over a feasible set: one entry of SAMPLERS each."""

import importlib
from typing import TYPE_CHECKING

from tuner.core.errors import UsageError, unknown_value

if TYPE_CHECKING:
    from tuner.search.method import AbstractMethod, StudySampler
    from tuner.space.feasible_set import FeasibleSet

# name -> module and class of the method, imported on use: Optuna is slow to import
SAMPLERS: dict[str, tuple[str, str]] = {
    "tpe": ("surrogates", "Tpe"),
    "local": ("simple_methods", "Local"),
    "ensemble": ("simple_methods", "Ensemble"),
    "random": ("simple_methods", "RandomRows"),
    "exhaustive": ("simple_methods", "Exhaustive"),
}
OPTUNA = "optuna:"  # prefix of Optuna's samplers
OPTUNA_NAMES = ("tpe", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc", "random")


def make_sampler(
    name: str, feasible: "FeasibleSet", seed: int, first: tuple[int, ...] = (), prior: str = ""
) -> "StudySampler":
    """Returns the sampler ``name``, which proposes the configurations of a feasible set.

    The configurations with the indices ``first`` come first; of the others, those that break a preference
    come last. ``prior``: what ``prior.encoded`` made of times on other machines, which "tpe" and "ensemble"
    use. Raises UsageError for an unknown name, for a sampler whose packages are missing, for a negative seed
    and for a prior of other configurations.
    """
    require_sampler(name)
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 and more")
    from tuner.search.configurations import Pool  # not at start-up
    from tuner.search.method import (  # not at start-up
        DemotedLast,
        SearchTask,  # not at start-up
        StudySampler,
    )
    from tuner.search.prior import decoded  # not at start-up

    def create(task: SearchTask) -> "AbstractMethod":
        module, class_name = SAMPLERS.get(name, ("optuna_samplers", "OptunaRows"))
        kind = getattr(importlib.import_module(f"tuner.search.{module}"), class_name)
        method: AbstractMethod = kind(task) if name in SAMPLERS else kind(task, name.removeprefix(OPTUNA))
        return method

    levels = decoded(prior, feasible.rows) if prior else None
    task = SearchTask(feasible, Pool(feasible.rows, first), seed, levels)
    return StudySampler(create(task) if feasible.is_preferred.all() else DemotedLast(task, create))


def require_sampler(name: str) -> None:
    """Raises UsageError unless ``name`` is a sampler that ``make_sampler`` knows: "tpe", "optuna:gp", ..."""
    if name in SAMPLERS or (name.startswith(OPTUNA) and name.removeprefix(OPTUNA) in OPTUNA_NAMES):
        return
    raise unknown_value("sampler", name, (*SAMPLERS, *(f"{OPTUNA}{each}" for each in OPTUNA_NAMES)))
