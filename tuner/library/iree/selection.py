"""Which configuration of a problem wins against IREE's default, timed interleaved in IREE's runtime."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.analysis.comparison import Comparable, NotComparable, comparison
from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.round_quality import Evidence
from tuner.core.target import Effort
from tuner.library.iree.compiler import IreeCompiler
from tuner.library.iree.configuration import IreeConfiguration
from tuner.library.iree.contraction import program_of
from tuner.library.iree.runtime import IreeProduct
from tuner.library.iree.spec import SpecEntry, spec_text
from tuner.runtime import timing
from tuner.tuning.remeasurement import noise_of
from tuner.workers.timing_lock import TimingLock, holder_text

SIEVE = Effort(budget_s=0.05, min_samples=6, max_samples=30)  # of each configuration
FINAL = Effort(budget_s=0.5, min_samples=12, max_samples=60)  # of the fastest, the default, the default again
ATTEMPTS = 3  # final timings, where other programs disturb
SEED = 0
DTYPES = ("f32", "bf16", "i8")  # IREE computes f64 as f32 unless an option of its compiler says otherwise

# Times works interleaved, for as long as the effort says.
Timer = Callable[[tuple[IreeProduct, ...], Effort], tuple[Measurement, ...]]


@dataclass(frozen=True)
class Selection:
    """The configuration that wins on a problem, or why IREE's default stays."""

    problem: Problem
    configuration: IreeConfiguration | None  # None: the default stays
    default_s: float | None  # median seconds per call; None: not timed
    compared: Comparable | None  # time of the configuration over that of the default; None: the default stays
    reason: str  # "" where a configuration wins


def select(
    compiler: IreeCompiler,
    problem: Problem,
    configurations: tuple[IreeConfiguration, ...],
    timer: Timer | None = None,
) -> Selection:
    """Returns which of ``configurations`` is faster than IREE's default on a contraction.

    Each is compiled, checked to be used by IREE and to give the right result, and timed interleaved with the
    default. The fastest is timed again between two timings of the default, up to three times while these
    differ: only a difference outside the 95 % interval and above the noise counts. ``timer``: for tests.
    Raises IreeCompileError where IREE does not compile the problem itself.
    """
    if problem.dtype not in DTYPES:
        return Selection(
            problem, None, None, None, f"IREE does not compute {problem.dtype} as such by default"
        )
    timer = timer or _timed_here(problem)
    default = IreeProduct(compiler.compile(program_of(problem)), problem)
    found = {each: product for each in configurations if (product := _loaded(compiler, problem, each))}
    if not found:
        return Selection(problem, None, None, None, "no configuration is used by IREE and right")
    _, *times = timer((default, *found.values()), SIEVE)
    fastest = min(zip(times, found, strict=True), key=lambda pair: pair[0].median_s)[1]
    for _ in range(ATTEMPTS):
        default_time, time, again = timer((default, found[fastest], default), FINAL)
        compared = _compared(default_time, time, again)
        if isinstance(compared, Comparable) or compared.is_equal:
            break
    default_s = default_time.median_s
    if isinstance(compared, NotComparable):
        return Selection(problem, None, default_s, None, compared.reason)
    if compared.ratio > 1:
        reason = f"the fastest of {len(found)} takes {compared.longer_text} against IREE's default"
        return Selection(problem, None, default_s, None, reason)
    return Selection(problem, fastest, default_s, compared, "")


def _compared(default: Measurement, ours: Measurement, again: Measurement) -> Comparable | NotComparable:
    return comparison(ours, default, Evidence(is_interleaved=True, noise=noise_of(default, again)))


def _loaded(compiler: IreeCompiler, problem: Problem, configuration: IreeConfiguration) -> IreeProduct | None:
    """Returns the code of a configuration; None where IREE refuses it, ignores it or its result is wrong."""
    spec, program = spec_text((SpecEntry(problem, configuration, ""),)), program_of(problem)
    try:
        if not compiler.applied(program, spec):
            return None
        product = IreeProduct(compiler.compile(program, spec), problem)
        verdict, _ = product.verify()
    except TunerError:  # of IREE's compiler or runtime
        return None
    return product if verdict.max_error <= 1.0 else None


def _timed_here(problem: Problem) -> Timer:
    rng = np.random.default_rng(SEED)

    def timed(products: tuple[IreeProduct, ...], effort: Effort) -> tuple[Measurement, ...]:
        with TimingLock("cpu", holder_text(problem)).held():
            return timing.measure_together_by(tuple(each.stopwatch for each in products), effort, rng)

    return timed
