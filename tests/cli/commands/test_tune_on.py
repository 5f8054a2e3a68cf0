"""What is told of runs on several classes of machines; the runs are real ones of fakes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tuning import fakes
from tuner.cli.commands.tune import compromise_lines, fleet_of_run, several_document
from tuner.core.requests import FleetRequest
from tuner.db.store import Store
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun

FLEET = FleetRequest("postgresql://tuner@db.example.org/tuner")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "results.db"))


def tuned(store: Store, machine: str, seed: int = 0, trials: int = 6) -> TunedRun:
    described = replace(fakes.MACHINE, name=machine)
    backends = fakes.backends(machine=lambda _target: described)
    return begin(fakes.settings(trials, seed=seed), backends, store, Interruption())


def test_the_compromise_is_reported_with_its_time_on_each_machine(store: Store) -> None:
    both = (tuned(store, "big"), tuned(store, "small"))
    lines = compromise_lines(both, store)
    assert lines[0] == "compromise fake, not distinguishable from the best"
    assert lines[1].startswith("knobs     ")
    assert [line.split(" on ")[1].split(":")[0] for line in lines[2:]] == ["big", "small"]
    document = several_document(both, store)
    assert [each["run"] for each in document["runs"]] == [1, 2]
    assert document["compromise"]["slowdowns"] == [None, None]
    assert all("not distinguishable" in each for each in document["compromise"]["slowdowns_unknown"])
    best = [each.best for each in both]
    assert document["compromise"]["trials"] == [trial.id for trial in best if trial is not None]


def test_machines_that_share_no_candidate_have_no_compromise(store: Store) -> None:
    first, other = tuned(store, "big", seed=1, trials=1), tuned(store, "small", seed=2, trials=1)
    assert compromise_lines((first, other), store) == ["compromise: no candidate has a time on each machine"]
    assert several_document((first, other), store)["compromise"] is None


def test_a_run_goes_on_on_its_own_class_of_machine(store: Store, tmp_path: Path) -> None:
    run = tuned(store, "small").run.id
    database = str(tmp_path / "results.db")
    assert fleet_of_run(FLEET, run, database).machine == "small"
    named = replace(FLEET, machine="big")
    assert fleet_of_run(named, run, database) == named
    assert fleet_of_run(FLEET, None, database) == FLEET
