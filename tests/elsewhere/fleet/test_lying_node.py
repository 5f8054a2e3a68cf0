"""A node with the worker's role that lies: what cannot be is refused, and the run's other trials stay."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.elsewhere.fleet.conftest import LEASE_S
from tests.elsewhere.fleet.lying_node import LIES
from tests.elsewhere.fleet.recorded_runs import TARGET, calm_trials, replayed, trials_of, tuned_on_fleet
from tests.support.overlaps import overlaps, repeated
from tests.support.run_differences import differences
from tuner.core.errors import Failure, Stage
from tuner.core.plausibility import most_flop_per_s
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.local_fleet import LocalNodes
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.tables import FleetSettings
from tuner.tuning.tuned_run import TunedRun

pytestmark = pytest.mark.postgres
ROLE = "fleet_test"


@contextmanager
def liar(url: str, folder: Path, *only: str) -> Iterator[LocalNodes]:
    """Gives a fleet whose one node lies, with no more than the worker's role."""
    install(url, FleetSettings(LEASE_S), ROLE)
    as_worker = url.replace("tuner@", f"{ROLE}@")
    with LocalNodes(url, TARGET, folder) as nodes:
        options = (sys.executable, "-m", "tests.elsewhere.fleet.lying_node", as_worker, TARGET, *only)
        nodes.start_command("liar", (), before=(*options, "--"))
        nodes.wait_until_ready("liar")
        yield nodes


def refused(tuned: TunedRun, url: str) -> list[str]:
    found = (trial.record.outcome for trial in trials_of(url, tuned.run.id))
    return [each.reason for each in found if isinstance(each, Failure) and each.stage is Stage.RUN]


@pytest.mark.slow
def test_trials_of_a_node_that_lies_once_are_those_of_a_calm_run(empty_url: str, tmp_path: Path) -> None:
    settings = replayed(trials=len(LIES))
    with liar(empty_url, tmp_path):
        tuned = tuned_on_fleet(empty_url, settings)
    assert differences(calm_trials(settings, tmp_path), trials_of(empty_url, tuned.run.id)) == ()
    assert tuned.run.baseline is not None
    with session(empty_url) as connection:
        done = connection.execute("SELECT stage, count(*) FROM fleet_work WHERE number >= 0 GROUP BY stage")
        assert dict(done.fetchall()) == {"compile": 2 * len(LIES), "evaluate": 2 * len(LIES)}


@pytest.mark.slow
def test_a_trial_that_every_outcome_lies_about_is_a_failure_alone(empty_url: str, tmp_path: Path) -> None:
    settings = replayed(trials=4, sampler="random")
    with liar(empty_url, tmp_path, "2"):
        tuned = tuned_on_fleet(empty_url, settings)
    (reason,) = refused(tuned, empty_url)
    limit = most_flop_per_s(settings.problem, tuned.run.machine, settings.threads) / 1e9
    assert reason == (
        "evaluate: 3 outcomes were refused, the last of node liar: evaluate of trial 2: "
        f"found a time of 1e-09 s, 2.458e+05 GFLOP/s, allowed at most {limit:.4g} on such a machine"
    )
    pair = calm_trials(settings, tmp_path), trials_of(empty_url, tuned.run.id)
    calm, others = (tuple(trial for trial in trials if trial.number != 2) for trials in pair)
    assert differences(calm, others) == ()


# One short run on honest nodes: what it tries and finds is what one machine tries and finds.


@pytest.mark.slow
def test_a_fleet_finds_what_one_machine_finds(fleet_url: str, tmp_path: Path) -> None:
    settings = replayed(trials=12)
    with LocalNodes(fleet_url, TARGET, tmp_path) as nodes:
        nodes.start("both", "--compile", "1", "--measure")
        nodes.wait_until_ready("both")
        tuned = tuned_on_fleet(fleet_url, settings)
    assert (tuned.run.status, tuned.run.baseline is None, len(tuned.rounds)) == ("done", False, 1)
    assert differences(calm_trials(settings, tmp_path), trials_of(fleet_url, tuned.run.id)) == ()
    with session(fleet_url) as connection:
        assert (overlaps(connection, tuned.run.uuid), repeated(connection, tuned.run.uuid)) == ((), 0)
        assert connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() == (0,)
        timed = connection.execute("SELECT count(*) FROM fleet_work WHERE timed_from IS NOT NULL")
        assert timed.fetchone() == (12 + 2 + 1 + 1,)  # trials, the baseline twice, roofline, finals
