import pytest

from tests.tuning.fakes import settings
from tuner.core.candidate import Candidate
from tuner.core.errors import REPEATABLE, Failure, Stage
from tuner.core.record import Measurement, Record, Verdict
from tuner.core.target_name import TargetName
from tuner.tuning.known_outcomes import OwnRecords

CPU = TargetName("cpu")
TIME = Measurement((1.0,), 1, 1.0, (1.0, 1.0))
CUT_OFF = Measurement((1.0,), 1, 1.0, (1.0, 1.0), is_complete=False)


def record(outcome: Measurement | Verdict | Failure, reused_from: int | None = None) -> Record:
    return Record(settings().problem, Candidate("s", ()), CPU, outcome, "script", "code", (), reused_from)


@pytest.mark.parametrize(
    ("outcome", "is_known"),
    [
        (TIME, True),
        (Verdict(0.1, 4), True),
        (CUT_OFF, False),
        *((Failure(stage, "no"), stage in REPEATABLE) for stage in Stage),
    ],
)
def test_what_would_be_the_same_again_is_known_by_script_and_by_code(
    outcome: Measurement | Verdict | Failure, is_known: bool
) -> None:
    own = OwnRecords()
    own.add(7, record(outcome))
    for sha256 in ("script", "code"):
        found = own.find(sha256)
        assert (found is not None) == is_known
        assert found is None or (found.outcome, found.reused_from) == (outcome, 7)


def test_a_reused_outcome_is_known_by_its_origin() -> None:
    own = OwnRecords()
    own.add(7, record(TIME))
    own.add(8, record(TIME, reused_from=7))
    found = own.find("code")
    assert found is not None
    assert found.reused_from == 7


def test_no_hash_is_no_key() -> None:
    own = OwnRecords()
    own.add(7, record(Failure(Stage.COMPILE, "no")))
    assert own.find("") is None
