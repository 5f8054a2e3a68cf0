"""Runs of programs as documents for other programs."""

import math
from typing import Any

from tuner.program_run import Comparison, ProgramReport, ProgramRequest
from tuner.program_times import ProgramTimes


def run_document(request: ProgramRequest, report: ProgramReport) -> dict[str, Any]:
    """Returns what ``tuner run --json`` prints."""
    return {
        "entry": report.entry,
        "target": request.target,
        "form": request.form,
        "streams": report.streams,
        "arguments": list(report.arguments),
        "results": list(report.results),
        "problems": [problem.key for problem in report.problems],
        "trace": list(report.trace) if request.is_traced else None,
        "reports": list(report.reports),
        "comparisons": [_comparison(one) for one in report.comparisons] if request.is_compared else None,
        "times": None if report.times is None else times_document(report.times),
        "right": report.is_right,
    }


def times_document(times: ProgramTimes) -> dict[str, Any]:
    """Returns the times of a program; kernels only where a device ran them."""
    kernels = {"kernel_s": times.kernel_s, "overlap": times.overlap, "serialized": times.is_serialized}
    return {"call_s": times.call_s, **(kernels if times.kernels else {})}


def _comparison(one: Comparison) -> dict[str, Any]:
    error = one.max_error if math.isfinite(one.max_error) else None  # JSON has no infinity
    return {
        "name": one.name,
        "equal": one.is_equal,
        "error": error,
        "tolerance": one.tolerance,
        "blind": one.is_blind,
    }
