"""A node with the worker's role that lies: what cannot be is refused, and the run's other trials stay."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fleet.conftest import LEASE_S
from tests.fleet.lying_node import LIES
from tests.fleet.recorded_runs import TARGET, calm_trials, replayed, trials_of, tuned_on_fleet
from tuner.core.errors import Failure, Stage
from tuner.core.remote_results import most_flop_per_s
from tuner.fleet.install import install
from tuner.fleet.local_fleet import LocalNodes
from tuner.fleet.server import session
from tuner.fleet.tables import FleetSettings
from tuner.results.differences import differences
from tuner.tuning.tuned_run import TunedRun

pytestmark = pytest.mark.postgres
ROLE = "fleet_test"


@contextmanager
def liar(url: str, folder: Path, *only: str) -> Iterator[LocalNodes]:
    """Gives a fleet whose one node lies, with no more than the worker's role."""
    install(url, FleetSettings(LEASE_S), ROLE)
    as_worker = url.replace("tuner@", f"{ROLE}@")
    with LocalNodes(url, TARGET, folder) as nodes:
        options = (sys.executable, "-m", "tests.fleet.lying_node", as_worker, TARGET, *only)
        nodes.start_command("liar", (), before=(*options, "--"))
        nodes.wait_until_ready("liar")
        yield nodes


def refused(tuned: TunedRun, url: str) -> dict[int, str]:
    """Returns the trials that failed because nodes lied, and why."""
    trials = trials_of(url, tuned.run.id)
    found = {trial.number: trial.record.outcome for trial in trials}
    return {
        number: outcome.reason
        for number, outcome in found.items()
        if isinstance(outcome, Failure) and outcome.stage is Stage.RUN
    }


@pytest.mark.slow
def test_trials_of_a_node_that_lies_once_about_each_are_those_of_an_undisturbed_run(
    empty_url: str, tmp_path: Path
) -> None:
    settings = replayed(trials=len(LIES))
    with liar(empty_url, tmp_path):
        tuned = tuned_on_fleet(empty_url, settings)
    assert differences(calm_trials(settings, tmp_path), trials_of(empty_url, tuned.run.id)) == ()
    assert tuned.run.baseline is not None
    with session(empty_url) as connection:
        done = connection.execute(
            "SELECT stage, count(*) FROM fleet_work WHERE number >= 0 GROUP BY stage ORDER BY stage"
        )
        assert dict(done.fetchall()) == {"compile": 2 * len(LIES), "evaluate": 2 * len(LIES)}


@pytest.mark.slow
def test_a_trial_that_every_outcome_lies_about_is_a_failure_and_the_others_stay(
    empty_url: str, tmp_path: Path
) -> None:
    settings = replayed(trials=4, sampler="random")
    with liar(empty_url, tmp_path, "2"):
        tuned = tuned_on_fleet(empty_url, settings)
    (reason,) = refused(tuned, empty_url).values()
    limit = most_flop_per_s(settings.problem, tuned.run.machine, settings.threads) / 1e9
    assert reason == (
        "evaluate: 3 outcomes were refused, the last of node liar: evaluate of trial 2: "
        f"found a time of 1e-09 s, 2.458e+05 GFLOP/s, allowed at most {limit:.4g} on such a machine"
    )
    trials = trials_of(empty_url, tuned.run.id)
    others = [trial for trial in trials if trial.number != 2]
    calm = [trial for trial in calm_trials(settings, tmp_path) if trial.number != 2]
    assert differences(tuple(calm), tuple(others)) == ()
