import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.fleet.values import take_job, under_way, work
from tuner.core.candidate import TargetName
from tuner.fleet import queues
from tuner.fleet.server import session
from tuner.fleet.work import EVALUATE, FleetWork, Service

if TYPE_CHECKING:
    from tuner.fleet.server import Connection

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


def served(url: str, count: int, *services: Service, fails: int = 0) -> list[FleetWork]:
    """Serves queues until so many jobs were begun, of which the first ones fail."""
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


def test_jobs_are_done_by_priority_and_then_in_order(
    connection: "Connection", shared_url: str, run: str
) -> None:
    asked = [work(run, number) for number in range(4)]
    for each, priority in zip(asked, (0, 0, 5, 0), strict=True):
        queues.defer(connection, "compile:a", each, priority, alone=False)
    assert under_way(connection, run) == {(number, "compile") for number in range(4)}
    done = served(shared_url, 4, Service("compile:a", 1))
    assert done == [asked[2], asked[0], asked[1], asked[3]]
    assert under_way(connection, run) == set()


def test_what_a_node_cannot_do_is_given_back_with_one_attempt_less(
    connection: "Connection", shared_url: str, run: str
) -> None:
    queues.defer(connection, "compile:a", work(run), 0, alone=False)
    served(shared_url, 1, Service("compile:a", 1), fails=1)
    assert under_way(connection, run) == {(0, "compile")}
    assert connection.execute("SELECT attempts FROM procrastinate_jobs").fetchone() == (1,)


def test_jobs_are_taken_back(connection: "Connection", run: str) -> None:
    _, second, _ = (
        queues.defer(connection, "compile:a", work(run, number), 0, alone=False) for number in range(3)
    )
    queues.defer(connection, "compile:a", work("another"), 0, alone=False)
    queues.drop_waiting(connection, second)
    assert under_way(connection, run) == {(0, "compile"), (2, "compile")}
    assert queues.cancel_run(connection, run) == 2
    assert under_way(connection, run) == set()
    assert under_way(connection, "another") == {(0, "compile")}


def test_what_waits_is_reported_by_queue(connection: "Connection", run: str) -> None:
    for number in range(2):
        queues.defer(connection, "measure:a:b", work(run, number, EVALUATE), 0, alone=True)
    take_job(connection)
    for _ in range(2):
        (found,) = queues.waiting(connection)
        assert (found.queue, found.todo, found.doing_count) == ("measure:a:b", 1, 1)
        assert (found.doing, found.runs) == (work(run, 0, EVALUATE), (run,))
        assert 0.0 <= found.doing_s < 60.0
        take_job(connection)  # another node asks: it gets none


def test_compilers_are_reported_by_target(connection: "Connection", run: str) -> None:
    for number, compiler_build in enumerate(("new", "old", "old")):
        queues.defer(
            connection, "compile:a", work(run, number, compiler_build=compiler_build), 0, alone=False
        )
    queues.defer(connection, "compile:b", work(run, 3, target=TargetName("cpu")), 0, alone=False)
    assert queues.compiler_builds(connection, TargetName("fake")) == (("new", 1), ("old", 2))
    assert queues.compiler_builds(connection, TargetName("cuda", "sm_90")) == ()


def test_the_run_whose_turn_it_is_is_reported_first(connection: "Connection", run: str) -> None:
    for who, priority in (("patient", 0), (run, 5), ("patient", 0)):
        queues.defer(connection, "compile:a", work(who), priority, alone=False)
    (found,) = queues.waiting(connection)
    assert found.runs == (run, "patient")
    assert found.example == work(run)
    assert (found.doing, found.doing_s) == (None, 0.0)


def test_an_end_of_a_job_that_the_server_lost_is_reported_again(shared_url: str, run: str) -> None:
    """The server dies while the engine says that a job is done; the node goes on without a break."""
    with session(shared_url) as connection:
        for number in range(2):
            queues.defer(connection, "measure:a:b", work(run, number, EVALUATE), 0, alone=True)
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


def test_jobs_of_another_version_are_left_to_its_own_drivers(connection: "Connection", run: str) -> None:
    for number in range(2):
        queues.defer(connection, f"compile:{number}", work(run, number), 0, alone=False)
    connection.execute(
        "UPDATE procrastinate_jobs SET status = 'doing', args = args || '{\"later\": 1}' "
        "WHERE queue_name = 'compile:0'"
    )
    connection.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE queue_name = 'compile:1'")
    assert [job.work.number for job in queues.lost_jobs(connection, lease_s=0.0)] == [1]
    assert [each.queue for each in queues.waiting(connection)] == ["compile:1"]
