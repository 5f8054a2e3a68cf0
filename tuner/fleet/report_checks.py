"""Validation of what nodes report: a report that cannot be the outcome of its work is refused."""

import json
import math
from typing import Any, Final

from tuner.core.errors import Failure, UsageError
from tuner.core.interfaces import Artifact, FinalTimes
from tuner.core.machine import Roofline
from tuner.core.remote_results import MOST_S, why_impossible, why_no_baseline, why_no_roofline, why_no_verdict
from tuner.core.runs import Baseline
from tuner.fleet.work import (
    BASELINE,
    COMPILE,
    EVALUATE,
    REMEASURE,
    ROOFLINE,
    Compiled,
    FleetWork,
    Outcome,
    outcome_from_json,
    unpacked,
)
from tuner.runtime.workers.services import Evaluation

KINDS: Final[dict[str, type[Any]]] = {
    COMPILE: Compiled,
    EVALUATE: Evaluation,
    REMEASURE: FinalTimes,
    BASELINE: Baseline,
    ROOFLINE: Roofline,
}


def admitted(work: FleetWork, report: str | None, limit_flop_per_s: float = math.inf) -> Outcome:
    """Returns the outcome of a piece of work from a node's JSON report, once the report is found possible.

    ``report`` None: longer than 4 MiB. Raises UsageError for None, another form or stage, and impossible
    numbers, such as speeds above ``limit_flop_per_s``.
    """
    if report is None:
        raise UsageError("the outcome is larger than the limit")
    try:
        outcome = outcome_from_json(json.loads(report))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"found an outcome that is no JSON ({type(error).__name__})") from error
    why = _why_refused(work, outcome, limit_flop_per_s)
    if why:
        raise UsageError(why)
    return outcome


def admitted_artifact(compiled: Compiled, blob: bytes | None) -> Artifact:
    """Returns the artifact stored as ``blob``; raises UsageError unless it is the reported one."""
    if blob is None:
        raise UsageError(f"blob {compiled.blob[:12]} of the reported artifact is missing")
    try:
        artifact = unpacked(blob)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"found an artifact that is no JSON ({type(error).__name__})") from error
    if (artifact.sha256, artifact.refusal is not None) != (compiled.artifact_sha256, compiled.is_refused):
        raise UsageError(
            f"artifact {artifact.sha256[:12]} is not the reported {compiled.artifact_sha256[:12]}"
        )
    return artifact


def _why_refused(work: FleetWork, outcome: Outcome, limit_flop_per_s: float) -> str:
    if not 0 <= outcome.seconds <= MOST_S:
        return f"found {outcome.seconds:g} seconds of work, allowed 0 to {MOST_S:g}"
    value, kind = outcome.value, KINDS[work.stage]
    if not isinstance(value, Failure | kind):
        return f"found a {type(value).__name__}, allowed a {kind.__name__} or a Failure"
    match value:
        case Evaluation():
            return _why_no_evaluation(work, value, limit_flop_per_s)
        case FinalTimes():
            return _why_no_remeasurement(work, value, limit_flop_per_s)
        case Baseline():
            return why_no_baseline(value, work.problem, limit_flop_per_s)
        case Roofline():
            return why_no_roofline(value, limit_flop_per_s)
    return ""


def _why_no_evaluation(work: FleetWork, found: Evaluation, limit_flop_per_s: float) -> str:
    for stage, seconds in found.stage_s:
        if not 0 <= seconds <= MOST_S:
            return f"found {seconds:g} seconds of {stage}, allowed 0 to {MOST_S:g}"
    why = why_no_verdict(found.verdict, work.problem)
    if why or found.measurement is None:
        return why
    return why_impossible(found.measurement, work.problem, limit_flop_per_s)


def _why_no_remeasurement(work: FleetWork, found: FinalTimes, limit_flop_per_s: float) -> str:
    if len(found.times) != len(work.blobs):
        return f"found {len(found.times)} final times, allowed {len(work.blobs)}"
    times = [time for time in found.times if time is not None]
    whys = [why_impossible(time, work.problem, limit_flop_per_s) for time in times]
    if found.baseline is not None:
        whys.append(why_no_baseline(found.baseline, work.problem, limit_flop_per_s))
    return next(filter(None, whys), "")
