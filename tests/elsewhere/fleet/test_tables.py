import asyncio

import pytest

from tests.elsewhere.fleet.values import FAILED, Connection, defer, node, outcomes, take_job, under_way, work
from tests.support.overlaps import repeated
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, UsageError
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.install import _grant, install
from tuner.elsewhere.fleet.node_children import now
from tuner.elsewhere.fleet.server import connected, session
from tuner.elsewhere.fleet.tables import FleetSettings, read_settings
from tuner.elsewhere.fleet.work import COMPILE, EVALUATE, FleetWork, Outcome, Service, hash_of

pytestmark = pytest.mark.postgres
BEAT_S = 10.0
DIES_AT_FIRST_END = """
CREATE SEQUENCE ends;
CREATE FUNCTION die_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('ends') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
  RETURN old;
END $$;
CREATE TRIGGER die_once BEFORE DELETE ON procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION die_once();
"""
LOAD = tables.QueueLoad(0.01, 12.0)
LATE = Outcome(Failure(Stage.RUN, "late"), 9.0)


def served(url: str, count: int, *services: Service, fails: int = 0) -> list[FleetWork]:
    done: list[FleetWork] = []

    async def until_done() -> None:
        ending = asyncio.Event()

        async def do(asked: FleetWork) -> None:
            done.append(asked)
            if len(done) >= count:
                ending.set()
            if len(done) <= fails:
                raise OSError("no room")

        await asyncio.wait_for(queues.serve(url, services, do, BEAT_S, ending), 30)

    asyncio.run(until_done())
    return done


def test_jobs_are_done_by_priority_then_in_order(connection: Connection, shared_url: str, run: str) -> None:
    asked = [work(run, number) for number in range(4)]
    for each, priority in zip(asked, (0, 0, 5, 0), strict=True):
        defer(connection, each, priority=priority)
    assert under_way(connection, run) == {(number, "compile") for number in range(4)}
    assert served(shared_url, 4, Service("compile:a", 1)) == [asked[2], asked[0], asked[1], asked[3]]
    assert under_way(connection, run) == set()


def test_what_a_node_cannot_do_is_given_back(connection: Connection, shared_url: str, run: str) -> None:
    defer(connection, work(run))
    served(shared_url, 1, Service("compile:a", 1), fails=1)
    assert under_way(connection, run) == {(0, "compile")}
    assert connection.execute("SELECT attempts FROM procrastinate_jobs").fetchone() == (1,)


def test_jobs_are_taken_back(connection: Connection, run: str) -> None:
    _, second, _ = (defer(connection, work(run, number)) for number in range(3))
    defer(connection, work("another"))
    queues.drop_waiting(connection, second)
    assert under_way(connection, run) == {(0, "compile"), (2, "compile")}
    assert (queues.cancel_run(connection, run), under_way(connection, run)) == (2, set())
    assert under_way(connection, "another") == {(0, "compile")}


def test_what_waits_is_reported_by_queue(connection: Connection, run: str) -> None:
    for number in range(2):
        defer(connection, work(run, number, EVALUATE), "measure:a:b", alone=True)
    take_job(connection)
    for _ in range(2):
        (found,) = queues.waiting(connection)
        assert (found.queue, found.todo, found.doing_count) == ("measure:a:b", 1, 1)
        assert (found.doing, found.runs) == (work(run, 0, EVALUATE), (run,))
        assert 0.0 <= found.doing_s < 60.0
        take_job(connection)  # another node asks: it gets none


def test_compilers_are_reported_by_target(connection: Connection, run: str) -> None:
    for number, compiler_build in enumerate(("new", "old", "old")):
        defer(connection, work(run, number, compiler_build=compiler_build))
    defer(connection, work(run, 3, target=TargetName("cpu")), "compile:b")
    assert queues.compiler_builds(connection, TargetName("fake")) == (("new", 1), ("old", 2))
    assert queues.compiler_builds(connection, TargetName("cuda", "sm_90")) == ()


def test_the_run_whose_turn_it_is_is_reported_first(connection: Connection, run: str) -> None:
    for who, priority in (("patient", 0), (run, 5), ("patient", 0)):
        defer(connection, work(who), priority=priority)
    (found,) = queues.waiting(connection)
    assert (found.runs, found.example) == ((run, "patient"), work(run))
    assert (found.doing, found.doing_s) == (None, 0.0)


def test_an_end_of_a_job_that_the_server_lost_is_reported_again(shared_url: str, run: str) -> None:
    """The server dies while the engine says that a job is done; the node goes on without a break."""
    with session(shared_url) as connection:
        for number in range(2):
            defer(connection, work(run, number, EVALUATE), "measure:a:b", alone=True)
        connection.execute(DIES_AT_FIRST_END)
    try:
        asked = served(shared_url, 2, Service("measure:a:b", 1))
    finally:
        with session(shared_url) as connection:
            connection.execute("DROP FUNCTION die_once CASCADE; DROP SEQUENCE ends")
    assert [each.number for each in asked] == [0, 1]
    with session(shared_url) as connection:
        assert under_way(connection, run) == set()


def test_a_server_that_is_away_is_an_os_error() -> None:
    with pytest.raises(OSError, match=r"No such file or directory"):
        served("postgresql://tuner@/absent?host=/nowhere", 1, Service("a", 1))


def test_jobs_of_another_version_are_left_to_its_own_drivers(connection: Connection, run: str) -> None:
    for number in range(2):
        defer(connection, work(run, number), f"compile:{number}")
    connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    later = "UPDATE procrastinate_jobs SET args = args || '{\"later\": 1}' WHERE queue_name = 'compile:0'"
    connection.execute(later)
    assert [job.work.number for job in queues.lost_jobs(connection, lease_s=0.0)] == [1]
    assert [each.queue for each in queues.waiting(connection)] == ["compile:1"]


def test_the_first_outcome_stays_and_wakes_its_driver_alone(connection: Connection, run: str) -> None:
    key = work(run, 4).key
    assert not tables.has_outcome(connection, key)
    tables.store_outcome(connection, key, FAILED, "first")
    tables.store_outcome(connection, key, LATE, "late")
    assert tables.has_outcome(connection, key)
    assert outcomes(connection, run) == {(4, "compile"): FAILED}
    connection.execute(f'LISTEN "{tables.channel_of(run)}"'.encode())
    tables.store_outcome(connection, work("another").key, FAILED, "n")
    tables.store_outcome(connection, work(run).key, FAILED, "n")
    (notice,) = connection.notifies(timeout=120, stop_after=1)
    assert notice.channel == tables.channel_of(run)


def test_questions_are_forgotten_and_outcomes_read_by_number(connection: Connection, run: str) -> None:
    for number in (-7, 0, 1):
        tables.store_outcome(connection, work(run, number).key, FAILED, "n")
    tables.delete_outcomes_outside_of_trials(connection, run)
    tables.delete_outcome(connection, work(run, 1).key)
    assert set(outcomes(connection, run)) == {(0, "compile")}
    for number in range(1, 4):
        tables.store_outcome(connection, work(run, number).key, FAILED, "n")
    assert set(outcomes(connection, run, [3, 1, 9])) == {(1, "compile"), (3, "compile")}
    assert outcomes(connection, run, []) == {}


def test_work_whose_answer_was_lost_is_noted_once(connection: Connection, run: str) -> None:
    began, other = now(), now()
    for moment in (began, began, other):
        done = tables.Execution("n", "d", tables.Interval(moment, moment))
        tables.store_execution(connection, work(run), done)
    assert repeated(connection, run) == 1
    found = connection.execute("SELECT began FROM fleet_work WHERE run = %s ORDER BY began", (run,))
    assert [moment for (moment,) in found] == [began, other]


def test_a_blob_is_stored_once_checked_and_takes_the_place_of_a_false_one(connection: Connection) -> None:
    sha256 = hash_of(b"script")
    assert tables.blob_of(connection, sha256) is None
    tables.store_blob(connection, sha256, b"script")
    tables.store_blob(connection, sha256, b"script")
    assert tables.blob_of(connection, sha256) == b"script"
    wrong = hash_of(b"other")
    tables.store_blob(connection, wrong, b"script")
    with pytest.raises(UsageError, match="its content does not match its hash"):
        tables.blob_of(connection, wrong)
    sha256 = hash_of(b"a script")
    tables.store_blob(connection, sha256, b"what a node put there first")
    tables.replace_blob(connection, sha256, b"a script")
    tables.store_blob(connection, sha256, b"what a node puts there later")
    assert tables.blob_of(connection, sha256) == b"a script"
    tables.delete_blob(connection, sha256)
    assert tables.blob_of(connection, sha256) is None


def test_a_report_or_a_blob_above_the_limit_is_refused(
    connection: Connection, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.store_outcome(connection, work(run).key, FAILED, "n")
    monkeypatch.setattr(tables, "REPORT_LIMIT_BYTES", 10)
    assert tables.reports_of(connection, run) == {(0, "compile"): tables.NodeReport(None, "n")}
    monkeypatch.setattr(tables, "BLOB_LIMIT_BYTES", 1000)
    tables.store_blob(connection, "many", bytes(1001))
    with pytest.raises(UsageError, match="found more than 1000 bytes once unpacked, allowed 1000"):
        tables.blob_of(connection, "many")
    connection.execute("UPDATE fleet_blob SET body = %s WHERE sha256 = 'many'", (bytes(1001),))
    with pytest.raises(UsageError, match=r"fleet: blob many: .* not zlib's format"):  # not even sent
        tables.blob_of(connection, "many")


def test_a_node_joins_beats_drains_and_leaves(connection: Connection) -> None:
    tables.store_node(connection, node("a"))
    tables.store_node(connection, node("a", process=2, slots=0))
    (seen,) = tables.stored_nodes(connection)
    assert (seen.node, seen.drains, seen.load) == (node("a", process=2, slots=0), False, None)
    assert seen.silent_s < 60
    assert not tables.store_heartbeat(connection, "a", LOAD)
    assert tables.stored_nodes(connection)[0].load == LOAD
    assert tables.drain(connection, "a")
    assert not tables.drain(connection, "b")
    assert tables.store_heartbeat(connection, "a", LOAD)
    tables.delete_node(connection, "a", process=1)  # of a process that lost its name
    assert len(tables.stored_nodes(connection)) == 1
    tables.delete_node(connection, "a", process=2)
    assert tables.stored_nodes(connection) == ()


psycopg = pytest.importorskip("psycopg")


def test_a_fleet_is_set_up_and_changed_by_the_same_words(empty_url: str) -> None:
    no_fleet = pytest.raises(UsageError, match=r"this database has no fleet; tuner fleet up$")
    with connected(empty_url) as connection, no_fleet:
        read_settings(connection)
    for lease_s in (30.0, 12.0):
        install(empty_url, FleetSettings(lease_s))
        with connected(empty_url) as connection:
            assert read_settings(connection) == FleetSettings(lease_s)
            assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)


def test_a_node_s_role_works_for_runs_and_reads_no_history(empty_url: str) -> None:
    install(empty_url, FleetSettings(), "fleet_test")
    with psycopg.connect(empty_url.replace("tuner@", "fleet_test@"), autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM fleet_outcome").fetchone() == (0,)
        assert connection.execute("SELECT procrastinate_fetch_job_v2(NULL, NULL)").fetchone() is not None
        for table in ("run", "trial", "measurement", "artifact"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
                connection.execute(f"SELECT * FROM {table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            connection.execute("UPDATE fleet_outcome SET node = 'me'")


def test_a_node_s_role_ends_jobs(empty_url: str, run: str) -> None:
    install(empty_url, FleetSettings(), "fleet_test")
    with connected(empty_url) as connection:
        for number in range(2):
            defer(connection, work(run, number), "of a test")
    with connected(empty_url.replace("tuner@", "fleet_test@")) as connection:
        first = "SELECT procrastinate_finish_job_v1(min(id), 'succeeded', true) FROM procrastinate_jobs"
        connection.execute(first)
        assert under_way(connection, run) == {(1, COMPILE)}
        take_job(connection)
        (job,) = queues.lost_jobs(connection, lease_s=0.0)
        queues.delete(connection, job)
        assert under_way(connection, run) == set()


def test_a_role_is_a_plain_name_that_only_the_administrator_may_make(empty_url: str) -> None:
    with pytest.raises(UsageError, match=r"role: found 'a b', allowed letters, digits and _"):
        install(empty_url, FleetSettings(), "a b")
    install(empty_url, FleetSettings(), "fleet_test")
    refused = pytest.raises(UsageError, match=r"found no other on .* administrator types: createuser other$")
    with connected(empty_url.replace("tuner@", "fleet_test@")) as connection, refused:
        _grant(connection, "other")
