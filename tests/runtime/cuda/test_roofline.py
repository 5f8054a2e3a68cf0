"""Limits of a GPU: documented flop at its clock, bytes by copies."""

from dataclasses import replace

import pytest

from tests.targets.gpu.scripted_device import ScriptedDevice
from tests.targets.gpu.simulated_cuda import FACTS
from tuner.core.errors import TunerError
from tuner.core.fusions import FLOAT8S
from tuner.core.gpu import CLOCK_FLOP
from tuner.core.problem import INPUT_DTYPES
from tuner.runtime.cuda.probe import (
    COPIES,
    COPY_BYTES,
    copied_bytes_per_s,
    documented_flop_per_s,
    gpu_roofline,
)

H100 = replace(FACTS, multiprocessors=132, clock_hz=1.83e9, memory_bytes=80 << 30)  # SXM5, boost
A100 = replace(FACTS, chip="sm_80", multiprocessors=108, clock_hz=1.41e9)


@pytest.mark.parametrize(
    ("facts", "dtype", "peak"),
    [  # the whitepapers' dense peaks
        (H100, "f16", 989.4e12),
        (H100, "bf16", 989.4e12),
        (H100, "tf32", 494.7e12),
        (H100, "i8", 1978.9e12),
        (H100, "e4m3", 1978.9e12),
        (A100, "i8", 624e12),
        (A100, "f16", 312e12),
        (A100, "tf32", 156e12),
        (A100, "f32", 19.5e12),
        (A100, "f64", 19.5e12),
    ],
)
def test_the_table_gives_the_peaks_of_the_whitepapers(facts: object, dtype: str, peak: float) -> None:
    assert documented_flop_per_s(facts, dtype) == pytest.approx(peak, rel=2e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize("chip", CLOCK_FLOP)
def test_every_dtype_that_a_chip_has_instructions_for_has_a_peak(chip: str) -> None:
    taken = set(INPUT_DTYPES) - (set(FLOAT8S) if chip == "sm_80" else set())
    assert set(CLOCK_FLOP[chip]) == taken


def test_a_chip_without_a_documented_peak_has_no_roofline() -> None:
    with pytest.raises(TunerError, match="found sm_120, allowed sm_80, sm_90: no documented peak"):
        gpu_roofline(ScriptedDevice(), replace(FACTS, chip="sm_120"), "f16")


def test_bandwidth_is_bytes_read_and_written_by_the_best_copy() -> None:
    device = ScriptedDevice(copy_bytes_per_s=2e12)
    found = gpu_roofline(device, H100, "f16")
    assert found.bytes_per_s == pytest.approx(4e12)
    assert found.flop_source == "documented, at 1830 MHz"
    assert device.log.count(f"copy {COPY_BYTES}") == 2 * COPIES
    assert device.alive == set()


def test_a_small_gpu_is_not_filled() -> None:
    device = ScriptedDevice()
    copied_bytes_per_s(device, 1 << 30)
    assert f"allocate {1 << 27}" in device.log
