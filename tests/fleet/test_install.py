import pytest

from tests.fleet.values import take_job, under_way, work
from tuner.core.errors import UsageError
from tuner.fleet import queues
from tuner.fleet.install import _grant, install
from tuner.fleet.server import connected
from tuner.fleet.tables import FleetSettings, read_settings
from tuner.fleet.work import COMPILE

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.postgres


def test_a_fleet_is_set_up_and_changed_by_the_same_words(empty_url: str) -> None:
    for lease_s in (30.0, 12.0):
        install(empty_url, FleetSettings(lease_s))
        with connected(empty_url) as connection:
            assert read_settings(connection) == FleetSettings(lease_s)
            assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)


def test_a_database_without_a_fleet_says_how_to_set_one_up(empty_url: str) -> None:
    with (
        connected(empty_url) as connection,
        pytest.raises(UsageError, match=r"this database has no fleet; tuner fleet up$"),
    ):
        read_settings(connection)


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
            queues.defer(connection, "of a test", work(run, number), 0, alone=False)
    with connected(empty_url.replace("tuner@", "fleet_test@")) as connection:
        connection.execute(
            "SELECT procrastinate_finish_job_v1(min(id), 'succeeded', true) FROM procrastinate_jobs"
        )
        assert under_way(connection, run) == {(1, COMPILE)}
        take_job(connection)
        (job,) = queues.lost_jobs(connection, lease_s=0.0)
        queues.delete(connection, job)
        assert under_way(connection, run) == set()


def test_a_role_that_only_the_administrator_may_make_is_reported(empty_url: str) -> None:
    install(empty_url, FleetSettings(), "fleet_test")
    with (
        connected(empty_url.replace("tuner@", "fleet_test@")) as connection,
        pytest.raises(
            UsageError, match=r"found no other on the server, .* administrator types: createuser other$"
        ),
    ):
        _grant(connection, "other")


def test_a_role_is_a_plain_name(empty_url: str) -> None:
    with pytest.raises(UsageError, match=r"role: found 'a b', allowed letters, digits and _"):
        install(empty_url, FleetSettings(), "a b")
