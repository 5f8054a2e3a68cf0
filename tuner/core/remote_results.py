"""Remote measurement as values: trials that wait for a GPU, their results, and checks of plausibility."""

import datetime
import math
from dataclasses import dataclass, field
from typing import Final

from tuner.core.candidate import PROBLEM, Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.dtypes import number_type
from tuner.core.errors import Failure, Refusal
from tuner.core.gpu import CLOCK_FLOP, USUAL_MULTIPROCESSORS
from tuner.core.machine import Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.processors import TILE_PRODUCTS, instruction_sets_of
from tuner.core.records import Measurement, Verdict
from tuner.core.runs import Baseline

LEAST_S: Final = 1e-10  # of a call: less than one cycle of any processor
MOST_S: Final = 1e6  # of a call, 11 days: time limits end a kernel much earlier
MOST_CALLS: Final = 2**31  # per sample; a sample of the shortest calls has a million
MOST_SAMPLES: Final = 10_000  # of one measurement; final re-measurements take at most 200
MOST_BYTES_PER_S: Final = 1e14  # from memory; NVIDIA B200: 8e12
ROUNDING: Final = 1e-9  # relative: JSON keeps every bit, other recordings fewer
GPU_HZ: Final = 3.5e9  # above the highest boost clock that NVIDIA documents (GeForce RTX 50: 2.9e9)
GPU_CLOCK_FLOP: Final = 32768  # of a multiprocessor without a documented number; B200 in fp8: 16384
CPU_HZ: Final = 7e9  # above the highest clock that is sold (6.2e9)
# Units of a core that multiply and add whole registers: two of 512 bits on Intel Golden Cove and AMD Zen 5.
CPU_VECTOR_UNITS: Final = 2
# Per cycle of a core of another instruction set, whatever the type: twice AMX with bytes.
CPU_FLOP: Final = 4096
# Products of bf16 by tiles that amount to one of f32: at least as many (Henry et al., 2019,
# https://doi.org/10.1109/ARITH.2019.00019).
BF16_PRODUCTS: Final = 6
# what ran: the binary of a KernelCode, or its text that the driver compiled in its place
BINARY = "binary"
TEXT = "text"


@dataclass(frozen=True)
class Origin:
    """Identifies a trial in every database that its run was merged into: run UUID and trial number."""

    run: str  # uuid
    number: int  # of the trial, within the run


@dataclass(frozen=True)
class PendingTrial:
    """A compiled GPU trial that still has to be timed, with all that another machine needs to run it."""

    origin: Origin
    id: int  # of the trial in the exporting database, to print
    target: str  # that compiled the trial: "simulator:sm_90", "cuda:sm_90"
    problem: Problem = field(metadata=PROBLEM)
    candidate: Candidate
    script_sha256: str
    artifact_sha256: str
    verdict: Verdict | None  # of the simulator; None: only compiled
    script_text: str
    program: KernelCode
    predicted_cycles: float | None = None  # of a cost model: only decides which trial is timed first


# Plausibility checks of measured results: no kernel is faster than hardware can be by its documents.
# The limits are not measurements. A probe of a processor's peak misses what its loop does not reach, and
# would refuse kernels that do.


def most_flop_per_s(problem: Problem, machine: Machine, threads: int) -> float:
    """Returns an upper bound of the flop/s for a problem on ``threads`` threads, or on a whole GPU.

    The documented flop per cycle of the problem's narrowest type, times a clock above any product's. Infinite
    for a processor whose number of cores is unknown.
    """
    dtype = problem.narrowest_dtype
    if machine.chip:
        documented = CLOCK_FLOP.get(machine.chip, {}).get(dtype, GPU_CLOCK_FLOP)
        usual = USUAL_MULTIPROCESSORS.get(machine.chip, max(USUAL_MULTIPROCESSORS.values()))
        return documented * max(machine.physical_cores, usual) * GPU_HZ
    if not machine.physical_cores:
        return math.inf
    core_flop: float = CPU_FLOP
    if machine.isa in ("avx2", "avx512"):
        by_vectors = 2 * machine.vector_bytes // number_type(dtype).bytes * CPU_VECTOR_UNITS
        core_flop = max(by_vectors, _tile_flop(dtype, machine))
    return core_flop * max(threads, 1) * CPU_HZ


def _tile_flop(dtype: str, machine: Machine) -> float:
    """Returns the flop per cycle of a core's tiles; 0 where it has none for the dtype."""
    if dtype == "f32":
        return _tile_flop("bf16", machine) / BF16_PRODUCTS
    products = TILE_PRODUCTS.get(dtype)
    if products is None or products.set not in instruction_sets_of(machine):
        return 0.0
    return products.core_flop


def why_not_seconds(measurement: Measurement) -> Refusal | None:
    """Returns why samples cannot be seconds per call (1e-10 s to 1e6 s); None where they can."""
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

    Its numbers are impossible or contradict each other, or the problem's flop/s would be above
    ``limit_flop_per_s``, the result of ``most_flop_per_s`` for the machine.
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
    """Returns why a verdict cannot be that of a correct kernel for a problem; None where it can.

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


def why_no_roofline(roofline: Roofline, limit_flop_per_s: float) -> Refusal | None:
    """Returns why no machine has a roofline's flop/s or bandwidth; None where both are possible.

    ``limit_flop_per_s``: upper bound of the machine's flop/s, from ``most_flop_per_s``.
    """
    if not 0 < roofline.flop_per_s <= limit_flop_per_s:
        return Refusal(
            f"found a roofline of {roofline.flop_per_s:g} flop/s, allowed at most {limit_flop_per_s:g}"
        )
    if not 0 < roofline.bytes_per_s <= MOST_BYTES_PER_S:
        return Refusal(
            f"found a roofline of {roofline.bytes_per_s:g} bytes/s, allowed at most {MOST_BYTES_PER_S:g}"
        )
    return None


def _is_within(value: float, low: float, high: float) -> bool:
    return low * (1 - ROUNDING) <= value <= high * (1 + ROUNDING)


@dataclass(frozen=True)
class MeasuringProvenance:
    """Where and when a bundle was measured: session, bundle, version of tuner, machine and driver."""

    session: str  # uuid of the measuring session
    bundle: str  # sha256 of the bundle's manifest
    tuner: str  # version
    started: datetime.datetime  # UTC
    machine: Machine
    driver: str  # the newest CUDA version that the driver supports


@dataclass(frozen=True)
class MeasuredTrial:
    """A candidate of a bundle with its outcome (time or failure) on the measuring machine."""

    origin: Origin
    id: int  # of the trial in the database that exported the bundle, to print
    problem: Problem = field(metadata=PROBLEM)
    candidate: Candidate
    chip: str
    script_sha256: str
    artifact_sha256: str
    code: str  # BINARY or TEXT
    finished: datetime.datetime  # UTC
    outcome: Measurement | Failure
    verdict: Verdict | None = None  # in addition to a Measurement
    stage_s: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class FinalTime:
    """The time of a top trial of one problem, timed again with the other top trials, or why it failed."""

    origin: Origin
    problem: Problem = field(metadata=PROBLEM)
    measurement: Measurement | Failure  # a failure: the trial was timed first, and found wrong then


@dataclass(frozen=True)
class NoiseFloor:
    """The A/A noise floor of a problem's final re-measurement, in which the fastest trial is timed twice."""

    problem: Problem = field(metadata=PROBLEM)
    # relative difference of the two timings, never less than half the width of an interval:
    # smaller differences mean nothing
    noise: float


@dataclass(frozen=True)
class BaselineTime:
    """The time of the baseline library for one problem on the measuring machine."""

    problem: Problem = field(metadata=PROBLEM)
    baseline: Baseline


@dataclass(frozen=True)
class RemoteResults:
    """All results of measuring one bundle: outcomes, final times, noise floors and baselines."""

    provenance: MeasuringProvenance
    trials: tuple[MeasuredTrial, ...]
    final_times: tuple[FinalTime, ...] = ()
    noises: tuple[NoiseFloor, ...] = ()
    baselines: tuple[BaselineTime, ...] = ()
