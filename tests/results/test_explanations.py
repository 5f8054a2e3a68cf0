"""A real trial is compiled again once, what its passes took is stored; others are refused."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tuner
from tests.db.values import add, outcome, timed
from tests.fakes import FakeTarget
from tests.mlir.scripts import script
from tests.results.report.values import with_candidate
from tests.trials import measurement, trial
from tests.tuning import fakes
from tests.tuning.fakes import OTHER_MACHINE, settings
from tuner.core.candidate import TargetName
from tuner.core.errors import PAYLOAD, SCRIPT, Failure, OpPlace, Stage, TunerError, UsageError
from tuner.core.records import CompileSeconds, Measurement, PassSeconds, Verdict
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.constraint_suggestions import observations, problem_and_target
from tuner.results.explanations import FailedOp, failed_ops, pass_seconds
from tuner.targets.registry import real_backends


@pytest.mark.mlir
@pytest.mark.slow
def test_the_passes_of_a_verified_trial_are_timed(tmp_path: Path) -> None:
    database = tmp_path / "results.db"
    run = tuner.tune(tuner.Matmul(32, 32, 32), "simulator", trials=1, workers=1, db=database)
    assert run.counts.verified == 1
    with Store.open(f"sqlite:///{database}") as store:
        (trial,) = tuner.history(db=database)
        found = pass_seconds(real_backends(), store, trial)
        stored = store.trial(trial.id).compile_seconds
    assert stored is not None
    assert stored.passes == found
    names = " ".join(each.name for each in found)
    assert "Canonicalizer" in names
    assert "nvvm" in names.lower()
    assert found == tuple(sorted(found, key=lambda each: (-each.seconds, each.name)))


@pytest.fixture
def tried(tmp_path: Path) -> Iterator[tuple[Store, StoredTrial]]:
    with Store.open(str(tmp_path / "results.db")) as store:
        run = store.begin_run(fakes.settings(), fakes.MACHINE, FakeTarget().compiler(), "0.1.0", None)
        yield store, store.trial(add(store, run, 0, replace(outcome(timed(0.5)), target=TargetName("fake"))))


@pytest.mark.mlir
def test_a_replay_is_refused_what_cannot_be_stored_reported(tried: tuple[Store, StoredTrial]) -> None:
    store, trial = tried
    with pytest.raises(UsageError, match="does not compile"):
        pass_seconds(fakes.backends(), store, replace(trial, stored_script=""))
    with pytest.raises(UsageError, match="does not compile any more: target fake: compiles nothing"):
        pass_seconds(fakes.backends(), store, trial)
    compiling = fakes.changed(fakes.FAKE, code=lambda _target, _problem, _script: "")
    backends = fakes.changed(fakes.backends(), targets={"fake": compiling})
    assert pass_seconds(backends, store, replace(trial, id=99)) == ()  # stored nowhere: no such trial
    assert store.trial(trial.id).compile_seconds is None
    assert pass_seconds(backends, store, trial) == ()
    assert store.trial(trial.id).compile_seconds is not None


@pytest.mark.mlir
def test_what_is_stored_is_reported_for_its_compiler_and_machine(tried: tuple[Store, StoredTrial]) -> None:
    store, trial = tried
    machine = fakes.backends().machine().name
    seconds = CompileSeconds(FakeTarget().compiler().fingerprint, machine, (PassSeconds("CSE", 0.001, 2),))
    store.set_compile_seconds(trial.id, seconds)
    assert pass_seconds(fakes.backends(), store, store.trial(trial.id)) == seconds.passes
    for older in (replace(seconds, compiler="older"), replace(seconds, machine="another")):
        store.set_compile_seconds(trial.id, older)
        with pytest.raises(UsageError, match="does not compile any more"):  # it was compiled again
            pass_seconds(fakes.backends(), store, store.trial(trial.id))


# The ops that a failure is about come with their lines of the script and of the payload.

TEXT = "module {\n  one\n  two\n}\n"
ONE, TWO = OpPlace(SCRIPT, "t.one", 2, 3), OpPlace(SCRIPT, "t.two", 3, 3)
FIRST = OpPlace(PAYLOAD, "linalg.fill", 1, 1)
SOURCE = "// source of 8x8x8"


def failed(reason: str, text: str = TEXT) -> tuple[FailedOp, ...]:
    def find(given: str, payload: str) -> OpPlace:
        assert (given, payload) == (text, f"{SOURCE}\n")
        return TWO

    stored = trial(1, Failure(Stage.COMPILE, reason), script=text)
    return failed_ops(fakes.changed(fakes.backends(), failing_op=find), stored)


def test_the_ops_of_a_failure_have_their_lines() -> None:
    for reason, found in (
        ("t.one at script:2:3: no", (FailedOp(ONE, "one"),)),
        # the op of the script that MLIR does not name is found by applying the script again
        ("linalg.fill at payload:1:1: no", (FailedOp(TWO, "two"), FailedOp(FIRST, SOURCE))),
        ("element (0, 1): found 2, expected 1", ()),  # on another machine
        ("ran for 10 s", ()),
    ):
        assert failed(reason) == found


def test_a_line_that_is_no_more_is_empty_and_what_did_not_fail_or_was_never_bound_is_about_no_op() -> None:
    assert failed("t.one at script:2:3: no; linalg.fill at payload:9:1: here")[1].line_text == ""
    assert failed_ops(fakes.backends(), trial(1, measurement(1.0))) == ()
    assert failed("t.one at script:2:3: no", text="") == ()


def test_a_compiler_that_crashes_leaves_the_payload_op() -> None:
    def crash(_script: str, _payload: str) -> OpPlace | None:
        raise TunerError("apply: exited with status 3")

    stored = trial(1, Failure(Stage.COMPILE, "linalg.fill at payload:1:1: no"))
    found = failed_ops(fakes.changed(fakes.backends(), failing_op=crash), stored)
    assert [each.place for each in found] == [FIRST]


@pytest.mark.slow
@pytest.mark.mlir
def test_a_real_script_is_applied_to_the_payload_that_it_was_given() -> None:
    text = script("transform.structured.vectorize %product vector_sizes [3, 3] : !transform.any_op")
    stored = trial(1, Failure(Stage.COMPILE, "linalg.matmul at payload:8:14: no"), script=text)
    stored = replace(stored, record=replace(stored.record, target=TargetName("cpu")))
    op, product = failed_ops(real_backends(), stored)
    assert op.place == OpPlace(SCRIPT, "transform.structured.vectorize", 5, 5)
    assert op.line_text.startswith("transform.structured.vectorize %product")
    assert product.line_text.startswith("%product = linalg.matmul")


SPILLS = Failure(Stage.COMPILE, "spills")


def of(number: int, outcome: Measurement | Verdict | Failure, x: int, target: str = "fake") -> StoredTrial:
    made = with_candidate(trial(number, outcome), "fake", {"x": x})
    return replace(made, record=replace(made.record, target=TargetName.parse(target)))


def test_a_point_that_worked_once_is_a_success_and_a_replay_is_no_evidence() -> None:
    tried = [of(0, SPILLS, 7), of(1, measurement(1e-3), 7), of(2, SPILLS, 7), of(3, SPILLS, 8)]
    assert [(each.failure, each.trials) for each in observations(tried)] == [(None, 3), (SPILLS, 1)]
    assert [each.failure for each in observations([of(0, Verdict(0.0, 1), 7)])] == [None]
    assert observations([of(0, SPILLS, 7, "replay:space")]) == ()
    elsewhere = replace(of(1, SPILLS, 7), machine=OTHER_MACHINE)
    assert len(observations([of(0, SPILLS, 7), elsewhere, replace(of(2, SPILLS, 7), threads=2)])) == 3


def test_a_point_knows_its_knobs_sizes_and_limits() -> None:
    for name, value in (("x", 7), ("m", 8), ("input_bytes", 4), ("threads", 1), ("layout", "nn")):
        (seen,) = observations([of(0, SPILLS, 7)])
        assert dict(seen.values)[name] == value
        assert seen.problem == problem_and_target(settings().problem, settings().target)
