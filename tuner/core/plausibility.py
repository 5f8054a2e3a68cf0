"""Whether a reported result can be true: no kernel is faster than hardware can be by its documents.

The limits are not measurements: a probe of a processor's peak misses what its loop does not reach, and would
refuse kernels that do reach it.
"""

import math
from typing import Final

from tuner.core.dtypes import number_type
from tuner.core.errors import Refusal
from tuner.core.gpu import CLOCK_FLOP, USUAL_MULTIPROCESSORS
from tuner.core.instruction_sets import ISAS
from tuner.core.machine import PTX, Machine
from tuner.core.problem import Problem
from tuner.core.processors import instruction_sets_of
from tuner.core.records import Measurement, Verdict
from tuner.core.roofline import TILE_PRODUCTS
from tuner.core.runs import Baseline

LEAST_S: Final = 1e-10  # of a call: less than one cycle of any processor
MOST_S: Final = 1e6  # of a call, 11 days: time limits end a kernel much earlier
MOST_CALLS: Final = 2**31  # per sample; a sample of the shortest calls has a million
MOST_SAMPLES: Final = 10_000  # of one measurement; final re-measurements take at most 200
ROUNDING: Final = 1e-9  # relative: JSON keeps every bit, other recordings fewer

GPU_HZ: Final = 3.5e9  # above the highest boost clock that NVIDIA documents (GeForce RTX 50: 2.9e9)
GPU_CLOCK_FLOP: Final = 32768  # of a multiprocessor without a documented number; B200 in fp8: 16384
CPU_HZ: Final = 7e9  # above the highest clock that is sold (6.2e9)
NARROW_BYTES: Final = 2  # of the numbers that products of small matrices take: bytes, bf16
# Per cycle of a core of another instruction set, whatever the type: twice AMX with bytes.
CPU_FLOP: Final = 4096
# Products of bf16 by tiles that amount to one of f32: at least as many (Henry et al., 2019,
# https://doi.org/10.1109/ARITH.2019.00019).
BF16_PRODUCTS: Final = 6


def why_not_seconds(measurement: Measurement) -> Refusal | None:
    """Returns why the times of a measurement are impossible; None where they are not.

    Allowed are 1 to 10,000 samples, and times of a call (samples, median, interval, with cold caches, at
    offsets) from 1e-10 s to 1e6 s.
    """
    samples_s = measurement.samples_s
    cold_median_s = measurement.cold_median_s
    if not 1 <= len(samples_s) <= MOST_SAMPLES:
        return Refusal(f"found {len(samples_s)} samples, allowed 1 to {MOST_SAMPLES}")
    cold_s = () if cold_median_s is None else (cold_median_s,)
    offsets_s = [time_s for offset in measurement.offsets for time_s in (offset.median_s, *offset.interval_s)]
    for time_s in (measurement.median_s, *samples_s, *measurement.interval_s, *cold_s, *offsets_s):
        if not LEAST_S <= time_s <= MOST_S:
            return Refusal(f"found a time of {time_s:g} s, allowed {LEAST_S:g} s to {MOST_S:g} s")
    return None


def why_inconsistent(measurement: Measurement) -> Refusal | None:
    """Returns why a measurement's numbers are impossible or contradict each other.

    None if they are plausible.
    """
    why = why_not_seconds(measurement)
    if why is not None:
        return why
    calls = measurement.inner_calls
    median_s = measurement.median_s
    (low_s, high_s) = measurement.interval_s
    if not 1 <= calls <= MOST_CALLS:
        return Refusal(f"found {calls} calls per sample, allowed 1 to {MOST_CALLS}")
    if not _is_within(median_s, min(measurement.samples_s), max(measurement.samples_s)):
        return Refusal(f"found a median of {median_s:g} s, allowed one of its samples")
    if not _is_within(median_s, low_s, high_s):
        return Refusal(f"found an interval of {low_s:g} to {high_s:g} s, allowed one around {median_s:g} s")
    return None


def why_impossible(measurement: Measurement, problem: Problem, limit_flop_per_s: float) -> Refusal | None:
    """Returns why a measurement cannot be the time of a problem; None where it can.

    Reasons: the measurement's numbers are impossible or contradict each other; or the problem's flop/s would
    be above ``limit_flop_per_s``, the result of ``most_flop_per_s`` for the machine.
    """
    why = why_inconsistent(measurement)
    if why is not None:
        return why
    flop_per_s = problem.flop / measurement.median_s
    if flop_per_s <= limit_flop_per_s:
        return None
    return Refusal(
        f"found a time of {measurement.median_s:g} s, {flop_per_s / 1e9:.4g} GFLOP/s, allowed at most "
        f"{limit_flop_per_s / 1e9:.4g} on such a machine"
    )


def why_no_verdict(verdict: Verdict, problem: Problem) -> Refusal | None:
    """Returns why a verdict cannot be of a correct kernel for a problem; None where it can.

    Checks the number of compared elements and that the error is at most 1 tolerance.
    """
    if not 0 <= verdict.elements <= problem.compared_limit:
        return Refusal(f"found {verdict.elements} compared elements, allowed 0 to {problem.compared_limit}")
    if not 0 <= verdict.max_error <= 1:
        return Refusal(f"found an error of {verdict.max_error:g} tolerances, allowed 0 to 1")
    return None


def why_no_baseline(baseline: Baseline, problem: Problem, limit_flop_per_s: float) -> Refusal | None:
    """Returns why the time of a baseline library is impossible for a problem; None where it is possible.

    ``limit_flop_per_s``: upper bound of the machine's flop/s, from ``most_flop_per_s``.
    """
    why = why_impossible(baseline.measurement, problem, limit_flop_per_s)
    if why is None:
        return None
    return Refusal(f"baseline: {why.text}")


def most_flop_per_s(problem: Problem, machine: Machine, threads: int) -> float:
    """Returns an upper bound of the flop/s for a problem on ``threads`` threads, or on a whole GPU.

    The documented flop per cycle of the problem's narrowest type, times a clock above any product's. Infinite
    for another vendor's GPU, and for a processor whose number of cores is unknown.
    """
    dtype = problem.narrowest_dtype
    if machine.isa == PTX:
        documented = CLOCK_FLOP.get(machine.chip, {}).get(dtype, GPU_CLOCK_FLOP)
        usual = USUAL_MULTIPROCESSORS.get(machine.chip, max(USUAL_MULTIPROCESSORS.values()))
        return documented * max(machine.physical_cores, usual) * GPU_HZ
    if machine.chip or not machine.physical_cores:
        return math.inf
    core_flop: float = CPU_FLOP
    if machine.isa in ISAS:
        isa = ISAS[machine.isa]
        element_bytes = number_type(dtype).bytes
        by_vectors = 2 * isa.vector_bytes // element_bytes * isa.fma_units
        if element_bytes <= NARROW_BYTES:
            by_vectors *= isa.narrow_products
        core_flop = max(by_vectors, _tile_flop(dtype, machine))
    return core_flop * max(threads, 1) * CPU_HZ


def _tile_flop(dtype: str, machine: Machine) -> float:
    """Returns the flop per cycle of a core's tiles for a dtype; 0 if the machine has no tiles for it."""
    if dtype == "f32":
        return _tile_flop("bf16", machine) / BF16_PRODUCTS
    products = TILE_PRODUCTS.get(dtype)
    if products is None or products.instruction_set not in instruction_sets_of(machine):
        return 0.0
    return products.core_flop


def _is_within(value: float, low: float, high: float) -> bool:
    return low * (1 - ROUNDING) <= value <= high * (1 + ROUNDING)
