from dataclasses import replace

import pytest

from tests.tuning.fakes import settings
from tuner.core.candidate import Candidate
from tuner.core.errors import REPEATABLE, Failure, Stage
from tuner.core.record import Measurement, Record, Verdict
from tuner.core.target_name import TargetName
from tuner.tuning.outcomes_by_code import OutcomesByCode, is_cut_off, is_lasting

CPU = TargetName("cpu")
TIME = Measurement((1.0,), 1, 1.0, (1.0, 1.0))
CUT_OFF = Measurement((1.0,), 1, 1.0, (1.0, 1.0), is_complete=False)


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
    assert is_lasting(record(outcome)) == lasts
    assert is_cut_off(record(outcome)) == (outcome is CUT_OFF)


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
