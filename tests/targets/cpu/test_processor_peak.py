"""Which times a processor is believed to have reached: processors of every latency, with one unit or two."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from tests.db.values import MACHINE
from tests.targets.evaluation import fails
from tuner.core.errors import Stage
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.records import Measurement
from tuner.core.roofline import Roofline
from tuner.runtime.cpu.roofline import ITERATIONS, SUMS, highest_flop_per_s
from tuner.targets.cpu.processor_peak import ProcessorPeak

PROBLEM = Matmul(512, 512, 512)
LATENCIES = range(3, 9)  # cycles of a multiply-add: 4 on most x86 cores, 6 to 8 of dot products


@dataclass
class FakeCore:
    """A core that computes by the model of the probe: units x clock, if there are enough independent sums."""

    machine: Machine
    latency: int
    units: int
    hz: float = 3.7e9
    now_s: float = field(default=0.0, init=False)

    @property
    def peak(self) -> float:
        return self.units * self.hz * 2 * self.machine.vector_bytes / 4

    def probe(self, _dtype: str) -> float:
        loops = [FakeLoop(self, sums) for sums in SUMS[self.machine.vector_registers]]
        return highest_flop_per_s(loops, 60, lambda: self.now_s)


@dataclass
class FakeLoop:
    core: FakeCore
    sums: int

    @property
    def flop(self) -> int:
        return ITERATIONS * self.sums * 2 * self.core.machine.vector_bytes // 4

    def repeat(self, times: int) -> None:
        cycles = max(self.core.latency, self.sums / self.core.units)
        self.core.now_s += times * ITERATIONS * cycles / self.core.hz


def cores() -> Iterator[FakeCore]:
    for isa, latency, units in itertools.product(("avx2", "avx512"), LATENCIES, (1, 2)):
        yield FakeCore(replace(MACHINE, isa=isa), latency, units)


def measured(flop_per_s: float) -> Measurement:
    time_s = PROBLEM.flop / flop_per_s
    return Measurement((time_s,), 1, time_s, (time_s, time_s))


def test_right_kernels_pass_and_ten_times_the_peak_is_refused_whatever_the_latency_and_the_units() -> None:
    for core in cores():
        peak = ProcessorPeak(core.machine, 1, core.probe)
        for share in (0.5, 0.9, 1.0):
            peak.require_possible(PROBLEM, measured(share * core.peak))
        peak = ProcessorPeak(core.machine, 1, core.probe)
        with fails(Stage.VERIFY, match=r"^faster than this processor: found .* GFLOP/s, allowed"):
            peak.require_possible(PROBLEM, measured(10 * core.peak))


def test_the_probe_finds_the_peak_where_registers_allow_and_no_share_of_the_roofline_is_above_one() -> None:
    for core in cores():
        enough = core.latency * core.units <= SUMS[core.machine.vector_registers][-1]
        assert (core.probe("f32") == pytest.approx(core.peak)) == enough
        roofline = Roofline(core.probe("f32"), 1e10)
        for reached in (0.5 * core.peak, core.peak):
            work = PROBLEM.flop, PROBLEM.bytes, MACHINE.l3_bytes, PROBLEM.flop / reached
            bound = roofline.raised(*work)
            assert bound.flop_per_s >= reached
            assert bound.share(*work) <= 1
            assert roofline.share(*work) <= 1


def test_a_kernel_above_the_probe_is_looked_at_once_and_is_then_the_peak() -> None:
    core = FakeCore(replace(MACHINE, isa="avx2"), latency=8, units=2)  # 13 of 16 sums fit into registers
    peak = ProcessorPeak(core.machine, 1, core.probe)
    assert not peak.is_exceeded(PROBLEM, measured(0.8 * core.peak))
    assert peak.is_exceeded(PROBLEM, measured(core.peak))
    peak.rise(PROBLEM, measured(core.peak))
    assert not peak.is_exceeded(PROBLEM, measured(core.peak))


def test_memory_that_a_kernel_reads_faster_than_was_measured_raises_the_bandwidth() -> None:
    slow = Roofline(1e15, 1e9)
    work = PROBLEM.flop, PROBLEM.bytes, 0, 1e-3
    assert slow.raised(*work) == replace(slow, bytes_per_s=PROBLEM.bytes / 1e-3)
    assert slow.share(*work) == 1
    assert slow.share(PROBLEM.flop, PROBLEM.bytes, PROBLEM.bytes, 1e-3) < 1  # caches hold all


def test_the_slow_end_of_the_interval_counts() -> None:
    fast_s, slow_s = PROBLEM.flop / 1e15, PROBLEM.flop / 1e9
    measurement = Measurement((fast_s, slow_s), 1, fast_s, (fast_s, slow_s))
    ProcessorPeak(MACHINE, 1, lambda _dtype: 1e10).require_possible(PROBLEM, measurement)
