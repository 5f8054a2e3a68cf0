"""Wherever a timing on the CPU ends, right kernels keep their time and dishonest ones get none."""

import itertools
from functools import partial

import numpy as np
import pytest

from tests.targets.cpu.dishonest_kernels import dishonest_code
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul
from tuner.core.record import Measurement
from tuner.core.target import Artifact, Effort
from tuner.payload.cpu import partition
from tuner.targets.cpu import evaluator as cpu_evaluator
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.watched_samples import WatchedSamples

pytestmark = pytest.mark.mlir

PROBLEM = Matmul(5, 16, 8)
CALIBRATING = 3  # calls before the first sample: one that leads, two that are looked at
SECOND = 1.0  # that every sample seems to take
ENDS = {
    "stopped at 1": (Effort(stop_above_s=SECOND / 3), 1),
    "stopped at 3": (Effort(stop_above_s=SECOND * 0.9), 3),
    "out of time at once": (Effort(budget_s=0.0, min_samples=1), 1),
    "least samples": (Effort(budget_s=0.0, min_samples=5), 5),
    "most samples": (Effort(budget_s=99.0, max_samples=17), 17),
    "out of time at 18": (Effort(budget_s=17.5, min_samples=1), 18),
}


def timed(name: str, end: str, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> Measurement:
    """Times a kernel, then verifies it on the same arrays."""
    ticks = partial(next, itertools.count(0.0, SECOND))
    monkeypatch.setattr(cpu_evaluator, "WatchedSamples", partial(WatchedSamples, clock=ticks))
    rng, target = np.random.default_rng(seed), CpuEvaluator(1)
    loaded = target.load(
        PROBLEM, Artifact(dishonest_code(name, PROBLEM), name, partition(PROBLEM, 1, "none", 1))
    )
    found = target.measure(PROBLEM, loaded, ENDS[end][0], rng)
    if name == "honest":
        target.verify(PROBLEM, loaded, rng)
    return found


@pytest.mark.parametrize("end", ENDS)
def test_a_right_kernel_is_timed_wherever_the_timing_ends(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = timed("honest", end, monkeypatch)
    assert len(found.samples_s) == ENDS[end][1]
    assert found.is_complete == (not end.startswith("stopped"))


@pytest.mark.parametrize("end", ENDS)
def test_a_kernel_that_has_grown_lazy_by_then_gets_no_time(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("lazy_after_2", 2), ("lazy_after_20", 20)):
        if CALIBRATING + ENDS[end][1] <= limit:  # each of its calls was a right one
            assert timed(name, end, monkeypatch).samples_s
            continue
        with pytest.raises(CandidateError, match=r"elements are wrong|unwritten in 1 of 1 calls") as refused:
            timed(name, end, monkeypatch)
        assert refused.value.stage is Stage.VERIFY
