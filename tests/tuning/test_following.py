"""A run that follows: the same candidates in the same order, in a history of its own."""

import dataclasses
from pathlib import Path

import pytest

from tests.tuning import fakes
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.runs import Run, RunSettings, TrialQuery
from tuner.db.store import Store
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets.backends import Backends
from tuner.targets.interface import Plan
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin, transfer_settings

FAKE = TargetName("fake")
OTHER = dataclasses.replace(fakes.MACHINE, name="other")


def elsewhere(*xs: int) -> Backends:
    """Returns the parts of a run on another machine, where only some values of x are feasible."""
    knobs = (Knob("x", xs or tuple(range(10))), Knob("comment", ("a", "b")))

    def plan(_settings: RunSettings, _machine: Machine) -> Plan:
        return Plan(FeasibleSet.of((SearchSpace("fake", knobs),)))

    return fakes.backends(machine=lambda _target: OTHER, plan=plan)


def candidates(store: Store, run: int) -> list[Candidate]:
    trials = store.trials(TrialQuery(run=run, sort="number"))
    return [trial.record.candidate for trial in trials]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "results.db"))


@pytest.fixture
def source_run(store: Store) -> Run:
    return begin(fakes.settings(8), fakes.backends(), store, Interruption()).run


@pytest.mark.slow
def test_it_proposes_what_the_source_run_has_proposed(store: Store, source_run: Run) -> None:
    settings, begun = transfer_settings(source_run, FAKE, elsewhere(), store)
    assert settings is not None
    assert begun is None
    tuned = begin(settings, elsewhere(), store, Interruption())
    assert tuned.run.machine.name == "other"
    assert tuned.run.status == "done"
    assert candidates(store, tuned.run.id) == candidates(store, source_run.id)
    assert len(candidates(store, source_run.id)) == 8


@pytest.mark.slow
def test_one_that_has_begun_is_gone_on_with(store: Store, source_run: Run) -> None:
    settings, _ = transfer_settings(source_run, FAKE, elsewhere(), store)
    assert settings is not None
    run = begin(settings, elsewhere(), store, Interruption()).run
    assert transfer_settings(source_run, FAKE, elsewhere(), store) == (None, run.id)
    again = begin(fakes.settings(3, seed=1), fakes.backends(), store, Interruption()).run
    assert transfer_settings(again, FAKE, elsewhere(), store)[1] is None


def test_candidates_that_are_not_feasible_there_are_left_out(store: Store, source_run: Run) -> None:
    known = [dict(candidate.choices)["x"] for candidate in candidates(store, source_run.id)]
    kept = tuple(sorted({int(x) for x in known[:2]}))
    settings, _ = transfer_settings(source_run, FAKE, elsewhere(*kept), store)
    assert settings is not None
    tuned = begin(settings, elsewhere(*kept), store, Interruption())
    expected = [each for each in candidates(store, source_run.id) if dict(each.choices)["x"] in kept]
    assert candidates(store, tuned.run.id) == expected


def test_a_machine_for_which_no_candidate_is_feasible_is_refused(store: Store, source_run: Run) -> None:
    with pytest.raises(UsageError, match="found no candidate that is feasible on 'other', allowed 1 or more"):
        transfer_settings(source_run, FAKE, elsewhere(77), store)
