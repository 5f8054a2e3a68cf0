"""The gate on a fake target, whose times follow from the knob x: 1 ms for 7, 2 ms for 6 and 8."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import bind as bind_fake
from tests.tuning import fakes
from tuner.analysis.slowdown import LEAST_SESSIONS, SlowdownLimits
from tuner.core.candidate import Candidate, ChosenStrategy, TargetName, Value
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.runs import StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.results.regression.gate import GateEntry, GateStatus, check_entry, recorded_entry
from tuner.targets.backends import Backends
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin

LIMITS = SlowdownLimits()


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, StoredTrial]:
    database = str(tmp_path_factory.mktemp("gate") / "results.db")
    with Store.open(database) as store:
        settings = fakes.settings(trials=20, sampler="exhaustive")
        tuned = begin(settings, fakes.backends(), store, Interruption())
        assert tuned.best is not None
        return database, tuned.best


@pytest.fixture(scope="module")
def entry(best: tuple[str, StoredTrial]) -> GateEntry:
    with Store.open(best[0]) as store:
        return recorded_entry(fakes.backends(), store, best[1])


def changed(**knobs: Value) -> Backends:
    """Returns backends whose strategy binds other knobs than it did."""

    def bind(candidate: Candidate) -> Script:
        return bind_fake(Candidate.of(candidate.strategy, dict(candidate.choices) | knobs))

    return fakes.backends(bind=lambda *_: bind)


def test_an_entry_has_the_code_and_its_time(entry: GateEntry) -> None:
    assert entry.measurement.median_s == fakes.BEST_S
    assert '"x": 7' in entry.artifact.code
    assert (entry.strategy, entry.machine, entry.mlir) == (ChosenStrategy("fake"), "fake", "fake 1.0")


def test_equal_code_is_not_timed(entry: GateEntry) -> None:
    found = check_entry(changed(comment="other"), entry, LIMITS)
    assert (found.status, found.slowdown, found.sessions) == (GateStatus.SAME_CODE, None, 0)
    assert found.reason == "it compiles to the recorded code"


def test_equal_code_that_another_llvm_makes_machine_code_of_is_reported(entry: GateEntry) -> None:
    found = check_entry(fakes.backends(), replace(entry, mlir="fake 0.9"), LIMITS)
    assert found.status is GateStatus.SAME_CODE
    assert found.reason == "the same LLVM dialect; its machine code is made by fake 1.0, then by fake 0.9"


def test_slower_code_stops_the_gate(entry: GateEntry) -> None:
    found = check_entry(changed(x=8), entry, LIMITS)
    assert (found.status, found.sessions) == (GateStatus.SLOWER, LEAST_SESSIONS)
    assert found.slowdown is not None
    assert found.slowdown.median == pytest.approx(1.0)
    assert (found.then_s, found.now_s) == (fakes.BEST_S, 2 * fakes.BEST_S)
    assert not found.status.passes


def test_other_code_that_is_as_fast_passes(entry: GateEntry) -> None:
    found = check_entry(changed(another=1), entry, LIMITS)
    assert found.status is GateStatus.NOT_SLOWER
    assert found.status.passes


@pytest.mark.slow
def test_a_slowdown_that_is_neither_shown_nor_ruled_out_passes_as_unclear(entry: GateEntry) -> None:
    found = check_entry(changed(x=8), entry, SlowdownLimits(tolerated=2.0, excluded=0.5))
    assert found.status is GateStatus.UNCLEAR
    assert found.sessions == 30
    assert found.status.passes


@pytest.mark.parametrize(
    ("backends", "reason"),
    [
        (lambda: changed(deed="wrong", at="verify"), "fails at stage verify: element (0, 1)"),
        (lambda: changed(deed="fail", at="compile"), "fails at stage compile: fails at compile"),
        (lambda: changed(deed="fail", at="together"), "the current code ran alone, and fails interleaved"),
        (fakes.untimed_backends, "not known here"),
    ],
)
def test_code_that_cannot_be_compared_stops_the_gate(
    entry: GateEntry, backends: Callable[[], Backends], reason: str
) -> None:
    found = check_entry(backends(), entry, LIMITS)
    assert found.status is GateStatus.FAILED
    assert reason in found.reason


def test_code_of_then_that_does_not_run_is_to_be_recorded_anew(entry: GateEntry) -> None:
    broken = replace(entry, artifact=replace(entry.artifact, host_code="{", sha256="other"))
    found = check_entry(fakes.backends(), broken, LIMITS)
    assert found.status is GateStatus.FAILED
    assert found.reason == "the code of then does not run here: record it anew"


def test_what_fails_today_is_not_recorded(best: tuple[str, StoredTrial]) -> None:
    with Store.open(best[0]) as store, pytest.raises(UsageError, match="fails at stage verify"):
        recorded_entry(changed(deed="wrong", at="verify"), store, best[1])


def test_what_is_only_verified_is_not_recorded(tmp_path: Path) -> None:
    backends = fakes.untimed_backends()
    with Store.open(str(tmp_path / "untimed.db")) as store:
        begin(
            fakes.settings(trials=1, target=TargetName("simulator", "sm_90")),
            backends,
            store,
            Interruption(),
        )
        (trial,) = store.trials(TrialQuery())
        with pytest.raises(UsageError, match="is verified, and nothing is timed here"):
            recorded_entry(backends, store, trial)
