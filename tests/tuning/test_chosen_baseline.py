"""A run is compared with the baseline that its user chose, and so is what continues it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.space.recorded.values import write_recording
from tests.tuning import fakes
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul, Problem
from tuner.core.requests import FleetRequest, RunRequest
from tuner.core.runs import Baseline, LibraryTime
from tuner.db.store import Store
from tuner.fleet.runner import fleet_kind
from tuner.targets.backends import Backends
from tuner.targets.interface import BaselineChoice, MeasurementBackend, TargetStatus
from tuner.targets.registry import KINDS
from tuner.tuning.events import Interruption
from tuner.tuning.request import run_settings
from tuner.tuning.run import begin, resume

PROBLEM = Matmul(8, 8, 8)
LIBRARIES = (
    LibraryTime("fast", "FastBLAS 2.0", 1.0, (1.0, 1.0)),
    LibraryTime("broken", "", failure="crashed"),
)


def chosen(choice: str) -> Callable[[Problem, int, int], Baseline]:
    def baseline(problem: Problem, threads: int, seed: int) -> Baseline:
        found = fakes.baseline(problem, threads, seed)
        return dataclasses.replace(found, name=f"{choice} of the user", libraries=LIBRARIES)

    return baseline


def parts_with_a_choice(*installed: str) -> Backends:
    """Returns backends of one target, whose baseline may be one of ``installed``."""

    def require(choice: str, _problem: Problem) -> None:
        if choice not in installed:
            raise UsageError(f"baseline {choice}: not installed", f"pip install {choice}")

    def outcomes(choice: str) -> MeasurementBackend:
        alone = fakes.changed_kind(fakes.FAKE, baseline=chosen(choice), runner=fakes.runner_without_baseline)
        return alone.outcomes

    backends = fakes.backends()
    kind = dataclasses.replace(
        backends.kinds["fake"], baselines=BaselineChoice(require, outcomes, lambda _name, _problem: "")
    )
    return dataclasses.replace(backends, kinds={"fake": kind})


def test_the_chosen_baseline_is_measured_and_kept_when_the_run_is_resumed(store: Store) -> None:
    parts = parts_with_a_choice("mkl")
    settings = run_settings(RunRequest(PROBLEM, trials=3, baseline="mkl"), parts)
    run = begin(settings, parts, store, Interruption()).run
    assert store.run(run.id).settings.baseline_library == "mkl"
    found = store.run(run.id).baseline
    assert found is not None
    assert (found.name, found.libraries) == ("mkl of the user", LIBRARIES)
    again = resume(run.id, parts, store, Interruption(), retime=True).run.baseline
    assert again is not None
    assert (again.name, again.libraries) == ("mkl of the user", LIBRARIES)


def test_without_a_choice_a_run_has_the_default(store: Store) -> None:
    parts = parts_with_a_choice("mkl")
    run = begin(run_settings(RunRequest(PROBLEM, trials=3), parts), parts, store, Interruption()).run
    assert store.run(run.id).settings.baseline_library == ""
    assert run.baseline is not None
    assert (run.baseline.name, run.baseline.libraries) == ("FakeBLAS 1.0", ())


def test_a_missing_library_is_refused_before_anything_is_stored_and_before_a_run_is_resumed(
    store: Store,
) -> None:
    request = RunRequest(PROBLEM, trials=3, baseline="mkl")
    with pytest.raises(UsageError, match=r"^baseline mkl: not installed; pip install mkl$"):
        run_settings(request, parts_with_a_choice())
    parts = parts_with_a_choice("mkl")
    run = begin(run_settings(request, parts), parts, store, Interruption()).run
    with pytest.raises(UsageError, match=r"^baseline mkl: not installed; pip install mkl$"):
        resume(run.id, parts_with_a_choice(), store, Interruption(), retime=True)


def test_targets_with_one_baseline_refuse_a_choice() -> None:
    backends = fakes.backends()
    kind = dataclasses.replace(backends.kinds["fake"], baselines=KINDS["cuda"].baselines)
    with pytest.raises(UsageError, match=r"^--baseline best cannot be combined with this target: the base"):
        run_settings(
            RunRequest(PROBLEM, baseline="best"), dataclasses.replace(backends, kinds={"fake": kind})
        )
    with pytest.raises(UsageError, match=r"^--baseline best cannot be combined with this target"):
        KINDS["simulator"].outcomes_with("best")


def test_a_fleet_refuses_a_choice() -> None:
    kind = fleet_kind(parts_with_a_choice("mkl").kinds["fake"], FleetRequest("postgresql://nowhere"))
    with pytest.raises(UsageError, match=r"^--baseline mkl cannot be combined with --fleet: nodes compare"):
        kind.require_baseline("mkl", PROBLEM)
    kind.require_baseline("", PROBLEM)


def test_a_recording_decides_its_baseline(tmp_path: Path) -> None:
    request = RunRequest(PROBLEM, f"replay:{write_recording(tmp_path)}", baseline="mkl")
    with pytest.raises(UsageError, match=r"^baseline 'mkl' cannot be combined with replay:FILE"):
        run_settings(request, fakes.backends())


def test_the_cpu_says_what_is_unknown_before_anything_is_tuned() -> None:
    parts = fakes.backends((TargetStatus("cpu", True, "here"),))
    cpu = dataclasses.replace(parts.kinds["cpu"], baselines=KINDS["cpu"].baselines)
    parts = dataclasses.replace(parts, kinds={"cpu": cpu})
    with pytest.raises(
        UsageError, match=r"^baseline: found 'mlk', allowed best, openblas, mkl.*did you mean mkl"
    ):
        run_settings(RunRequest(PROBLEM, baseline="mlk"), parts)
    assert run_settings(RunRequest(PROBLEM, baseline="openblas"), parts).baseline_library == "openblas"
