"""JSON documents of whole programs: ``tuner run --json`` and ``tuner tune FILE --json``."""

import math
from typing import Any

from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.candidate import candidate_document
from tuner.core.device_programs import DeviceWork
from tuner.core.programs import TunedKernel
from tuner.models.dynamic.checked_run import CheckedSize, SizedReport
from tuner.models.program_times import ProgramTimes
from tuner.models.report import Comparison, KernelSample, ProgramReport
from tuner.models.request import ProgramRequest
from tuner.models.tuning import TunedProblem, TunedProgram
from tuner.results.output.json_documents import problem_document, trial_document, tune_document
from tuner.results.output.program_tables import baseline_document, explained_document


def run_document(request: ProgramRequest, report: ProgramReport) -> dict[str, Any]:
    """Returns the JSON document of ``tuner run --json``: the outcome of one run of an MLIR program."""
    return {
        "entry": report.entry,
        "target": request.target.text,
        "form": request.options.device.form,
        "math": request.options.math,
        "streams": report.streams,
        "arguments": list(report.arguments),
        "results": list(report.results),
        "problems": [problem.key for problem in report.problems],
        "tuned": list(map(_tuned, report.tuned)),
        "given_up": report.given_up or None,
        "trace": list(report.trace) if request.options.trace else None,
        "reports": list(report.defects),
        "comparisons": list(map(_comparison, report.comparisons)) if report.reference else None,
        "not_compared": report.not_compared or None,
        "reference": report.reference or None,
        "times": None if report.times is None else times_document(report.times),
        "interpreted": report.is_interpreted,
        "samples": list(map(_sample, report.samples)) if request.options.sample else None,
        "work": _work(report.work),
        "work_without_fusions": _work(report.work_without_fusions),
        "resident_bytes": report.resident_bytes,
        "fusions": [
            *map(explained_document, report.fusions),
            *(
                {"kind": fusion.kind, "ops": list(fusion.ops), "reason": fusion.reason or None}
                for fusion in report.device_fusions
            ),
        ]
        or None,
        "why_no_fusions": report.why_no_fusions or None,
        "printed": report.printed,
        "right": report.is_right,
    }


def sized_run_document(request: ProgramRequest, report: SizedReport) -> dict[str, Any]:
    """Returns the JSON document of ``tuner run --sizes --json``: calls of a program at several sizes n."""
    return {
        "entry": report.entry,
        "target": request.target.text,
        "sizes": [report.sizes.least, report.sizes.greatest],
        "arguments": list(report.arguments),
        "results": list(report.results),
        "compiled_sizes": list(report.compiled_sizes),
        "checks": list(map(_checked_size, report.checks)),
        "why_no_fusions": report.whole or None,
        "right": report.is_right,
    }


def _checked_size(check: CheckedSize) -> dict[str, Any]:
    return {
        "n": check.size,
        "compiled_size": check.compiled_size,
        "comparisons": list(map(_comparison, check.comparisons)),
        "reference": check.reference,
    }


def _tuned(kernel: TunedKernel) -> dict[str, Any]:
    schedule = kernel.schedule
    return {
        "problem": kernel.problem.key,
        "origin": schedule.origin,
        "trial": schedule.trial,
        **candidate_document(schedule.candidate),
    }


def times_document(times: ProgramTimes) -> dict[str, Any]:
    """Returns a program's times in seconds as a JSON object.

    The kernels' time and its overlap are present only if a device ran kernels.
    """
    kernels = {"kernel_s": times.kernel_s, "overlap": times.overlap, "serialized": times.is_serialized}
    return {
        "call_s": times.call_s,
        "interval_s": None if times.interval_s is None else list(times.interval_s),
        "reliability": times.reliability.text,
        "processes": times.processes,
        **(kernels if times.kernels else {}),
    }


def _work(work: DeviceWork | None) -> dict[str, Any] | None:
    bytes_ = ("copied_in_bytes", "copied_out_bytes", "copied_inside_bytes")
    names = ("launches", *bytes_, "copies_in", "copies_out")
    if work is None:
        return None
    return {name: getattr(work, name) for name in names}


def _sample(sample: KernelSample) -> dict[str, Any]:
    compared = None if sample.comparison is None else _comparison(sample.comparison)
    return {
        "kernel": sample.kernel,
        "launches": sample.launches,
        "blocks": sample.blocks,
        "simulated": sample.simulated,
        "elements": sample.elements,
        "reference": sample.reference or None,
        "finished": sample.finished if sample.reference else sample.blocks,
        "comparison": compared,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    error = comparison.max_error if math.isfinite(comparison.max_error) else None  # JSON has no infinity
    return {
        "name": comparison.name,
        "equal": comparison.is_equal,
        "error": error,
        "tolerance": comparison.tolerance,
        "blind": comparison.is_blind,
    }


def program_document(tuned: TunedProgram) -> dict[str, Any]:
    """Returns the JSON document of a tuned program: the runs of its matmuls or fusions, then the program."""
    report = tuned.report
    plain = tuned.plain
    gain = tuned.gain
    return {
        "target": tuned.target.text,
        "problems": list(map(_problem, tuned.problems)),
        "program": None if report is None else run_document(tuned.request, report),
        "plain": None if plain is None or plain.times is None else times_document(plain.times),
        "failure": tuned.failure or None,
        "not_run": tuned.not_run or None,
        "speedup": tuned.speedup,
        "speedup_interval": list(gain.speed_interval) if isinstance(gain, Comparable) else None,
        "speedup_unknown": gain.reason if isinstance(gain, NotComparable) else None,
        "seconds": tuned.seconds,
        **_fusions(tuned),
    }


def _fusions(tuned: TunedProgram) -> dict[str, Any]:
    if tuned.campaign is None:
        return {}
    return {
        "campaign": tuned.campaign.campaign.id,
        "fusions": [
            {**explained_document(fusion), "before_s": fusion.before_s, "after_s": fusion.time_s}
            for fusion in tuned.fusions
        ],
        "left_out": list(tuned.left_out),
        "baselines": list(map(baseline_document, tuned.baselines)),
    }


def _problem(problem: TunedProblem) -> dict[str, Any]:
    tuned = problem.tuned
    trial = problem.trial
    run = None
    if tuned is not None:
        run = tune_document(tuned.run, tuned.counts, tuned.selected, tuned.seconds)
    return {
        "problem": problem_document(problem.problem),
        "run": run,
        "used": None if trial is None else trial_document(trial),
        "reason": problem.reason or None,
    }
