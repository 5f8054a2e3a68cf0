from dataclasses import replace

import numpy as np
import pytest

from tests.targets.simulated_cuda import COOL, FACTS, HERE, device_with_a_clock
from tuner.conditions import Conditions, Span
from tuner.device import DeviceError
from tuner.errors import CandidateError, Stage, UsageError
from tuner.kernel import KernelProgram, Launch
from tuner.kernel_buffers import buffers_of
from tuner.problem import Matmul
from tuner.record import Verdict
from tuner.reference import Array, Inputs
from tuner.runtime.gpu_probe import GpuHere
from tuner.target import Artifact, Effort
from tuner.targets import gpu_timing
from tuner.targets.gpu_here import Gpu
from tuner.targets.gpu_judge import GpuJudge

PROBLEM = Matmul(4, 4, 4)
PTX = """//
.version 8.0
.target sm_90
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
"""
LAUNCH = Launch("nothing", (1, 1, 1), (32, 1, 1), 0, ("a", "b", "c"))
ARTIFACT = Artifact(PTX, "", (), program=KernelProgram("sm_90", PTX, b"", (LAUNCH,), buffers_of(PROBLEM)))


def opened(here: GpuHere) -> Gpu:
    return Gpu(device_with_a_clock(), FACTS.l2_bytes)


def test_nothing_is_opened_before_the_first_program() -> None:
    def refused(here: GpuHere) -> Gpu:
        raise AssertionError("opened")

    assert GpuJudge("sm_90", lambda: HERE, refused).usable() == HERE


def test_code_for_another_chip_is_not_loaded() -> None:
    judge = GpuJudge("sm_80", lambda: HERE, opened)
    with pytest.raises(CandidateError, match=r"^compiled only: code is for sm_80, the GPU here is") as failed:
        judge.load(PROBLEM, ARTIFACT)
    assert failed.value.stage is Stage.LOAD
    with pytest.raises(DeviceError, match="code is for sm_80"):
        judge.usable()


def test_a_chip_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^chip: found 'sm_1', allowed sm_80"):
        GpuJudge("sm_1")


def test_clocks_held_down_between_the_rounds_mark_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_timing, "MIN_SAMPLES", 2)
    monkeypatch.setattr(gpu_timing, "COLD_SAMPLES", 2)
    hot = replace(COOL, sm_clock_hz=1.2e9, slowdowns=("power cap",))
    states = iter([COOL, COOL, hot, COOL, COOL, COOL])  # before, two warm rounds, two cold ones, after
    gpu = Gpu(device_with_a_clock(), FACTS.l2_bytes, lambda: next(states))
    judge = GpuJudge("sm_90", lambda: HERE, lambda here: gpu)
    loaded = (judge.load(PROBLEM, ARTIFACT), judge.load(PROBLEM, ARTIFACT))
    times = judge.measure_together(PROBLEM, loaded, Effort(0.0, 2), np.random.default_rng(0))
    expected = Conditions(COOL, COOL, Span(4, 1.2e9, COOL.sm_clock_hz, ("power cap",)))
    assert [each.conditions for each in times] == [expected] * 2
    assert expected.slowdowns == ("power cap",)


def test_c_is_compared_as_the_judge_was_told() -> None:
    def agreeable(inputs: Inputs, result: Array) -> tuple[Verdict, str]:
        return Verdict(0.0, 7, ("not looked at",)), ""

    rng = np.random.default_rng(0)
    strict, blind = (
        GpuJudge("sm_90", lambda: HERE, opened),
        GpuJudge("sm_90", lambda: HERE, opened, agreeable),
    )
    with pytest.raises(CandidateError, match="16 of 16 elements are wrong"):
        strict.verify(PROBLEM, strict.load(PROBLEM, ARTIFACT), rng)
    assert blind.verify(PROBLEM, blind.load(PROBLEM, ARTIFACT), rng) == Verdict(0.0, 7, ("not looked at",))
