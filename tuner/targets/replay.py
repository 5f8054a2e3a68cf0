"""Replays the outcomes of a recorded search space, as compiler, evaluator and source of outcomes."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from tuner.core.candidate import REPLAY, Candidate, ChosenStrategy, TargetName
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError
from tuner.core.interfaces import AbstractCompiler, AbstractEvaluator, Artifact, Effort, Script
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.requests import TIMED_SAMPLER, RunRequest
from tuner.core.runs import Baseline, RunSettings
from tuner.runtime.timing import summarize
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.runtime.workers.runner import LocalRunner
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace, RecordedTime
from tuner.targets.backends import Recordings
from tuner.targets.interface import MeasurementBackend, Plan, RunnerChildren, TargetStatus

if TYPE_CHECKING:
    from tuner.core.interfaces import AbstractRunner
    from tuner.runtime.workers.runner import RunnerOrder
    from tuner.targets.interface import RunnerSettings


ROW = "// row "  # begins the script of a configuration, followed by its number in the recording
MARK = "replay of "  # begins the name of the machine in a replay
BEFORE_LOADING = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES)
UNVERIFIED = Verdict(0.0, 0, ("the recording does not say how right the result was",))


def recorded_machine(space: RecordedSpace) -> Machine:
    """Returns a recording's machine, renamed "replay of ...", so that its times are not a real machine's."""
    return replace(space.machine, name=f"{MARK}{space.machine.name}")


def recorded_compiler(space: RecordedSpace) -> Compiler:
    """Returns a recording's compiler build plus the recording's hash: recordings share no stored results."""
    recording = (("recording", space.sha256[:12]),)
    return replace(space.compiler, packages=(*space.compiler.packages, *recording))


def bind_recorded(space: RecordedSpace, candidate: Candidate) -> Script:
    """Returns a script with a candidate's number in the recording; CandidateError(BIND): none was bound."""
    row = space.feasible.row_of(candidate)
    if row is None:
        raise CandidateError(Stage.BIND, f"{candidate.text} is not in recording {space.name}")
    _raise_recorded(space, (Stage.BIND,), row)
    return Script.of(f"{ROW}{row} of recording {space.name}: {candidate.text}\n")


@final
class ReplayCompiler(AbstractCompiler):
    """A compiler for a recorded search space: compiles nothing, raises the failures that were recorded."""

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact that holds the script's row of the recording; raises the recorded failure."""
        row = int(script.text.removeprefix(ROW).split()[0])
        _raise_recorded(self._space, BEFORE_LOADING, row)
        code = f"{self._space.sha256} {self._space.codes[row]}"  # equal where the recorded code was equal
        return Artifact(str(row), Script.of(code).sha256)


@final
class ReplayEvaluator(AbstractEvaluator):
    """An evaluator for a recorded search space: runs nothing, returns or raises what was recorded."""

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def load(self, problem: Problem, artifact: Artifact) -> object:
        row = int(artifact.host_code)
        _raise_recorded(self._space, (Stage.LOAD,), row)
        return row

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        row = _row(loaded)
        _raise_recorded(self._space, (Stage.RUN, Stage.VERIFY), row)
        outcome = self._space.outcomes[row]
        return (isinstance(outcome, RecordedTime) and outcome.verdict) or UNVERIFIED

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Returns the recorded time for any ``effort`` and ``rng``; a missing interval is bootstrapped."""
        row = _row(loaded)
        _raise_recorded(self._space, (Stage.MEASURE,), row)
        outcome = self._space.outcomes[row]
        assert isinstance(outcome, RecordedTime)  # every failure has been raised before
        samples = list(outcome.samples_s or (outcome.time_s,))
        return outcome.measurement or summarize(samples, 1, np.random.default_rng(row))

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        return tuple(self.measure(problem, row, effort, rng) for row in loaded)


def _raise_recorded(space: RecordedSpace, stages: tuple[Stage, ...], row: int) -> None:
    outcome = space.outcomes[row]
    if isinstance(outcome, Failure) and outcome.stage in stages:
        raise CandidateError(outcome.stage, outcome.reason)


def _row(loaded: object) -> int:
    assert isinstance(loaded, int)
    return loaded


def replay_settings(request: RunRequest, workers: int) -> RunSettings:
    """Returns the settings of a run that replays the recording of the request's target, ``replay:FILE``.

    The run is fresh: a replay evaluates the search, so it must not know what an earlier one found. Raises
    UsageError for a file that is not a recording, and for options that the recording decides.
    """
    decided = {
        "strategy": " ".join(request.strategy_text),
        "space": request.space,
        "chip": request.chip,
        "baseline": request.baseline,
    }
    for name, text in decided.items():
        if text:
            raise UsageError(f"{name} {str(text)!r} cannot be combined with {REPLAY}:FILE, which decides it")
    recording = TargetName.parse(request.target).detail
    if not recording:
        raise UsageError(f"target {REPLAY}: the recording is missing", f"--target {REPLAY}:FILE")
    file = Path(recording)
    space = _recorded(file.absolute())
    if space.problem not in (None, request.problem):
        raise UsageError(f"{file}: found problem {request.problem.key}, recorded {space.problem.key}")
    if request.threads not in (1, space.threads):
        raise UsageError(f"{file}: threads: found {request.threads}, recorded {space.threads}")
    return RunSettings(
        problem=request.problem,
        target=TargetName(REPLAY, space.name),
        threads=space.threads,
        strategies=tuple(ChosenStrategy(each.strategy) for each in space.feasible.spaces),
        space_yaml="",
        sampler=request.sampler or TIMED_SAMPLER,
        seed=request.seed,
        trials=request.trials_limit,
        budget_s=request.budget_s,
        workers=workers,
        fresh=True,
        warm_files=request.warm_paths,
        recording=str(file.absolute()),
    )


def replaying_source(space: RecordedSpace) -> MeasurementBackend:
    """Returns the functions that look up candidates' outcomes in a recording instead of running them."""

    def runner(order: "RunnerOrder", how: "RunnerSettings") -> "AbstractRunner":
        # without child processes: a lookup neither crashes nor hangs
        return LocalRunner(order, ReplayCompiler(space), ReplayEvaluator(space), how.seed)

    def baseline(_problem: Problem, _threads: int, _seed: int, _wait: LockWait) -> Baseline:
        if space.baseline is None:
            raise TunerError(f"recording {space.name} has no time of a baseline")
        return replace(space.baseline, is_interleaved=False)  # nothing runs here: no ratio to it is printed

    children = RunnerChildren(  # of a node of a fleet
        compiler=Factory("tuner.targets.replay:ReplayCompiler", (space,)),
        evaluator=Factory("tuner.targets.replay:ReplayEvaluator", (space,)),
        limits=Limits(),
        device=REPLAY,
    )
    return MeasurementBackend(
        machine=lambda _target: recorded_machine(space),
        compiler=lambda _target: recorded_compiler(space),
        plan=lambda _settings, _machine: Plan(space.feasible),
        bind=lambda *_: partial(bind_recorded, space),
        runner=runner,
        baseline=baseline,
        roofline=_no_roofline,
        children=lambda _target, _problem, _threads: children,
        needs_local_resources=False,
    )


def _no_roofline(_problem: Problem, _threads: int, _wait: LockWait) -> Roofline:
    raise TunerError("a replay has no machine to measure")


def measurement_of_file(file: Path) -> tuple[MeasurementBackend, TargetName]:
    """Returns the outcomes recorded in a file, and its target ``replay:NAME``; raises UsageError."""
    space = _recorded(file.absolute())
    return replaying_source(space), TargetName(REPLAY, space.name)


def _recorded(file: Path) -> RecordedSpace:
    status = file.stat() if file.exists() else None
    stamp = () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return _read(file, stamp)


@lru_cache(maxsize=4)  # the file is read once until it changes
def _read(file: Path, _stamp: tuple[int, ...]) -> RecordedSpace:
    return read_recorded(file)


RECORDINGS = Recordings(
    status=TargetStatus(REPLAY, False, f"with a file only, a recorded space: --target {REPLAY}:FILE"),
    settings=replay_settings,
    of_file=measurement_of_file,
    of_run=lambda settings: measurement_of_file(Path(settings.recording))[0],
)
