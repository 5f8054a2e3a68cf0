"""The first use of a shape: a few kernels and the baseline, verified and timed once, interleaved."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import threadpoolctl

from tuner.analysis.comparison import NotComparable, comparison
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.recorded_round import Seconds
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability
from tuner.core.round_quality import Evidence, reliability_in_round, round_quality
from tuner.core.target import Effort
from tuner.core.time_text import seconds_text
from tuner.library.dispatch.matmul_calls import KernelCall, KernelLoader, MatmulCall, Otherwise, numpy_product
from tuner.library.dispatch.rule import Configuration
from tuner.payload.reference import Array
from tuner.runtime import timing
from tuner.runtime.cpu.small_pages import copy_on_small_pages
from tuner.targets.problem_arrays import ProblemArrays
from tuner.tuning.remeasurement import noise_of
from tuner.workers.timing_lock import TimingLock, holder_text

EFFORT = Effort(budget_s=0.15, min_samples=5, max_samples=25)  # of each; 0.75 s for five
DRAWS = 2  # inputs that each kernel is verified on; the second has the signs of the first flipped
SEED = 0
LEAST_GAIN = 0.02  # by which a kernel must beat the baseline: closer times change places from day to day
LOCK_LIMIT_S = 2.0  # timings of others take less, but for runs that time one candidate after the other


@dataclass(frozen=True)
class BoundCandidate:
    """A configuration as it is on one problem, with its script."""

    candidate: Candidate
    script_text: str


@dataclass(frozen=True)
class TimedConfiguration:
    """A configuration that was tried at first use: its time, or why it has none."""

    configuration: Configuration  # projected onto the problem
    median_s: Seconds | None
    failure: str = ""  # one line; "": it was timed


@dataclass(frozen=True)
class FirstUse:
    """What was timed at the first use of a shape, in the process that used it."""

    baseline: str  # name, version and threads
    baseline_s: Seconds
    timed: tuple[TimedConfiguration, ...]
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the times
    no_ratio: str = ""  # why the best kernel's time must not be compared with the baseline's; "": it may

    def fastest(self, candidates: tuple[Candidate, ...]) -> Candidate | None:
        """Returns the candidate with the least time; None where none clearly beats the baseline."""
        times = {each.configuration.candidate: each.median_s for each in self.timed}
        known = {each: time for each in candidates if (time := times.get(each)) is not None}
        best = min(known, key=lambda each: known[each], default=None)
        return best if best is not None and known[best] < self._to_beat_s else None

    @property
    def _to_beat_s(self) -> Seconds:
        """Returns the time that a kernel must be below to be used in place of the baseline."""
        return self.baseline_s * (1 - LEAST_GAIN)

    @property
    def why_baseline(self) -> str:
        """Returns in one line why no configuration clearly beat the baseline."""
        times = [each.median_s for each in self.timed if each.median_s is not None]
        if not times:
            return "; ".join(dict.fromkeys(each.failure for each in self.timed))
        times_text = f"{seconds_text(self.baseline_s)}, the best kernel {seconds_text(min(times))}"
        if self.no_ratio or not self.reliability.is_reliable:
            why = self.no_ratio if self.reliability.is_reliable else self.reliability.text
            return f"no kernel was clearly faster at first use: {times_text}; {why}"
        faster = "faster" if self.baseline_s <= min(times) else f"within {LEAST_GAIN:.0%}"
        return f"{faster} at first use: {times_text}"

    def has(self, candidates: tuple[BoundCandidate, ...]) -> bool:
        """Returns whether all of these configurations were tried."""
        tried = {each.configuration.candidate for each in self.timed}
        return all(each.candidate in tried for each in candidates)


def baseline_name() -> str:
    """Returns the library of ``np.matmul`` in this process and its threads: "openblas 0.3.30 SkylakeX x1"."""
    found = next((one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"), None)
    if found is None:
        return f"numpy {np.__version__}"
    architecture = found.get("architecture", "")
    return " ".join(
        f"{found['internal_api']} {found['version']} {architecture} x{found['num_threads']}".split()
    )


def time_first_use(
    problem: Problem, candidates: tuple[BoundCandidate, ...], loader: KernelLoader, otherwise: Otherwise
) -> tuple[FirstUse, dict[Candidate, KernelCall]]:
    """Compiles, verifies and times configurations and the baseline; returns the times, and the kernels.

    All are called as a user's call is, on arrays with the alignment of the problem and no more, on small
    pages, as a user's arrays may lie. A call that allocates its result is not among them. One that
    fails is left out of the timing. The baseline is timed twice, which shows the noise. Another
    process that times on this machine is waited for, but not for long: a user waits for the product.
    """
    arrays = ProblemArrays(problem, np.random.default_rng(SEED))
    calls: dict[Candidate, KernelCall] = {}
    failures: dict[Candidate, str] = {}
    for each in candidates:
        try:
            call = loader.loaded(problem, each.script_text, otherwise)
            _verify(call, problem, arrays)
            calls[each.candidate] = call
        except CandidateError as error:
            failures[each.candidate] = f"{error.stage.value}: {error.reason}"
    with TimingLock("cpu", holder_text(problem), limit_s=LOCK_LIMIT_S).held():
        baseline, *times, again = _times((numpy_product, *calls.values(), numpy_product), problem, arrays)
    noise = noise_of(baseline, again)
    quality = round_quality(noise, baseline, None, quietest_anchor_s=None, spare_cores=0)
    evidence = Evidence(is_interleaved=True, noise=noise, unreliable=quality.unreliable)
    medians = dict(zip(calls, (each.median_s for each in times), strict=True))
    timed = tuple(
        TimedConfiguration(
            Configuration(each.candidate.strategy, each.candidate.choices),
            medians.get(each.candidate),
            failures.get(each.candidate, ""),
        )
        for each in candidates
    )
    found = FirstUse(
        baseline_name(),
        baseline.median_s,
        timed,
        reliability_in_round(baseline, evidence),
        _no_ratio(times, baseline, evidence),
    )
    return found, calls


def _no_ratio(times: list[Measurement], baseline: Measurement, evidence: Evidence) -> str:
    """Returns why the least of the times must not be compared with the baseline's; "" where it may."""
    best = min(times, key=lambda each: each.median_s, default=None)
    if best is None:
        return ""
    compared = comparison(best, baseline, evidence)
    return compared.reason if isinstance(compared, NotComparable) else ""


def _verify(call: MatmulCall, problem: Problem, arrays: ProblemArrays) -> None:
    """Compares a kernel's results with float64. Raises CandidateError(VERIFY) for a wrong one."""
    rng = np.random.default_rng(SEED)
    for draw in range(DRAWS):
        if draw % 2:
            arrays.flip_signs()
        else:
            arrays.fill(rng)
        call(*_operands(problem, arrays))
        arrays.evaluate()


def _times(calls: tuple[MatmulCall, ...], problem: Problem, arrays: ProblemArrays) -> tuple[Measurement, ...]:
    """Returns the times of each call, all timed interleaved on the same arrays, on small pages."""
    a, b, c = (copy_on_small_pages(each, problem.offset_bytes) for each in arrays.operands)
    operands = _as_passed(problem, a, b, c)

    def repeated(call: MatmulCall) -> Callable[[int], None]:
        def repeat(times: int) -> None:
            for _ in range(times):
                call(*operands)

        return repeat

    return timing.measure_together(
        tuple(repeated(call) for call in calls), EFFORT, np.random.default_rng(SEED)
    )


def _operands(problem: Problem, arrays: ProblemArrays) -> tuple[Array, Array, Array]:
    """Returns the arrays that results are compared on, as a user passes them."""
    a, b, c = arrays.operands
    return _as_passed(problem, a, b, c)


def _as_passed(problem: Problem, a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Returns A, B and C as a user passes them: transposed views where the layout stores them so."""
    return (a.T if problem.layout == "tn" else a, b.T if problem.layout == "nt" else b, c)
