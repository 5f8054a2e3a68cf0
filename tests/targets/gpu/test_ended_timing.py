"""Wherever a timing on a GPU ends, right programs keep their time and those that spare work get none."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.targets.gpu.simulated_cuda import FACTS, HERE, device_with_a_clock
from tests.targets.gpu.small_matmul import small_matmul
from tests.targets.gpu.test_evaluator import PROBLEM, artifact_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import AbstractDevice
from tuner.core.gpu_code import KernelBuffer
from tuner.core.interfaces import Artifact, Effort
from tuner.core.records import Measurement
from tuner.targets.gpu import event_timing
from tuner.targets.gpu.evaluator import GpuEvaluator, LocalGpu

DEVICES: dict[str, Callable[[], AbstractDevice]] = {
    "simulated": device_with_a_clock,
    "driver": lambda: StubDriver().open(),
}
COLD = 2
UNTIMED = 1 + 1 + 2  # runs before the first sample: the graph's first, to raise clocks, to calibrate
COUNTED = "ld.global.u32 %n, [%call]; add.u32 %n, %n, 1; st.global.u32 [%call], %n;"  # the first run: 0
REMEMBERS = """
mul.wide.u32 %o, %t, 12; add.u64 %call, %call, %o; mul.wide.u32 %o, %t, 4; sub.u64 %call, %call, %o;
ld.global.u32 %n, [%row]; ld.global.u32 %i, [%call]; st.global.u32 [%call], %n; setp.ne.u32 %p, %n, %i;
@%p bra WORK; ld.global.f32 %sum, [%call + 4]; st.global.f32 [%element], %sum; bra DONE;
WORK:
"""
KEEPS = "st.global.f32 [%call + 4], %sum;\nDONE:"


@dataclass(frozen=True)
class End:
    """A way in which a timing ends, and how many samples it has taken by then."""

    effort: Effort
    sample_s: float
    samples: int
    is_complete: bool = True

    @property
    def runs(self) -> int:
        """Returns how often the program has run by then."""
        return UNTIMED + self.samples + COLD * self.is_complete


ENDS = {
    "stopped at 1": End(Effort(stop_above_s=0.005), 0.02, 1, is_complete=False),
    "stopped at 2": End(Effort(stop_above_s=0.005), 0.015, 2, is_complete=False),
    "stopped at 3": End(Effort(stop_above_s=0.01), 0.015, 3, is_complete=False),
    "out of time at once": End(Effort(budget_s=0.0, min_samples=1), 0.02, 1),
    "least samples": End(Effort(budget_s=0.0, min_samples=4), 0.02, 4),
    "out of time at 3": End(Effort(budget_s=0.05, min_samples=1), 0.02, 3),
    "most samples": End(Effort(budget_s=9.0, min_samples=1, max_samples=2), 0.02, 2),
}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> AbstractDevice:
    return DEVICES[request.param]()


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "MIN_SAMPLES", 1)
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", COLD)


def timed(
    device: AbstractDevice, end: End, artifact: Artifact, seed: int = 0, *, is_finalist: bool = False
) -> Measurement:
    """Verifies and times a kernel as a candidate is, on a clock by which every sample takes the same."""
    setattr(device, "elapsed_s", lambda start, stop: end.sample_s)  # noqa: B010 - mypy: methods are not assigned
    evaluator = GpuEvaluator("sm_90", lambda: HERE, lambda here: LocalGpu(device, FACTS.l2_bytes))
    rng = np.random.default_rng(seed)
    loaded = evaluator.load(PROBLEM, artifact)
    evaluator.verify(PROBLEM, loaded, rng)
    if is_finalist:
        (final_times,) = evaluator.measure_together(PROBLEM, (loaded,), end.effort, rng)
        assert len(final_times.samples_s) >= event_timing.MIN_SAMPLES
    return evaluator.measure(PROBLEM, loaded, end.effort, rng)


def kernel(before: str = "") -> Artifact:
    return artifact_of(small_matmul(before), "small")


def lazy(first: int, last: int) -> Artifact:
    """Returns a kernel that leaves C as it finds it in some of the runs since it was verified, from 1 on."""
    is_lazy = f"setp.lt.u32 %p, %n, {first}; @%p bra WORK; setp.le.u32 %p, %n, {last}; @%p bra DONE;"
    return kernel(f"{COUNTED} {is_lazy} WORK:")


def lazy_where_filled() -> Artifact:
    """Returns a kernel that after nine runs works only where C is NaN."""
    return kernel(f"""{COUNTED}
setp.le.u32 %p, %n, 8; @%p bra WORK;
ld.global.f32 %x, [%element]; setp.num.f32 %p, %x, %x; @%p bra DONE;
WORK:
""")


def remembering() -> Artifact:
    """Returns a kernel that writes a row as in the last run where the first number of A's row is the same."""
    artifact = artifact_of(small_matmul(REMEMBERS).replace("DONE:", KEEPS), "small")
    assert artifact.program is not None
    *operands, _ = artifact.program.buffers
    buffers = (*operands, KernelBuffer("calls", 16 * 12, "scratch"))
    return replace(artifact, program=replace(artifact.program, buffers=buffers))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ENDS)
def test_a_right_kernel_is_timed_wherever_the_timing_ends(
    device: AbstractDevice, name: str, few_samples: None
) -> None:
    end = ENDS[name]
    for seed in range(2):
        found = timed(device, end, kernel(), seed)
        assert (len(found.samples_s), found.is_complete) == (end.samples, end.is_complete)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ENDS)
def test_a_kernel_that_has_grown_lazy_by_then_gets_no_time(
    device: AbstractDevice, name: str, few_samples: None
) -> None:
    end = ENDS[name]
    for worked in (end.runs // 2, end.runs):
        with pytest.raises(CandidateError, match=r"elements (looked at )?are wrong|are NaN or") as refused:
            timed(device, end, lazy(worked + 1, 99))
        assert refused.value.stage is Stage.VERIFY
    assert timed(device, end, lazy(end.runs + 2, 99)).samples_s  # it ran once more than it was timed


@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_that_is_lazy_in_cold_samples_only_gets_no_time(seed: int) -> None:
    end = End(Effort(budget_s=0.0), 0.02, event_timing.MIN_SAMPLES)
    first = UNTIMED + end.samples + 1
    artifact = lazy(first, first + event_timing.COLD_SAMPLES - 1)
    with pytest.raises(CandidateError, match=r"elements looked at are wrong|are NaN or"):
        timed(device_with_a_clock(), end, artifact, seed)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_that_remembers_its_inputs_gets_no_time_that_could_win(seed: int) -> None:
    whole = End(Effort(budget_s=0.0), 0.02, event_timing.MIN_SAMPLES)
    with pytest.raises(CandidateError, match=r"elements looked at are wrong"):
        timed(device_with_a_clock(), whole, remembering(), seed)


BOTH = End(Effort(0.0, 2), 0.02, event_timing.MIN_SAMPLES)


@pytest.fixture
def few_cold_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", COLD)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("seed", range(5))
def test_an_honest_top_trial_is_timed(seed: int, few_cold_samples: None) -> None:
    assert timed(device_with_a_clock(), BOTH, kernel(), seed, is_finalist=True).is_complete


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("artifact", [lazy(9, 10**6), lazy_where_filled()], ids=["lazy", "where-filled"])
def test_a_top_trial_that_spares_itself_work_gets_no_time(
    artifact: Artifact, seed: int, few_cold_samples: None
) -> None:
    with pytest.raises(CandidateError, match=r"elements looked at are wrong|are NaN or infinite") as refused:
        timed(device_with_a_clock(), BOTH, artifact, seed, is_finalist=True)
    assert refused.value.stage is Stage.VERIFY


def test_a_time_below_the_roofline_is_refused(
    few_cold_samples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_timing, "WARM_UP_S", 0.0)  # which takes a thousand calls of such a time
    message = r"^faster than Simulated GPU: found .* TFLOP/s, allowed 2\.23"
    with pytest.raises(CandidateError, match=message) as refused:
        timed(device_with_a_clock(), replace(BOTH, sample_s=1e-12), kernel(), is_finalist=True)
    assert refused.value.stage is Stage.VERIFY
