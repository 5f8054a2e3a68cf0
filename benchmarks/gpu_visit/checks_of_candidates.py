"""Sections 2 to 7 and 9 of a visit: candidates next to the library, verified there before they are timed."""

import functools
import importlib.util
import itertools
import math
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu_check.checks import Check, CheckOutcome, failed, passed, skipped
from benchmarks.gpu_visit.code_folder import CodeEntry
from benchmarks.gpu_visit.operands import ResultErrors
from benchmarks.gpu_visit.workbench import LoadedBaseline, Workbench, entry_facts
from tuner.core.dtypes import FLOAT8S
from tuner.core.errors import Refusal
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement

TUNED, TUNE_S, TUNE_LIMIT_S = Matmul(4096, 4096, 4096), 20.0, 60.0
SEARCHES_NEED = ("numba_cuda_mlir", "torch_mlir", "optuna", "sqlalchemy")


def candidate_checks(section: str, bench: Workbench) -> tuple[Check, ...]:
    """Returns, for each problem of a section, its library first, then its candidates."""
    entries = bench.code.of(section)
    if not entries:
        return (Check("candidates", lambda: skipped("the folder of code has no candidates")),)
    checks = []
    problems = dict.fromkeys(entry.problem for entry in entries if entry.problem is not None)
    for problem in problems:
        checks += list(_library_checks(problem, bench))
        own = [entry for entry in entries if entry.problem == problem]
        checks += [Check(entry.name, functools.partial(time_candidate, bench, entry)) for entry in own]
    return tuple(checks)


def regression_checks(bench: Workbench) -> tuple[Check, ...]:
    """Returns the candidates of section 7, and one search."""
    return (
        *candidate_checks("regression", bench),
        Check(f"search {TUNED.key}", lambda: search(bench), TUNE_LIMIT_S),
    )


def ranking_checks(bench: Workbench) -> tuple[Check, ...]:
    """Returns section 9: times of random points, in an order in which a run that is cut has some of each."""
    entries = bench.code.of("ranking")
    problems = dict.fromkeys(entry.problem for entry in entries)
    columns = [[entry for entry in entries if entry.problem == problem] for problem in problems]
    rows = itertools.zip_longest(*columns)
    mixed = [entry for row in rows for entry in row if entry is not None]
    return tuple(Check(entry.name, functools.partial(time_point, bench, entry)) for entry in mixed)


Verified = tuple[Callable[[int], None], dict[str, Any]]  # what enqueues a run, and facts of its errors


def _verified(bench: Workbench, entry: CodeEntry) -> Verified | CheckOutcome:
    """Returns a candidate's work, found right on a GPU; the outcome where it is wrong."""
    assert entry.problem is not None
    operands = bench.operands(entry.problem)
    work = bench.load(bench.code.program(entry)).work(operands.addresses)
    errors = operands.errors_of(work)
    facts = entry_facts(entry) | error_facts(errors)
    if bench.bed.is_hardware and not errors.is_right:
        return failed(f"wrong: {errors.text}", **facts)
    return work, facts


def time_candidate(bench: Workbench, entry: CodeEntry) -> CheckOutcome:
    """Verifies and times a candidate, interleaved with the library where there is one. Raises TunerError."""
    return _timed(bench, entry, has_library=True)


def time_point(bench: Workbench, entry: CodeEntry) -> CheckOutcome:
    """Verifies and times a random point; its knobs and both predictions stand next to its time."""
    return _timed(bench, entry, has_library=False)


def _timed(bench: Workbench, entry: CodeEntry, *, has_library: bool) -> CheckOutcome:
    assert entry.problem is not None
    verified = _verified(bench, entry)
    if isinstance(verified, CheckOutcome):
        return verified
    work, facts = verified
    baseline = bench.baseline(entry.problem) if has_library else None
    library: dict[str, Any] = {}
    if isinstance(baseline, LoadedBaseline):
        own, theirs, clocks = bench.measure_with(work, baseline)
        ratio = theirs.median_s / own.median_s
        library = {"library": baseline.name, "library_s": theirs.median_s, "ratio": ratio}
    else:
        own, clocks = bench.measure(work)
    if not bench.bed.is_hardware:
        return CheckOutcome("skipped", f"nothing is computed on the {bench.bed.device}", entry_facts(entry))
    facts |= time_facts(entry.problem, own) | clocks | library
    return passed(text_of(facts), **facts)


def time_library(bench: Workbench, problem: Problem) -> CheckOutcome:
    """Verifies and times the library alone; skipped where it has no such matmul."""
    operands = bench.operands(problem)
    baseline = bench.baseline(problem)
    if isinstance(baseline, Refusal):
        return skipped(baseline.text)
    errors = operands.errors_of(baseline.enqueue)
    own, clocks = bench.measure(baseline.enqueue)
    facts = {"problem": problem.key, "library": baseline.name} | error_facts(errors)
    facts |= time_facts(problem, own) | clocks
    if not errors.is_right:
        return failed(f"{baseline.name} is wrong: {errors.text}", **facts)
    return passed(f"{baseline.name}: {text_of(facts)}", **facts)


def time_algorithms(bench: Workbench, problem: Problem, *, fast_accumulation: bool) -> CheckOutcome:
    """Times a few runs of every algorithm that cuBLASLt's heuristic names. Raises TunerError."""
    times = bench.algorithms(problem, fast_accumulation=fast_accumulation)
    if not times:
        return failed("no algorithm ran")
    name = min(times, key=lambda each: times[each])
    text = f"{name}: {times[name] * 1e6:.1f} us, the fastest of {len(times)}"
    return passed(text, problem=problem.key, algorithms_s=times, library=name, median_s=times[name])


def search(bench: Workbench) -> CheckOutcome:
    """Tunes one problem as a user would, which compiles here. Raises TunerError."""
    if not bench.bed.is_hardware:
        return skipped(f"no clock on the {bench.bed.device}")
    missing = [name for name in SEARCHES_NEED if importlib.util.find_spec(name) is None]
    if missing:
        return skipped(f"no {', '.join(missing)} here: nothing can be compiled")
    import tuner  # loads MLIR when it compiles

    with tempfile.TemporaryDirectory() as folder:
        tuned = tuner.tune(TUNED, bench.bed.target.text, budget=TUNE_S, db=f"{folder}/visit.db")
    if tuned.best is None or tuned.best.best_s is None:
        return failed("no candidate worked")
    candidate = tuned.best.record.candidate
    facts: dict[str, Any] = {
        "problem": TUNED.key,
        "strategy": candidate.strategy,
        "knobs": dict(candidate.choices),
    }
    facts |= {"median_s": tuned.best.best_s, "proposed": tuned.counts.proposed, "seconds": tuned.seconds}
    return passed(f"{tuned.best.best_s * 1e6:.1f} us of {tuned.counts.proposed} trials", **facts)


def _library_checks(problem: Problem, bench: Workbench) -> Iterator[Check]:
    yield Check(f"{problem.key} library", functools.partial(time_library, bench, problem))
    if problem.dtype in FLOAT8S and not problem.scales and problem.sizes[0] > 1:
        for flag in (True, False):
            name = f"{problem.key} algorithms, {'fast' if flag else 'f32'} accumulation"
            yield Check(name, functools.partial(time_algorithms_or_say_why, bench, problem, flag))


def time_algorithms_or_say_why(bench: Workbench, problem: Problem, fast_accumulation: bool) -> CheckOutcome:
    """Times the algorithms; skipped where the library lacks the matmul."""
    baseline = bench.baseline(problem)
    if isinstance(baseline, Refusal):
        return skipped(baseline.text)
    return time_algorithms(bench, problem, fast_accumulation=fast_accumulation)


def error_facts(errors: ResultErrors) -> dict[str, Any]:
    """Returns how far a result is off, in tolerances; "nan" and "inf" are texts, as JSON lacks them."""
    found = {"error_against_reference": errors.against_reference, "error_of_rows": errors.against_float64}
    return {
        name: error if error is None or math.isfinite(error) else str(error) for name, error in found.items()
    }


def time_facts(problem: Problem, own: Measurement) -> dict[str, Any]:
    """Returns a time and the speeds that follow from it."""
    return {
        "median_s": own.median_s,
        "cold_median_s": own.cold_median_s,
        "interval_s": list(own.interval_s),
        "samples": len(own.samples_s),
        "tflop_per_s": problem.flop / own.median_s / 1e12,
        "bytes_per_s": problem.bytes / own.median_s,
    }


def text_of(facts: dict[str, Any]) -> str:
    """Returns one line of times."""
    text = f"{facts['median_s'] * 1e6:.1f} us, {facts['tflop_per_s']:.1f} TFLOP/s"
    if "ratio" in facts:
        text += f", {facts['library']} / ours {facts['ratio']:.3f}"
    return text
