"""Timed trials of a GPU in a results database, for tests without one."""

from dataclasses import replace

from tests.db.values import SETTINGS, add, begin, outcome, timed
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import Failure
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.db.store import Store
from tuner.gpu.driver.probe import machine_for
from tuner.space.scripts.choice import first_configuration


def configuration(problem: Problem, number: int = 0, chip: str = "sm_90") -> tuple[Candidate, Script]:
    """Returns a configuration that works, and its script; ``number`` 0: the one that is used untuned."""
    chosen = first_configuration(problem, machine_for(chip_of(chip)), number)
    assert chosen is not None
    return chosen


def store_gpu_trial(
    store: Store,
    problem: Problem,
    chosen: tuple[Candidate, Script],
    result: Measurement | Verdict | Failure | float = 1e-6,
    target: str = "cuda:sm_90",
    machine: Machine | None = None,
) -> int:
    """Stores a run with one trial, by default timed with ``result`` seconds; returns the trial's ID."""
    named = TargetName.parse(target)
    candidate, script = chosen
    if isinstance(result, float):
        result = timed(result)
    settings = replace(SETTINGS, problem=problem, target=named)
    run = begin(store, settings, machine or machine_for(chip_of(named.detail or "sm_90")))
    record = replace(outcome(result, script.text), candidate=candidate, target=named)
    return add(store, run, 0, record, script.text)
