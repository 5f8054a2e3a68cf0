import datetime

import pytest

from benchmarks.fleet.device_idle import device_of_last_run
from tests.fleet.values import work
from tuner.fleet import tables
from tuner.fleet.server import session
from tuner.fleet.work import COMPILE, EVALUATE

pytestmark = pytest.mark.postgres
BEGAN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def interval(began_s: float, ended_s: float) -> tables.Interval:
    return tables.Interval(*(BEGAN + datetime.timedelta(seconds=each) for each in (began_s, ended_s)))


@pytest.mark.slow
def test_a_device_is_idle_between_its_measurements(url: str) -> None:
    done = [
        ("earlier", 0, EVALUATE, interval(0, 1), None),
        ("asked", 0, COMPILE, interval(5, 9), None),
        ("asked", 0, EVALUATE, interval(10, 14), interval(12, 14)),
        ("asked", 1, EVALUATE, interval(15, 18), interval(16, 17)),
        ("asked", 2, EVALUATE, interval(18, 20), None),  # it was wrong
    ]
    with session(url) as connection:
        for run, number, stage, whole, timed in done:
            tables.note_work(
                connection, work(run, number, stage), tables.Execution("n", "device", whole, timed)
            )
        found = device_of_last_run(connection)
    assert found == {
        "evaluated": 3,
        "idle_share": 0.1,
        "timed_share": 0.3,
        "median_gap_ms": 500.0,
        "longest_gap_ms": 1000.0,
        "trials_per_s": 0.3,
    }
