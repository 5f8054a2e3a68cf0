"""The table of samplers by name: SAMPLERS, Optuna's, and those of extensions (entry points)."""

import importlib
from functools import partial
from typing import TYPE_CHECKING

from tuner.core.errors import UsageError, unknown_value
from tuner.runtime.extensions import extensions, failing_in, load

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

    The rows ``first`` are proposed first; configurations that break a preference last. ``prior``: result of
    ``prior.encoded``, which "tpe" and "ensemble" use. Raises UsageError for an unknown name, for missing
    packages, for a negative seed, and for a prior of other configurations. What a sampler of another
    distribution raises, and a proposal that is wrong, is a TunerError that names both.
    """
    require_sampler(name)
    if seed < 0:
        raise UsageError(f"seed: found {seed}, allowed 0 and more")
    from tuner.search.configurations import Pool  # not at start-up
    from tuner.search.method import (  # not at start-up
        DemotedLast,
        SearchTask,
        StudySampler,
    )
    from tuner.search.prior import decoded  # not at start-up

    def create(task: SearchTask) -> "AbstractMethod":
        if name.startswith(OPTUNA):
            optuna_rows = importlib.import_module("tuner.search.optuna_samplers").OptunaRows
            method: AbstractMethod = optuna_rows(task, name.removeprefix(OPTUNA))
            return method
        return _class_of(name)(task)

    levels = decoded(prior, feasible.rows) if prior else None
    task = SearchTask(feasible, Pool(feasible.rows, first), seed, levels)
    extension = extensions("samplers", SAMPLERS).get(name)
    with failing_in(extension, f"sampler {name!r}"):
        method = create(task) if feasible.is_preferred.all() else DemotedLast(task, create)
        return StudySampler(method, partial(failing_in, extension, f"sampler {name!r}"))


def require_sampler(name: str) -> None:
    """Raises UsageError unless ``name`` is the name of a sampler: "tpe", "optuna:gp", or an extension's."""
    if name in SAMPLERS or (name.startswith(OPTUNA) and name.removeprefix(OPTUNA) in OPTUNA_NAMES):
        return
    known = sampler_names()
    if name not in known:
        raise unknown_value("sampler", name, known)


def sampler_names() -> tuple[str, ...]:
    """Returns the names of all samplers: the base's, those of extensions, Optuna's. Imports none of them."""
    return (
        *SAMPLERS,
        *extensions("samplers", SAMPLERS),
        *(f"{OPTUNA}{optuna_name}" for optuna_name in OPTUNA_NAMES),
    )


def _class_of(name: str) -> "type[AbstractMethod]":
    if name not in SAMPLERS:
        added: type[AbstractMethod] = load("samplers", name, SAMPLERS)
        return added
    module, class_name = SAMPLERS[name]
    method: type[AbstractMethod] = getattr(importlib.import_module(f"tuner.search.{module}"), class_name)
    return method
