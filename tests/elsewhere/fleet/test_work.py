import json
from dataclasses import replace
from typing import Any

import pytest

from tests.elsewhere.fleet.values import FAILED, work
from tests.fakes import PROBLEM, UntimedTarget, bind, candidate
from tests.trials import measurement
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.interfaces import Artifact, Effort, FinalTimes, Partition
from tuner.core.records import Measurement, Verdict
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, Compiler
from tuner.elsewhere.fleet.work import (
    BASELINE,
    COMPILE,
    EVALUATE,
    REMEASURE,
    ROOFLINE,
    Compiled,
    Outcome,
    admitted,
    admitted_artifact,
    compile_queue,
    compiler_build_of,
    measure_queue,
    packed,
    to_json,
    unpacked,
    work_from_json,
)

LIMIT_FLOP_PER_S = 1e12
TIMED, TOO_FAST = measurement(1e-3), measurement(1e-9)


def evaluated(time: Measurement | None = TIMED, elements: int = 64, load_s: float = 0.1) -> Outcome:
    verdict = Verdict(0.5, elements, ("note",))
    if time is None:
        return Outcome(verdict, 0.5, stage_s=(("load", load_s),))
    return Outcome(time, 0.5, verdict, (("load", load_s),))


BLOBS = {REMEASURE: ("a", "b")}
GOOD = {
    COMPILE: Compiled("b" * 64, "c" * 64, False),
    EVALUATE: evaluated(),
    REMEASURE: FinalTimes((TIMED, None), Baseline("BLAS", 1, TIMED)),
    BASELINE: Baseline("BLAS", 1, TIMED),
    ROOFLINE: Roofline(1e9, 2e9),
}


def let_in(stage: str, value: Any, seconds: float = 0.5) -> Outcome:
    asked = work("run", 1, stage, blobs=BLOBS.get(stage, ()))
    outcome = value if isinstance(value, Outcome) else Outcome(value, seconds)
    return admitted(asked, json.dumps(to_json(outcome)), LIMIT_FLOP_PER_S)


@pytest.mark.parametrize("stage", GOOD)
def test_outcomes_of_their_stage_and_failures_are_let_in_and_those_of_others_refused(stage: str) -> None:
    good = GOOD[stage]
    assert let_in(stage, good) == (good if isinstance(good, Outcome) else Outcome(good, 0.5))  # type: ignore[arg-type]
    assert let_in(stage, FAILED.value) == FAILED
    for other in GOOD.keys() - {stage}:
        with pytest.raises(UsageError, match=r"found a \w+, allowed a [\w ]+ or a Failure"):
            let_in(stage, GOOD[other])


def test_an_evaluation_without_a_time_is_let_in_and_only_the_artifact_that_was_reported() -> None:
    assert let_in(EVALUATE, evaluated(None)) == evaluated(None)
    with pytest.raises(UsageError, match="found -1 seconds of work"):
        let_in(COMPILE, GOOD[COMPILE], seconds=-1.0)
    refusal = Failure(Stage.RESOURCES, "too much")
    artifact, reported = Artifact(KernelCode.of_host("code"), "c" * 64), Compiled("b", "c" * 64, False)
    assert admitted_artifact(reported, packed(artifact)) == artifact
    for other in (replace(artifact, sha256="d" * 64), replace(artifact, refusal=refusal)):
        with pytest.raises(UsageError, match=r"artifact .* is not the reported cccccccccccc"):
            admitted_artifact(reported, packed(other))
    for blob in (None, b"", b"[", b"[" * 100_000, b"{}", b"\xff"):  # no artifact
        with pytest.raises(UsageError, match=r"found|allowed|missing"):
            admitted_artifact(reported, blob)


@pytest.mark.parametrize(
    ("stage", "value", "why"),
    [
        (EVALUATE, TIMED, "found a time without a verdict"),
        (EVALUATE, evaluated(elements=-7), "found -7 compared elements, allowed 0 to 64"),
        (EVALUATE, evaluated(TOO_FAST), r"1024 GFLOP/s, allowed at most 1000 on such a machine"),
        (EVALUATE, evaluated(load_s=-1.0), "found -1 seconds of load"),
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


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (None, "larger than the limit"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("3", "outcome: found 3, allowed a mapping"),
        ('{"seconds": NaN, "value": {"stage": "run", "reason": ""}}', "allowed a finite number"),
        ('{"seconds": 1e999, "value": {"stage": "run", "reason": ""}}', "allowed a finite number"),
        ('{"seconds": 1, "value": {"surprise": 1}}', "allowed Compiled or"),
    ],
)
def test_what_is_no_outcome_is_refused(report: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        admitted(work("run", 1, EVALUATE), report)


def test_work_and_code_cross_as_json_and_are_reported_to_people_by_number_and_queue() -> None:
    asked = work("r", 3, blobs=("a", "b"), effort=Effort(stop_above_s=0.1), slowest_s=None)
    assert work_from_json(json.loads(json.dumps(to_json(asked)))) == asked
    assert (asked.key, asked.text) == (("r", 3, "compile"), "compile of trial 3")
    assert work("run", -2, EVALUATE).text == "evaluate"
    with pytest.raises(UsageError, match=r"work\.number: is missing"):  # another version wrote it
        work_from_json({"run": "r"})
    first, second = (compiler_build_of(Compiler("LLVM", (("wheel", version),), "0" * 64)) for version in "12")
    assert compile_queue(first) != compile_queue(second)
    assert measure_queue("h200", "a") != measure_queue("h200", "b") != measure_queue("a100", "b")
    assert len(measure_queue("h200" * 100, "a" * 500)) < 128  # what the engine takes
    for x in (3, 5):
        on_gpu = UntimedTarget().compile(PROBLEM, bind(candidate(x)))
        assert on_gpu.code.is_for_device
        on_cpu = Artifact(
            KernelCode.of_host("llvm.func @f()"), "0" * 64, (Partition("f", 0, 0, 8, 8),), (("lower", 0.1),)
        )
        for artifact in (on_gpu, on_cpu):
            assert unpacked(packed(artifact)) == artifact
            assert packed(unpacked(packed(artifact))) == packed(artifact)  # equal artifacts, equal hashes
