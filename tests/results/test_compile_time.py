"""A real trial is compiled again once, what its passes took is stored; others are refused."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tuner
from tests.db.values import add, outcome, timed
from tests.fakes import FakeTarget
from tests.tuning import fakes
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.records import CompileSeconds, PassSeconds
from tuner.core.runs import StoredTrial
from tuner.db.store import Store
from tuner.results.explanations import pass_seconds
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir


@pytest.mark.slow
def test_the_passes_of_a_verified_trial_are_timed(tmp_path: Path) -> None:
    database = tmp_path / "results.db"
    run = tuner.tune(tuner.Matmul(32, 32, 32), "simulator", trials=1, workers=1, db=database)
    assert run.counts.verified == 1
    with Store.open(f"sqlite:///{database}") as store:
        (trial,) = tuner.history(database)
        found = pass_seconds(real_backends(), store, trial)
        stored = store.trial(trial.id).compile_seconds
    assert stored is not None
    assert stored.passes == found
    names = {each.name for each in found}
    assert any("Canonicalizer" in name for name in names)
    assert any("NVVM" in name or "Nvvm" in name for name in names)
    assert found == tuple(sorted(found, key=lambda each: (-each.seconds, each.name)))


@pytest.fixture
def tried(tmp_path: Path) -> Iterator[tuple[Store, StoredTrial]]:
    with Store.open(str(tmp_path / "results.db")) as store:
        run = store.begin_run(fakes.settings(), fakes.MACHINE, FakeTarget().compiler(), "0.1.0", None)
        yield store, store.trial(add(store, run, 0, replace(outcome(timed(0.5)), target=TargetName("fake"))))


def test_a_replay_is_refused(tried: tuple[Store, StoredTrial]) -> None:
    store, trial = tried
    with pytest.raises(UsageError, match="does not compile"):
        pass_seconds(fakes.backends(), store, replace(trial, script_text=""))
    with pytest.raises(UsageError, match="does not compile any more: target fake: compiles nothing"):
        pass_seconds(fakes.backends(), store, trial)


def test_what_is_stored_is_reported_until_the_compiler_or_the_machine_is_another(
    tried: tuple[Store, StoredTrial],
) -> None:
    store, trial = tried
    machine = fakes.backends().machine().name
    seconds = CompileSeconds(FakeTarget().compiler().fingerprint, machine, (PassSeconds("CSE", 0.001, 2),))
    store.set_compile_seconds(trial.id, seconds)
    assert pass_seconds(fakes.backends(), store, store.trial(trial.id)) == seconds.passes
    for older in (replace(seconds, compiler="older"), replace(seconds, machine="another")):
        store.set_compile_seconds(trial.id, older)
        with pytest.raises(UsageError, match="does not compile any more"):  # it was compiled again
            pass_seconds(fakes.backends(), store, store.trial(trial.id))


def test_what_cannot_be_stored_is_reported_as_well(tried: tuple[Store, StoredTrial]) -> None:
    store, trial = tried
    compiling = replace(fakes.FAKE, code=lambda _target, _problem, _script: "")
    backends = replace(fakes.backends(), kinds={"fake": compiling})
    assert pass_seconds(backends, store, replace(trial, id=99)) == ()  # stored nowhere: no such trial
    assert store.trial(trial.id).compile_seconds is None
    assert pass_seconds(backends, store, trial) == ()
    assert store.trial(trial.id).compile_seconds is not None
