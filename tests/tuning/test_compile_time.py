"""A real trial of the CPU is compiled again; others are refused."""

from dataclasses import replace
from pathlib import Path

import pytest

import tuner
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.db.store import Store
from tuner.tuning.compile_time import pass_seconds
from tuner.tuning.parts.real import real_composition

pytestmark = pytest.mark.mlir


def test_the_passes_of_a_verified_trial_are_timed(tmp_path: Path) -> None:
    database = tmp_path / "results.db"
    run = tuner.tune(tuner.Matmul(32, 32, 32), "simulator", trials=1, workers=1, db=database)
    assert run.counts.verified == 1
    with Store.open(f"sqlite:///{database}") as store:
        (trial,) = tuner.history(database)
        found = pass_seconds(real_composition(), store.trial(trial.id))
    names = {each.name for each in found}
    assert any("Canonicalizer" in name for name in names)
    assert any("NVVM" in name or "Nvvm" in name for name in names)
    assert found == tuple(sorted(found, key=lambda each: (-each.seconds, each.name)))


def test_a_replay_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.tuning.parts.real.real_composition", fakes.composition)
    run = tuner.tune(tuner.Matmul(8, 8, 8), trials=5, db=tmp_path / "results.db")
    assert run.best is not None
    with pytest.raises(UsageError, match="found none that compiles, allowed a measured or verified one"):
        pass_seconds(fakes.composition(), replace(run.best, script_text=""))
    with pytest.raises(UsageError, match="does not compile any more: target fake: compiles nothing"):
        pass_seconds(fakes.composition(), run.best)
