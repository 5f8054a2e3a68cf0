"""Programs on a GPU that spare themselves work while they are timed get no time."""

import numpy as np
import pytest

from tests.targets.gpu.simulated_cuda import FACTS, HERE, device_with_a_clock
from tests.targets.gpu.small_matmul import small_matmul
from tests.targets.gpu.test_evaluator import PROBLEM, artifact_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.record import Measurement
from tuner.core.target import Effort
from tuner.targets.gpu import event_timing
from tuner.targets.gpu.evaluator import GpuEvaluator
from tuner.targets.gpu.local_gpu import LocalGpu

COUNTED = """
ld.global.u32 %n, [%call]; add.u32 %n, %n, 1; st.global.u32 [%call], %n;
"""
LAZY = COUNTED + "setp.gt.u32 %p, %n, 8; @%p bra DONE;"
LAZY_WHERE_FILLED = f"""{COUNTED}
setp.le.u32 %p, %n, 8; @%p bra WORK;
ld.global.f32 %x, [%element]; setp.num.f32 %p, %x, %x; @%p bra DONE;
WORK:
"""


def timed(before: str, seed: int, elapsed_s: float = 0.02) -> Measurement:
    """Verifies and times a kernel as a candidate is."""
    device = device_with_a_clock()
    setattr(device, "elapsed_s", lambda start, stop: elapsed_s)  # noqa: B010 - mypy: methods are not assigned
    evaluator = GpuEvaluator("sm_90", lambda: HERE, lambda here: LocalGpu(device, FACTS.l2_bytes))
    rng = np.random.default_rng(seed)
    loaded = evaluator.load(PROBLEM, artifact_of(small_matmul(before), "small"))
    evaluator.verify(PROBLEM, loaded, rng)
    (finals,) = evaluator.measure_together(PROBLEM, (loaded,), Effort(0.0, 2), rng)
    assert len(finals.samples_s) >= event_timing.MIN_SAMPLES
    return evaluator.measure(PROBLEM, loaded, Effort(0.0, 2), rng)


@pytest.fixture(autouse=True)
def few_cold_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "COLD_SAMPLES", 2)


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_kernel_is_timed(seed: int) -> None:
    assert timed("", seed).is_complete


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("before", [LAZY, LAZY_WHERE_FILLED], ids=["lazy", "where-filled"])
def test_a_kernel_that_spares_itself_work_gets_no_time(before: str, seed: int) -> None:
    with pytest.raises(CandidateError, match=r"elements looked at are wrong|are NaN or infinite") as refused:
        timed(before, seed)
    assert refused.value.stage is Stage.VERIFY


def test_a_time_below_the_roofline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_timing, "WARM_UP_S", 0.0)  # which takes a thousand calls of such a time
    with pytest.raises(
        CandidateError, match=r"^faster than Simulated GPU: found .* TFLOP/s, allowed 2\.23"
    ) as no:
        timed("", 0, elapsed_s=1e-12)
    assert no.value.stage is Stage.VERIFY
