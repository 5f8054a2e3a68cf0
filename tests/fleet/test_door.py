import json
from typing import Any

import pytest

from tests.fleet.values import FAILED, work
from tests.trials import measurement
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.interfaces import Artifact, FinalTimes
from tuner.core.machine import Roofline
from tuner.core.records import Verdict
from tuner.core.runs import Baseline
from tuner.fleet.report_checks import admitted, admitted_artifact
from tuner.fleet.work import (
    BASELINE,
    COMPILE,
    EVALUATE,
    REMEASURE,
    ROOFLINE,
    Compiled,
    Outcome,
    packed,
    to_json,
)
from tuner.runtime.workers.services import Evaluation

LIMIT_FLOP_PER_S = 1e12
TIMED = measurement(1e-3)
TOO_FAST = measurement(1e-9)
EVALUATED = Evaluation(Verdict(0.5, 64, ("note",)), TIMED, (("load", 0.1),))
BLOBS = {REMEASURE: ("a", "b")}
GOOD = {
    COMPILE: Compiled("b" * 64, "c" * 64, False),
    EVALUATE: EVALUATED,
    REMEASURE: FinalTimes((TIMED, None), Baseline("BLAS", 1, TIMED)),
    BASELINE: Baseline("BLAS", 1, TIMED),
    ROOFLINE: Roofline(1e9, 2e9),
}


def let_in(stage: str, value: Any, seconds: float = 0.5) -> Outcome:
    """Returns what comes of a report about work of a stage."""
    asked = work("run", 1, stage, blobs=BLOBS.get(stage, ()))
    return admitted(asked, json.dumps(to_json(Outcome(value, seconds))), LIMIT_FLOP_PER_S)


@pytest.mark.parametrize("stage", GOOD)
def test_outcomes_of_their_stage_and_failures_are_let_in(stage: str) -> None:
    assert let_in(stage, GOOD[stage]) == Outcome(GOOD[stage], 0.5)  # type: ignore[arg-type]
    assert let_in(stage, FAILED.value) == FAILED


def test_a_evaluation_without_a_time_is_let_in() -> None:
    evaluated = Evaluation(Verdict(0.5, 64), None, ())
    assert let_in(EVALUATE, evaluated).value == evaluated


@pytest.mark.parametrize("stage", GOOD)
def test_outcomes_of_other_stages_are_refused(stage: str) -> None:
    for other in GOOD.keys() - {stage}:
        with pytest.raises(UsageError, match=r"found a \w+, allowed a \w+ or a Failure"):
            let_in(stage, GOOD[other])


@pytest.mark.parametrize(
    ("stage", "value", "why"),
    [
        (EVALUATE, Evaluation(Verdict(0.5, -7), TIMED, ()), "found -7 compared elements, allowed 0 to 64"),
        (
            EVALUATE,
            Evaluation(Verdict(0.5, 64), TOO_FAST, ()),
            r"1024 GFLOP/s, allowed at most 1000 on such a machine",
        ),
        (EVALUATE, Evaluation(Verdict(0.5, 64), TIMED, (("load", -1.0),)), "found -1 seconds of load"),
        (REMEASURE, FinalTimes((TIMED,)), "found 1 final times, allowed 2"),
        (REMEASURE, FinalTimes((TIMED, TOO_FAST)), "on such a machine"),
        (REMEASURE, FinalTimes((TIMED, TIMED), Baseline("BLAS", 1, TOO_FAST)), "baseline: found a time of"),
        (BASELINE, Baseline("BLAS", 1, TOO_FAST), "baseline: found a time of"),
        (ROOFLINE, Roofline(0.0, 1.0), "found a roofline of 0 flop/s"),
    ],
)
def test_what_cannot_be_is_refused(stage: str, value: object, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        let_in(stage, value)


def test_the_seconds_of_work_are_a_time() -> None:
    with pytest.raises(UsageError, match="found -1 seconds of work"):
        let_in(COMPILE, GOOD[COMPILE], seconds=-1.0)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (None, "larger than the limit"),
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("3", "outcome: found 3, allowed an object"),
        ('{"seconds": NaN, "value": {"stage": "run", "reason": ""}}', "allowed a finite number"),
        ('{"seconds": 1e999, "value": {"stage": "run", "reason": ""}}', "allowed a finite number"),
        ('{"seconds": 1, "value": {"surprise": 1}}', "allowed Compiled or"),
    ],
)
def test_what_is_no_outcome_is_refused(report: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        admitted(work("run", 1, EVALUATE), report)


def test_an_artifact_is_the_one_that_was_reported() -> None:
    refusal = Failure(Stage.RESOURCES, "too much")
    artifact = Artifact("code", "c" * 64, ())
    assert admitted_artifact(Compiled("b", "c" * 64, False), packed(artifact)) == artifact
    for other in (Artifact("code", "d" * 64, ()), Artifact("code", "c" * 64, (), refusal=refusal)):
        with pytest.raises(UsageError, match=r"artifact .* is not the reported cccccccccccc"):
            admitted_artifact(Compiled("b", "c" * 64, False), packed(other))


@pytest.mark.parametrize("blob", [None, b"", b"[", b"[" * 100_000, b"{}", b"\xff"])
def test_bytes_that_are_no_artifact_are_refused(blob: bytes | None) -> None:
    with pytest.raises(UsageError, match=r"found|allowed|missing"):
        admitted_artifact(Compiled("b", "c" * 64, False), blob)
