"""One short run on real nodes: what it tries and finds is what one machine tries and finds."""

from pathlib import Path

import pytest

from benchmarks.fleet.overlaps import overlaps, repeated
from tests.fleet.recorded_runs import TARGET, calm_trials, replayed, trials_of, tuned_on_fleet
from tuner.fleet.local_fleet import LocalNodes
from tuner.fleet.server import session
from tuner.results.differences import differences

pytestmark = pytest.mark.postgres


def test_a_fleet_finds_what_one_machine_finds(fleet_url: str, tmp_path: Path) -> None:
    settings = replayed(trials=12)
    with LocalNodes(fleet_url, TARGET, tmp_path) as nodes:
        nodes.start("both", "--compile", "1", "--measure")
        nodes.wait_until_ready("both")
        tuned = tuned_on_fleet(fleet_url, settings)
    assert tuned.run.status == "done"
    assert tuned.run.baseline is not None
    assert len(tuned.rounds) == 1
    assert differences(calm_trials(settings, tmp_path), trials_of(fleet_url, tuned.run.id)) == ()
    with session(fleet_url) as connection:
        assert overlaps(connection, tuned.run.uuid) == ()
        assert repeated(connection, tuned.run.uuid) == 0
        assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)
        timed = connection.execute("SELECT count(*) FROM fleet_work WHERE timed_from IS NOT NULL")
        assert timed.fetchone() == (12 + 2 + 1 + 1,)  # trials, the baseline twice, roofline, finals
