"""The JSON documents of runs and tunings of MLIR programs."""

import math
from typing import Any

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.core.device_program import DeviceGroup
from tuner.output.json_documents import problem_document, trial_document, tune_document
from tuner.output.program_baselines import baseline_document
from tuner.output.program_groups import explained_document
from tuner.programs.request import Comparison, KernelSample, ProgramReport, ProgramRequest
from tuner.programs.run.device_work import DeviceWork
from tuner.programs.times import ProgramTimes
from tuner.programs.tuning import TunedProblem, TunedProgram


def run_document(request: ProgramRequest, report: ProgramReport) -> dict[str, Any]:
    """Returns the JSON document of ``tuner run --json``: the outcome of one run of an MLIR program."""
    return {
        "entry": report.entry,
        "target": request.target.text,
        "form": request.options.device.form,
        "streams": report.streams,
        "arguments": list(report.arguments),
        "results": list(report.results),
        "problems": [problem.key for problem in report.problems],
        "trace": list(report.trace) if request.options.trace else None,
        "reports": list(report.reports),
        "comparisons": [_comparison(one) for one in report.comparisons] if request.is_compared else None,
        "times": None if report.times is None else times_document(report.times),
        "interpreted": report.is_interpreted,
        "samples": [_sample(one) for one in report.samples] if request.options.sample else None,
        "work": None if report.work is None else _work(report.work),
        "work_without_groups": (
            None if report.work_without_groups is None else _work(report.work_without_groups)
        ),
        "resident_bytes": report.resident_bytes,
        "groups": [
            *(explained_document(each) for each in report.groups),
            *(_device_group(each) for each in report.device_groups),
        ]
        or None,
        "why_no_groups": report.why_no_groups or None,
        "printed": report.printed,
        "right": report.is_right,
    }


def _device_group(each: DeviceGroup) -> dict[str, Any]:
    return {"kind": each.kind, "ops": list(each.ops), "reason": each.reason or None}


def times_document(times: ProgramTimes) -> dict[str, Any]:
    """Returns a program's times in seconds; the kernels' time and overlap only if a device ran kernels."""
    kernels = {"kernel_s": times.kernel_s, "overlap": times.overlap, "serialized": times.is_serialized}
    return {
        "call_s": times.call_s,
        "interval_s": None if times.interval_s is None else list(times.interval_s),
        "reliability": times.reliability.text,
        **(kernels if times.kernels else {}),
    }


def _work(work: DeviceWork) -> dict[str, Any]:
    return {
        "launches": work.launches,
        "copied_in_bytes": work.copied_in_bytes,
        "copied_out_bytes": work.copied_out_bytes,
        "copied_inside_bytes": work.copied_inside_bytes,
        "copies_in": work.copies_in,
        "copies_out": work.copies_out,
    }


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


def _comparison(one: Comparison) -> dict[str, Any]:
    error = one.max_error if math.isfinite(one.max_error) else None  # JSON has no infinity
    return {
        "name": one.name,
        "equal": one.is_equal,
        "error": error,
        "tolerance": one.tolerance,
        "blind": one.is_blind,
    }


def program_document(tuned: TunedProgram) -> dict[str, Any]:
    """Returns the JSON document of a tuned program: the run of each matmul, the program with tuned scripts.

    Has also the program's times without tuned scripts, and the speedup with its interval. Of a program of
    groups also "group", the number of their runs' group, and "groups" with the times of each.
    """
    report, plain, gain = tuned.report, tuned.plain, tuned.gain
    return {
        "target": tuned.target.text,
        "problems": [_problem(each) for each in tuned.problems],
        "program": None if report is None else run_document(tuned.request, report),
        "plain": None if plain is None or plain.times is None else times_document(plain.times),
        "failure": tuned.failure or None,
        "speedup": tuned.speedup,
        "speedup_interval": list(gain.speed_interval) if isinstance(gain, Comparable) else None,
        "speedup_unknown": gain.reason if isinstance(gain, NotComparable) else None,
        "seconds": tuned.seconds,
        **_groups(tuned),
    }


def _groups(tuned: TunedProgram) -> dict[str, Any]:
    """Returns the JSON of a program's groups, each with its times; {} of a program that has none."""
    if tuned.run_group is None:
        return {}
    groups = [
        {**explained_document(each), "before_s": each.before_s, "after_s": each.time_s}
        for each in tuned.groups
    ]
    return {
        "group": tuned.run_group.group.id,
        "groups": groups,
        "left_out": list(tuned.left_out),
        "baselines": [baseline_document(each) for each in tuned.baselines],
    }


def _problem(each: TunedProblem) -> dict[str, Any]:
    tuned, trial = each.tuned, each.trial
    run = None
    if tuned is not None:
        run = tune_document(tuned.run, tuned.counts, tuned.selected, tuned.seconds)
    return {
        "problem": problem_document(each.problem),
        "run": run,
        "used": None if trial is None else trial_document(trial),
        "reason": each.reason or None,
    }
