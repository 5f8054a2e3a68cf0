"""The GPU check, last part: short runs of the tuner; their best, interleaved with cuBLAS and Triton."""

import functools
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, failed, skipped
from benchmarks.gpu_check.device_under_test import SIMULATOR, Bed
from tuner.core.compiled_code import KernelCode
from tuner.core.gpu import chip_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem

if TYPE_CHECKING:
    from tuner.tuning.tuned_run import TunedRun

SQUARE = (4096, 4096, 4096)
PROBLEMS = (*(Matmul(*SQUARE, dtype) for dtype in ("f16", "bf16", "tf32", "f32")), Matmul(5376, 2048, 5376))
# of a problem's seconds; the rest: cuBLAS twice, final re-measurement, roofline, float64 reference
SEARCH_SHARE = 0.5
LEAST_SEARCH_S = 3.0
GRACE_S = 60.0  # beyond its share that a run may take before it counts as hanging
SMALL = Matmul(48, 40, 32, "f16")  # for the simulator
SMALL_TRIALS = 2


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns one run for each problem; on the simulator a small run without times."""
    if bed.device == SIMULATOR:
        return (Check(SMALL.key, lambda: tune_untimed(bed)),)
    if not bed.is_hardware:
        return (Check("runs", lambda: skipped(f"no clock on the {bed.device}")),)
    end_s = time.monotonic() + bed.limit_s
    count = len(PROBLEMS)
    return tuple(
        Check(
            problem.key,
            functools.partial(tune_timed, bed, problem, end_s, count - number),
            bed.limit_s / count + GRACE_S,
        )
        for number, problem in enumerate(PROBLEMS)
    )


def share_s(end_s: float, now_s: float, runs: int) -> float:
    """Returns the seconds to search in, for the first of several runs that share the remaining seconds."""
    return max(LEAST_SEARCH_S, SEARCH_SHARE * (end_s - now_s) / runs)


def tune_timed(bed: Bed, problem: Problem, end_s: float, runs: int) -> CheckOutcome:
    """Tunes, then times the best kernel interleaved with cuBLAS and Triton. Raises TunerError."""
    import tuner
    from benchmarks.gpu_check.timing import versus

    with tempfile.TemporaryDirectory() as folder:
        budget_s = share_s(end_s, time.monotonic(), runs)
        tuned = tuner.tune(problem, bed.target.text, budget=budget_s, db=f"{folder}/check.db")
    if tuned.best is None:
        return failed(f"no candidate worked: {counts_text(tuned)}")
    program = recompiled(bed.chip, problem, tuned.best.script_text)
    return joined(tuned, versus(bed.gpu(), problem, program, with_triton=True))


def recompiled(chip: str, problem: Problem, script_text: str) -> KernelCode:
    """Compiles the best script as the run did. Raises CandidateError."""
    from tuner.core.interfaces import Script
    from tuner.gpu.target.compiler import GpuCompiler, find_ptxas

    artifact = GpuCompiler(chip_of(chip), find_ptxas).compile(problem, Script.of(script_text))
    return artifact.code


def joined(tuned: "TunedRun", timed: CheckOutcome) -> CheckOutcome:
    """Returns the outcome of the interleaved times with the results of the run."""
    assert tuned.best is not None
    candidate, baseline = tuned.best.record.candidate, tuned.run.baseline
    facts = {
        "strategy": candidate.strategy,
        "knobs": dict(candidate.choices),
        "seconds_of_run": tuned.seconds,
        "noise": tuned.run.noise,
        "baseline_of_run_s": None if baseline is None else baseline.measurement.median_s,
        **count_facts(tuned),
        **timed.facts,
    }
    return CheckOutcome(timed.status, f"{timed.words}; {counts_text(tuned)}; {candidate.text}", facts)


def tune_untimed(bed: Bed) -> CheckOutcome:
    """Runs the tuner on the simulator: candidates are verified. Raises TunerError."""
    import tuner

    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/check.db"
        tuned = tuner.tune(SMALL, bed.target.text, SMALL_TRIALS, workers=1, db=database)
    return evaluated(tuned.counts.verified > 0, counts_text(tuned), **count_facts(tuned))


def counts_text(tuned: "TunedRun") -> str:
    """Returns the counts of trials by status."""
    counts = tuned.counts
    right = counts.measured + counts.verified
    return f"{counts.proposed} tried, {right} right, {counts.failed} failed"


def count_facts(tuned: "TunedRun") -> dict[str, int]:
    """Returns the same for the results file."""
    counts = tuned.counts
    names = ("proposed", "measured", "verified", "failed", "reused")
    return {name: int(getattr(counts, name)) for name in names}
