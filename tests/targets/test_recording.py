"""Runs on a recorded space: the real loop and store, nothing run on this machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.space.recorded import values
from tests.tuning import fakes
from tests.tuning.test_run import trials_of
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.records import Measurement
from tuner.core.requests import RunRequest
from tuner.core.runs import ReuseKey, TrialQuery
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.space.recorded.t4 import Recording, t4_bytes
from tuner.targets.replay import RECORDINGS
from tuner.tuning.events import Interruption
from tuner.tuning.request import run_settings
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun

PROBLEM = values.RUN.settings.problem


def replay(store: Store, file: Path, **options: object) -> TunedRun:
    given = {"target": f"replay:{file}", "sampler": "exhaustive", "trials": 15, **options}
    settings = run_settings(RunRequest(PROBLEM, **given), fakes.backends())  # type: ignore[arg-type]
    return begin(settings, fakes.backends(), store, Interruption())


@pytest.mark.slow
def test_a_replay_of_everything_gives_every_recorded_outcome(store: Store, tmp_path: Path) -> None:
    tuned = replay(store, values.write_recording(tmp_path), trials=120)
    for trial in trials_of(store, tuned.run.id):
        recorded = values.trial(trial.number).record
        assert recorded is not None
        assert (trial.record.candidate, trial.record.outcome) == (recorded.candidate, recorded.outcome)
        assert trial.record.verdict == recorded.verdict
    assert values.RUN.baseline is not None
    assert tuned.run.baseline == replace(values.RUN.baseline, is_interleaved=False)  # nothing ran here
    assert (tuned.run.status, tuned.run.settings.target) == ("done", TargetName.parse("replay:fabricated"))


@pytest.mark.slow
def test_a_replay_reuses_nothing_of_earlier_ones(store: Store, tmp_path: Path) -> None:
    file = values.write_recording(tmp_path)
    first, second = replay(store, file), replay(store, file)
    assert first.counts == second.counts
    origins = {trial.record.reused_from for trial in trials_of(store, second.run.id) if trial.record}
    ours = {trial.id for trial in trials_of(store, second.run.id)}
    assert origins - {None} <= ours


def test_a_replay_is_never_the_best_of_a_machine_nor_known_to_it(store: Store, tmp_path: Path) -> None:
    tuned = replay(store, values.write_recording(tmp_path))
    name = tuned.run.machine.name
    assert name == "replay of fake"
    for machine in ("fake", name):
        with pytest.raises(UsageError, match=r"nothing measured yet"):
            best_result(store, PROBLEM, machine)
    (trial, *_) = store.trials(TrialQuery(run=tuned.run.id, status="measured"))
    key = ReuseKey(PROBLEM, TargetName("cpu"), 1, "fake", values.RUN.compiler.fingerprint)
    assert store.recall(key, trial.record.script_sha256) is None
    assert store.recall(key, artifact_sha256=trial.record.artifact_sha256) is None


@pytest.mark.slow
def test_a_stored_replay_resumes_from_its_file(store: Store, tmp_path: Path) -> None:
    tuned = replay(store, values.write_recording(tmp_path), trials=5)
    again = resume(tuned.run.id, fakes.backends(), store, Interruption())
    assert again.counts == tuned.counts


@pytest.mark.slow
def test_a_file_that_changed_or_went_cannot_be_resumed(store: Store, tmp_path: Path) -> None:
    file = values.write_recording(tmp_path)
    run = replay(store, file, trials=5).run.id
    shorter = Recording((values.RUN,), values.recording().trials[:60], (values.SPACE,))
    file.write_bytes(t4_bytes(shorter))
    with pytest.raises(
        UsageError,
        match=r"run 1: was made by another version of the compiler; changed: .*recording .*start a new run",
    ):
        resume(run, fakes.backends(), store, Interruption(), retime=True)
    file.unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        resume(run, fakes.backends(), store, Interruption(), retime=True)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategies": ("fabricated",)}, "strategy 'fabricated' cannot be combined with replay:FILE"),
        ({"space": Path("s.yaml")}, r"space 's\.yaml' cannot be combined with replay:FILE"),
        ({"chip": "sm_90"}, "chip 'sm_90' cannot be combined with replay:FILE"),
        ({"threads": 2}, "threads: found 2, recorded 1"),
        ({"sampler": "guess"}, "sampler: found 'guess', allowed"),
        ({"target": "replay:"}, "target replay: the recording is missing; --target replay:FILE"),
        ({"target": "replay"}, "target replay: the recording is missing; --target replay:FILE"),
        ({"target": "replay:none.json"}, r"none\.json: cannot be read"),
    ],
)
def test_what_a_recording_decides_cannot_be_asked_for(
    store: Store, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        replay(store, values.write_recording(tmp_path), **options)
    assert store.runs() == ()


def test_a_recording_of_another_problem_is_refused(tmp_path: Path) -> None:
    file = values.write_recording(tmp_path)
    with pytest.raises(UsageError, match=r"found problem matmul 8x8x16 .*, recorded matmul 8x8x8 "):
        run_settings(RunRequest(Matmul(8, 8, 16), f"replay:{file}"), fakes.backends())


def test_other_targets_keep_their_parts() -> None:
    backends = fakes.backends()
    settings = fakes.settings()
    assert backends.outcomes_of_run(settings) is backends.kind(settings.target).outcomes


def test_a_replay_is_no_target_that_auto_chooses() -> None:
    assert not RECORDINGS.status.is_available
    assert "replay:FILE" in RECORDINGS.status.reason


def test_a_recording_is_no_kind_of_target(store: Store, tmp_path: Path) -> None:
    run = replay(store, values.write_recording(tmp_path), trials=1).run
    with pytest.raises(UsageError, match=r"^target 'replay:fabricated': not known here$"):
        fakes.backends().outcomes(run.settings.target)


def test_a_replay_has_no_script_to_export(store: Store, tmp_path: Path) -> None:
    (trial, *_) = trials_of(store, replay(store, values.write_recording(tmp_path), trials=5).run.id)
    assert (trial.script, trial.script_text[:7]) == ("", "// row ")


def test_a_time_is_the_recorded_one_bit_by_bit(store: Store, tmp_path: Path) -> None:
    tuned = replay(store, values.write_recording(tmp_path), sampler="tpe", trials=14)
    assert tuned.best is not None
    assert isinstance(tuned.best.final, Measurement)
    assert tuned.best.final == tuned.best.record.outcome
