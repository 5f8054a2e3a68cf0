"""Other machines: a run that follows one's candidates; results of a processor that lacks an extension."""

import dataclasses

import pytest

from tests.results.regression.test_gate import audited
from tests.tuning import fakes
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import UsageError
from tuner.core.machine import Machine, processor_class
from tuner.core.runs import Run, RunSettings, TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_here, best_known
from tuner.results.regression.gate import recorded_entry
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets.backends import Backends
from tuner.targets.interface import Plan
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin, resume, transfer_settings

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
def source_run(store: Store) -> Run:
    return begin(fakes.settings(8), fakes.backends(), store, Interruption()).run


@pytest.mark.slow
def test_it_proposes_what_the_source_run_has_and_is_resumed_if_begun(store: Store, source_run: Run) -> None:
    settings, begun = transfer_settings(source_run, FAKE, elsewhere(), store)
    assert settings is not None
    assert begun is None
    run = begin(settings, elsewhere(), store, Interruption()).run
    assert (run.machine.name, run.status) == ("other", "done")
    assert candidates(store, run.id) == candidates(store, source_run.id)
    assert len(candidates(store, source_run.id)) == 8
    assert transfer_settings(source_run, FAKE, elsewhere(), store) == (None, run.id)
    again = begin(fakes.settings(3, seed=1), fakes.backends(), store, Interruption()).run
    assert transfer_settings(again, FAKE, elsewhere(), store)[1] is None


def test_candidates_not_feasible_there_are_left_out_unless_all_are(store: Store, source_run: Run) -> None:
    with pytest.raises(UsageError, match="found no candidate that is feasible on 'other', allowed 1 or more"):
        transfer_settings(source_run, FAKE, elsewhere(77), store)
    known = [dict(candidate.choices)["x"] for candidate in candidates(store, source_run.id)]
    kept = tuple(sorted({int(x) for x in known[:2]}))
    settings, _ = transfer_settings(source_run, FAKE, elsewhere(*kept), store)
    assert settings is not None
    tuned = begin(settings, elsewhere(*kept), store, Interruption())
    expected = [each for each in candidates(store, source_run.id) if dict(each.choices)["x"] in kept]
    assert candidates(store, tuned.run.id) == expected


def machine(*extensions: str) -> Machine:
    name = processor_class("Xeon", "family 6 model 143", ("avx512", *extensions), (48 << 10, 2 << 20, 0))
    return dataclasses.replace(fakes.MACHINE, name=name, has_bf16="bf16" in extensions)


WITH_BF16, WITHOUT = machine("bf16", "vnni"), machine("vnni")


def on(host: Machine) -> Backends:
    """Returns the parts of a run on a machine."""
    backends = fakes.backends()
    kind = fakes.changed_kind(backends.kinds["fake"], machine=lambda _target: host)
    return dataclasses.replace(backends, kinds={"fake": kind}, machine=lambda: host)


@pytest.mark.slow
def test_nothing_of_a_processor_with_bf16_is_used_on_one_without(store: Store) -> None:
    tuned = begin(fakes.settings(trials=4), on(WITH_BF16), store, Interruption())
    trial = tuned.best
    assert trial is not None
    other = on(WITHOUT)
    assert audited(other, store) == []
    with pytest.raises(
        UsageError, match=r"nothing measured on .*, avx512 vnni, .* only on .*, avx512 bf16 vnni"
    ):
        best_known(store, other, fakes.settings().problem, "fake")
    with pytest.raises(UsageError, match="nothing measured on"):
        best_here(store, other, fakes.settings().problem, "fake")  # as load_best asks
    with pytest.raises(UsageError, match=r"was timed on 'Xeon .* bf16 vnni, .*, this machine is 'Xeon"):
        recorded_entry(other, store, trial)
    again = begin(fakes.settings(trials=4), other, store, Interruption())
    trials = store.trials(TrialQuery(run=again.run.id))
    assert {each.record.reused_from for each in trials} <= {None, *(each.id for each in trials)}
    with pytest.raises(UsageError, match=r"run 1: was made on 'Xeon .* bf16"):
        resume(tuned.run.id, other, store, Interruption(), retime=True)
