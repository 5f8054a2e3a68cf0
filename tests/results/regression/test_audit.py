"""An audit of fake results, whose times follow from the knob x: 1 ms for 7, 2 ms for 6 and 8."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.results.regression.test_gate import changed
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Script
from tuner.core.runs import TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.results.past_runs import past_trials
from tuner.results.regression.audit import Audited, AuditStatus, audit
from tuner.targets.backends import Backends
from tuner.targets.interface import TargetStatus
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

PROBLEM = fakes.settings().problem


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "results.db"
    with Store.open(str(path)) as opened:
        begin(fakes.settings(trials=20, sampler="exhaustive"), fakes.backends(), opened, Interruption())
    return path


@pytest.fixture
def store(whole_run: Path, tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(shutil.copy(whole_run, tmp_path))) as opened:
        yield opened


def upgraded(backends: Backends) -> Backends:
    """Returns the backends with another compiler."""
    kind = fakes.changed_kind(backends.kinds["fake"], compiler=lambda _target: fakes.OTHER_COMPILER)
    return replace(backends, kinds={**backends.kinds, "fake": kind})


def audited(backends: Backends, store: Store) -> list[Audited]:
    return list(audit(backends, store, TrialQuery(), 0.05))


def test_with_nothing_upgraded_nothing_is_compiled(store: Store) -> None:
    (found,) = audited(fakes.backends(runner=None), store)
    assert found.status is AuditStatus.UNCHANGED
    assert found.status.holds


def test_the_same_code_by_another_compiler_holds_for_free(store: Store) -> None:
    (found,) = audited(upgraded(fakes.backends()), store)
    assert (found.status, found.now_s, found.run) == (AuditStatus.SAME_CODE, None, None)
    assert found.reason == "although changed: fake 1.0 -> fake 2.0, tuner's passes"
    assert len(store.runs()) == 1


def test_a_changed_script_of_the_same_code_holds_for_free(store: Store) -> None:
    (found,) = audited(changed(comment="other"), store)
    assert found.status is AuditStatus.SAME_CODE
    assert found.reason == "although changed: the script"


def test_other_code_is_timed_and_takes_the_place_of_the_old_time(store: Store) -> None:
    found = audited(upgraded(changed(another=1)), store)
    assert {each.status for each in found} == {AuditStatus.TIMED_AGAIN}
    assert found[0].now_s == fakes.BEST_S
    best = best_result(store, PROBLEM, "fake").best
    assert best.run in {each.run for each in found}
    assert store.run(best.run).compiler == fakes.OTHER_COMPILER
    assert store.run(best.run).status == "done"
    assert "timed again in an audit" in store.trial(found[0].trial.id).stale
    assert {each.status for each in audited(upgraded(changed(another=1)), store)} == {AuditStatus.UNCHANGED}


def test_slower_code_is_flagged(store: Store) -> None:
    found = audited(changed(x=9), store)
    first = found[0]
    assert (first.status, first.now_s) == (AuditStatus.SLOWER, 5 * fakes.BEST_S)
    assert first.reason == "other code, recorded 1 ms in another session"
    assert not first.status.holds
    assert best_result(store, PROBLEM, "fake").measurement.median_s > fakes.BEST_S
    (best,) = past_trials(store, TrialQuery(best=True))
    assert best.best_s is not None
    assert best.best_s > fakes.BEST_S


def test_wrong_code_is_flagged_and_its_time_forgotten(store: Store) -> None:
    found = audited(changed(deed="wrong", at="verify"), store)
    assert {each.status for each in found} == {AuditStatus.FAILED}
    assert found[0].reason == "fails at stage verify: element (0, 1): found 2, expected 1"
    assert found[0].run is not None
    (stored,) = store.trials(TrialQuery(run=found[0].run))
    assert isinstance(stored.record.outcome, Failure)
    assert found[0].trial.id not in {each.id for each in past_trials(store, TrialQuery(best=True))}


def test_a_strategy_that_no_longer_binds_is_flagged(store: Store) -> None:
    def bind(_candidate: Candidate) -> Script:
        raise CandidateError(Stage.BIND, "no strategy 'fake' in this run")

    found = audited(fakes.backends(bind=lambda *_: bind), store)
    assert found[0].status is AuditStatus.FAILED
    assert found[0].reason == "at stage bind: no strategy 'fake' in this run"


def test_other_code_that_cannot_run_here_is_not_judged(store: Store) -> None:
    gone = TargetStatus("fake", False, "no GPU", is_timed=False, can_compile=True)
    backends = changed(another=1)
    kind = replace(backends.kinds["fake"], status=lambda: gone)
    (found,) = audited(replace(backends, kinds={"fake": kind}), store)
    assert (found.status, found.reason) == (AuditStatus.NOT_EVALUATED, "other code; no GPU")
    assert len(store.runs()) == 1
    assert not store.trial(found.trial.id).stale


def test_results_of_another_machine_are_left_alone(store: Store) -> None:
    backends = fakes.backends()
    kind = fakes.changed_kind(backends.kinds["fake"], machine=lambda _target: fakes.OTHER_MACHINE)
    assert audited(replace(backends, kinds={"fake": kind}), store) == []


def test_the_audit_has_an_end(store: Store) -> None:
    assert len(audited(changed(x=1), store)) <= 8
