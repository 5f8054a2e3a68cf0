"""What a run recalls, by script or code."""

from dataclasses import replace

import pytest

from tests.db import values
from tests.tuning.fakes import settings
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import REPEATABLE, Failure, Stage
from tuner.core.records import Measurement, Record, Verdict
from tuner.db.store import Store
from tuner.tuning.earlier_results import KnownOutcomes, OutcomesByCode, is_early_stopped, is_reusable

SCRIPT, CODE = "1" * 64, "2" * 64
CUT_OFF = Measurement((1.0,), 1, 1.0, (1.0, 1.0), is_complete=False)


def outcome(measured: Measurement) -> Record:
    return replace(values.outcome(measured), script_sha256=SCRIPT, artifact_sha256=CODE)


def known(store: Store, fresh: bool = False) -> KnownOutcomes:
    return KnownOutcomes(store, store.run(values.begin(store, replace(values.SETTINGS, fresh=fresh))))


@pytest.mark.parametrize(("script", "code"), [(values.sha256(values.SCRIPT), ""), ("", "a" * 64)])
@pytest.mark.parametrize("fresh", [False, True])
def test_an_earlier_run_is_known_unless_the_run_is_a_fresh_one(
    store: Store, script: str, code: str, fresh: bool
) -> None:
    trial = values.add(store, values.begin(store), 0, values.outcome(values.timed(1e-3), artifact="a" * 64))
    found = known(store, fresh).recall(script, code)
    assert (None if found is None else found.reused_from) == (None if fresh else trial)


def test_a_fresh_run_repeats_nothing_of_its_own(store: Store) -> None:
    outcomes = known(store, fresh=True)
    outcomes.add(7, outcome(values.timed(1e-3)))
    for script, code in ((SCRIPT, ""), ("", CODE)):
        found = outcomes.recall(script, code)
        assert found is not None
        assert found.reused_from == 7


@pytest.mark.parametrize("fresh", [False, True])
def test_what_was_early_stopped_is_not_tried_again(store: Store, fresh: bool) -> None:
    outcomes = known(store, fresh)
    outcomes.add(7, outcome(CUT_OFF))
    found = outcomes.recall(SCRIPT, "")
    assert found is not None
    assert (found.outcome, found.reused_from) == (CUT_OFF, 7)


def test_what_nobody_knows_is_not_recalled(store: Store) -> None:
    assert known(store).recall(SCRIPT, "") is None


CPU = TargetName("cpu")
TIME = Measurement((1.0,), 1, 1.0, (1.0, 1.0))


def record(outcome: Measurement | Verdict | Failure, reused_from: int | None = None) -> Record:
    return Record(settings().problem, Candidate("s", ()), CPU, outcome, "script", "code", (), reused_from)


@pytest.mark.parametrize(
    ("outcome", "lasts"),
    [
        (TIME, True),
        (Verdict(0.1, 4), True),
        (CUT_OFF, False),
        *((Failure(stage, "no"), stage in REPEATABLE) for stage in Stage),
    ],
)
def test_what_is_not_due_to_the_machine_lasts(outcome: Measurement | Verdict | Failure, lasts: bool) -> None:
    assert is_reusable(record(outcome)) == lasts
    assert is_early_stopped(record(outcome)) == (outcome is CUT_OFF)


def test_an_outcome_is_known_by_script_and_by_code_and_by_its_origin() -> None:
    known = OutcomesByCode()
    known.add(7, record(TIME))
    assert known.find("script") == known.find("code") == record(TIME, reused_from=7)
    known.add(9, record(TIME, reused_from=8))
    assert known.find("code") == record(TIME, reused_from=8)


def test_no_hash_is_no_key() -> None:
    known = OutcomesByCode()
    known.add(7, replace(record(Failure(Stage.COMPILE, "no")), artifact_sha256=""))
    assert known.find("") is None
