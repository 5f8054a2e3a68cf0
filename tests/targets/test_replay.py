"""A recorded space answers as the machine did that it was recorded on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.t4_writer import Recording, t4_bytes
from tests.default_suite import ALL
from tests.space.recorded import values
from tests.tuning import fakes
from tests.tuning.fakes import trials_of
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, Failure, Stage, UsageError
from tuner.core.interfaces import Artifact, Effort
from tuner.core.matmul import Matmul
from tuner.core.queries import ReuseKey, TrialQuery
from tuner.core.records import Measurement, Verdict
from tuner.core.requests import RunRequest
from tuner.core.runs import Compiler
from tuner.db.store import Store
from tuner.results.best_trials import best_result
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace, RecordedTime
from tuner.targets import replay as target
from tuner.targets.backends import REPLAY_STATUS
from tuner.targets.replay import ReplayCompiler, ReplayEvaluator, bind_recorded, recorded_compiler
from tuner.tuning.events import Interruption
from tuner.tuning.request import run_settings
from tuner.tuning.run import begin, resume
from tuner.tuning.tuned_run import TunedRun

PROBLEM = values.RUN.settings.problem
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> RecordedSpace:
    return read_recorded(values.write_recording(tmp_path_factory.mktemp("replay")))


def compiled(space: RecordedSpace, candidate: Candidate) -> Artifact:
    return ReplayCompiler(space).compile(PROBLEM, bind_recorded(space, candidate))


def selected(space: RecordedSpace, candidate: Candidate) -> tuple[Verdict, Measurement]:
    evaluator = ReplayEvaluator(space)
    loaded = evaluator.load(PROBLEM, compiled(space, candidate))
    return evaluator.verify(PROBLEM, loaded, RNG), evaluator.measure(PROBLEM, loaded, Effort(), RNG)


def test_every_point_answers_as_recorded(space: RecordedSpace) -> None:
    for number, candidate in enumerate(values.candidates()):
        record = values.trial(number).record
        if isinstance(record.outcome, Failure):
            with pytest.raises(CandidateError) as error:
                selected(space, candidate)
            assert error.value.failure == record.outcome
        else:
            assert selected(space, candidate) == (record.verdict, record.outcome)


PASSED = {Stage.BIND: 0, Stage.COMPILE: 1, Stage.RESOURCES: 1, Stage.LOAD: 2, Stage.RUN: 3, Stage.VERIFY: 3}


@pytest.mark.parametrize(("stage", "stages"), (PASSED | {Stage.MEASURE: 4}).items())
def test_a_failure_comes_at_its_own_stage(space: RecordedSpace, stage: Stage, stages: int) -> None:
    failing = replace(space, outcomes=(Failure(stage, "no way"),) * space.rows)
    evaluator, passed = ReplayEvaluator(failing), list[object]()

    def pass_every_stage() -> None:
        passed.append(script := bind_recorded(failing, values.candidates()[0]))
        passed.append(artifact := ReplayCompiler(failing).compile(PROBLEM, script))
        passed.append(loaded := evaluator.load(PROBLEM, artifact))
        passed.append(evaluator.verify(PROBLEM, loaded, RNG))
        evaluator.measure(PROBLEM, loaded, Effort(), RNG)

    with pytest.raises(CandidateError, match="no way"):
        pass_every_stage()
    assert len(passed) == stages


def test_code_that_was_the_same_is_the_same_again(space: RecordedSpace) -> None:
    timed = [row for row in range(space.rows) if isinstance(space.outcomes[row], RecordedTime)]
    hashes = {row: compiled(space, space.feasible.candidate(row)).sha256 for row in timed}
    for row in timed[1:]:
        for other in timed[:5]:
            assert (hashes[row] == hashes[other]) == (space.codes[row] == space.codes[other])


def test_a_point_that_was_not_tried_cannot_be_bound(space: RecordedSpace) -> None:
    unknown = Candidate.of("fabricated", {"tile": 3, "unroll": 0, "order": "mn"})
    with pytest.raises(CandidateError, match=r"tile=3.* is not in recording fabricated"):
        bind_recorded(space, unknown)


def test_no_real_machine_has_its_name_and_another_recording_is_another_compiler(space: RecordedSpace) -> None:
    assert target.recorded_machine(space) == replace(space.machine, name=f"replay of {space.machine.name}")
    assert recorded_compiler(space) != recorded_compiler(replace(space, sha256="f" * 64))
    assert isinstance(recorded_compiler(space), Compiler)


def test_an_interval_that_is_not_recorded_comes_from_its_samples_each_time(space: RecordedSpace) -> None:
    of_another = replace(space, outcomes=(RecordedTime(2.0, (1.0, 2.0, 6.0)),) * space.rows)
    verdict, first = selected(of_another, values.candidates()[0])
    _, again = selected(of_another, values.candidates()[0])
    assert first == again
    assert (first.median_s, first.samples_s) == (2.0, (1.0, 2.0, 6.0))
    assert first.interval_s[0] <= 2.0 <= first.interval_s[1]
    assert verdict.elements == 0
    assert "does not say" in verdict.notes[0]


def test_remeasurement_report_the_first_times_again(space: RecordedSpace) -> None:
    evaluator = ReplayEvaluator(space)
    artifacts = (compiled(space, values.candidates()[number]) for number in (0, 2, 0))
    loaded = tuple(evaluator.load(PROBLEM, artifact) for artifact in artifacts)
    times = evaluator.measure_together(PROBLEM, loaded, Effort(), RNG)
    assert times == (values.outcome_of(0), values.outcome_of(2), values.outcome_of(0))


# Runs on a recorded space: the real loop and store, nothing run on this machine.


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
    assert origins - {None} <= {trial.id for trial in trials_of(store, second.run.id)}


def test_a_replay_is_never_the_best_of_a_machine_nor_known_to_it(store: Store, tmp_path: Path) -> None:
    tuned = replay(store, values.write_recording(tmp_path))
    name = tuned.run.machine.name
    assert name == "replay of fake"
    for machine in ("fake", name):
        with pytest.raises(UsageError, match=r"nothing measured yet"):
            best_result(store, PROBLEM, machine)
    (trial, *_) = store.trials(TrialQuery(run=tuned.run.id, status="measured"))
    key = ReuseKey(PROBLEM, TargetName("cpu"), 1, "fake", values.RUN.compiler)
    assert store.recall(key, trial.record.script_sha256) is None
    assert store.recall(key, artifact_sha256=trial.record.artifact_sha256) is None


@pytest.mark.slow
def test_a_stored_replay_resumes_from_its_file_unless_it_changed(store: Store, tmp_path: Path) -> None:
    file = values.write_recording(tmp_path)
    tuned = replay(store, file, trials=5)
    assert resume(tuned.run.id, fakes.backends(), store, Interruption()).counts == tuned.counts
    file.write_bytes(t4_bytes(Recording((values.RUN,), values.recording().trials[:60], (values.SPACE,))))
    changed = r"run 1: was made by another version of the compiler; changed: .*recording .*start a new run"
    with pytest.raises(UsageError, match=changed):
        resume(tuned.run.id, fakes.backends(), store, Interruption(), retime=True)
    file.unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        resume(tuned.run.id, fakes.backends(), store, Interruption(), retime=True)


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategies": ("fabricated",)}, "strategy 'fabricated' cannot be combined with replay:FILE"),
        ({"space": Path("s.yaml")}, r"space 's\.yaml' cannot be combined with replay:FILE"),
        ({"chip": "sm_90"}, "chip 'sm_90' cannot be combined with replay:FILE"),
        ({"threads": 2}, "threads: found 2, recorded 1"),
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


def test_a_recording_is_no_kind_of_target_and_has_no_script_to_export(store: Store, tmp_path: Path) -> None:
    backends, settings = fakes.backends(), fakes.settings()
    assert backends.target_of_run(settings) is backends.target(settings.target)
    run = replay(store, values.write_recording(tmp_path), trials=5).run
    with pytest.raises(UsageError, match=r"^target 'replay:fabricated': not known here$"):
        fakes.backends().target(run.settings.target)
    (trial, *_) = trials_of(store, run.id)
    assert (trial.script, trial.script_text[:7]) == ("", "// row ")
    assert not REPLAY_STATUS.is_available  # to auto
    assert "replay:FILE" in REPLAY_STATUS.reason
