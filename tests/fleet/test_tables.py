from typing import TYPE_CHECKING

import pytest

from benchmarks.fleet.overlaps import repeated
from tests.fleet.values import FAILED, node, outcomes, work
from tuner.core.errors import Failure, Stage, UsageError
from tuner.fleet import tables
from tuner.fleet.node_children import now
from tuner.fleet.work import Outcome, hash_of

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

pytestmark = pytest.mark.postgres
LOAD = tables.QueueLoad(0.01, 12.0)
LATE = Outcome(Failure(Stage.RUN, "late"), 9.0)


def test_the_first_outcome_stays_whoever_comes_later(connection: "Connection", run: str) -> None:
    key = work(run, 4).key
    assert not tables.is_reported(connection, key)
    tables.tell(connection, key, FAILED, "first")
    tables.tell(connection, key, LATE, "late")
    assert tables.is_reported(connection, key)
    assert outcomes(connection, run) == {(4, "compile"): FAILED}


def test_an_outcome_wakes_its_driver_and_no_other(connection: "Connection", run: str) -> None:
    connection.execute(f'LISTEN "{tables.channel_of(run)}"'.encode())
    tables.tell(connection, work("another").key, FAILED, "n")
    tables.tell(connection, work(run).key, FAILED, "n")
    (notice,) = connection.notifies(timeout=120, stop_after=1)
    assert notice.channel == tables.channel_of(run)


def test_questions_are_forgotten_and_trials_are_not(connection: "Connection", run: str) -> None:
    for number in (-7, 0, 1):
        tables.tell(connection, work(run, number).key, FAILED, "n")
    tables.delete_outcomes_outside_of_trials(connection, run)
    tables.forget(connection, work(run, 1).key)
    assert set(outcomes(connection, run)) == {(0, "compile")}


def test_outcomes_of_some_numbers_are_read_alone(connection: "Connection", run: str) -> None:
    for number in range(4):
        tables.tell(connection, work(run, number).key, FAILED, "n")
    assert set(outcomes(connection, run, [3, 1, 9])) == {(1, "compile"), (3, "compile")}
    assert outcomes(connection, run, []) == {}


def test_work_whose_answer_was_lost_is_noted_once(connection: "Connection", run: str) -> None:
    began, other = now(), now()
    for moment in (began, began, other):
        done = tables.Execution("n", "d", tables.Interval(moment, moment))
        tables.note_work(connection, work(run), done)
    assert repeated(connection, run) == 1
    found = connection.execute("SELECT began FROM fleet_work WHERE run = %s ORDER BY began", (run,))
    assert [moment for (moment,) in found] == [began, other]


def test_a_blob_is_stored_once_and_checked(connection: "Connection") -> None:
    sha256 = hash_of(b"script")
    assert tables.blob_of(connection, sha256) is None
    tables.put_blob(connection, sha256, b"script")
    tables.put_blob(connection, sha256, b"script")
    assert tables.blob_of(connection, sha256) == b"script"
    wrong = hash_of(b"other")
    tables.put_blob(connection, wrong, b"script")
    with pytest.raises(UsageError, match="its content does not match its hash"):
        tables.blob_of(connection, wrong)


def test_a_blob_that_unpacks_to_more_than_the_limit_is_refused(
    connection: "Connection", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BLOB_LIMIT_BYTES", 1000)
    tables.put_blob(connection, "many", bytes(1001))
    with pytest.raises(UsageError, match="found more than 1000 bytes once unpacked, allowed 1000"):
        tables.blob_of(connection, "many")
    connection.execute("UPDATE fleet_blob SET body = %s WHERE sha256 = 'many'", (bytes(1001),))
    with pytest.raises(UsageError, match=r"fleet: blob many: .* not zlib's format"):  # not even sent
        tables.blob_of(connection, "many")


def test_a_driver_s_blob_takes_the_place_of_a_false_one(connection: "Connection") -> None:
    sha256 = hash_of(b"a script")
    tables.put_blob(connection, sha256, b"what a node put there first")
    tables.replace_blob(connection, sha256, b"a script")
    tables.put_blob(connection, sha256, b"what a node puts there later")
    assert tables.blob_of(connection, sha256) == b"a script"
    tables.forget_blob(connection, sha256)
    assert tables.blob_of(connection, sha256) is None


def test_a_report_above_the_limit_is_not_sent(
    connection: "Connection", run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.tell(connection, work(run).key, FAILED, "n")
    monkeypatch.setattr(tables, "REPORT_LIMIT_BYTES", 10)
    assert tables.reports_of(connection, run) == {(0, "compile"): tables.NodeReport(None, "n")}


def test_a_node_joins_beats_drains_and_leaves(connection: "Connection") -> None:
    tables.join(connection, node("a"))
    tables.join(connection, node("a", process=2, slots=0))
    (seen,) = tables.nodes(connection)
    assert seen.node == node("a", process=2, slots=0)
    assert seen.silent_s < 60
    assert not seen.drains
    assert seen.load is None
    assert not tables.beat(connection, "a", LOAD)
    assert tables.nodes(connection)[0].load == LOAD
    assert tables.drain(connection, "a")
    assert not tables.drain(connection, "b")
    assert tables.beat(connection, "a", LOAD)
    tables.leave(connection, "a", process=1)  # of a process that lost its name
    assert len(tables.nodes(connection)) == 1
    tables.leave(connection, "a", process=2)
    assert tables.nodes(connection) == ()
