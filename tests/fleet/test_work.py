import json

import pytest

from tests.fleet.values import work
from tests.trials import measurement
from tuner.core.bench import FinalTimes
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.machine import Compiler, Roofline
from tuner.core.record import Verdict
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.fleet.work import (
    JUDGE,
    Compiled,
    Outcome,
    compile_queue,
    maker_of,
    measure_queue,
    outcome_from_json,
    to_json,
    work_from_json,
)
from tuner.workers.judge import Judgement

TIMED = measurement(1.0)


def test_work_crosses_as_json() -> None:
    asked = work("r", 3, blobs=("a", "b"), effort=Effort(stop_above_s=0.1), slowest_s=None)
    assert work_from_json(json.loads(json.dumps(to_json(asked)))) == asked
    assert asked.key == ("r", 3, "compile")


@pytest.mark.parametrize(
    "value",
    [
        Compiled("b" * 64, "c" * 64, False),
        Judgement(Verdict(0.5, 4, ("note",)), TIMED, (("load", 0.1),)),
        Judgement(Verdict(0.5, 4), None, ()),
        FinalTimes((TIMED, None), Baseline("BLAS", 1, TIMED)),
        Baseline("BLAS", 1, TIMED),
        Roofline(1e9, 2e9),
        Failure(Stage.RUN, "timed out"),
    ],
)
def test_each_kind_of_outcome_crosses_as_json(value: object) -> None:
    outcome = Outcome(value, 0.25)  # type: ignore[arg-type] # one of the union each
    assert outcome_from_json(json.loads(json.dumps(to_json(outcome)))) == outcome


def test_what_another_version_wrote_is_refused() -> None:
    with pytest.raises(UsageError, match=r"work: found .* allowed the fields blobs, effort"):
        work_from_json({"run": "r"})
    with pytest.raises(UsageError, match=r"outcome\.value: found .*, allowed Compiled or"):
        outcome_from_json({"value": {"surprise": 1}, "seconds": 1.0})


def test_queues_are_of_what_makes_code_and_of_a_device() -> None:
    first, second = (maker_of(Compiler("LLVM", (("wheel", version),), "0" * 64)) for version in "12")
    assert compile_queue(first) != compile_queue(second)
    assert measure_queue("h200", "a") != measure_queue("h200", "b") != measure_queue("a100", "b")
    assert len(measure_queue("h200" * 100, "a" * 500)) < 128  # what the engine takes


def test_people_are_told_of_trials_by_number() -> None:
    assert work("run", 7).words == "compile of trial 7"
    assert work("run", -2, JUDGE).words == "judge"
