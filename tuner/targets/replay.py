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


# ------------------------------------------------------------------------------
# Replays the outcomes of a recorded search space: nothing is compiled, run or timed.


ROW = "// row "  # begins the script of a configuration, followed by its number in the recording
MARK = "replay of "  # begins the name of a machine whose times are recorded
BEFORE_LOADING = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES)
UNVERIFIED = Verdict(0.0, 0, ("the recording does not say how right the result was",))


def recorded_machine(space: RecordedSpace) -> Machine:
    """Returns the machine that a recording was made on, renamed "replay of ...".

    So it equals no real machine, and recorded times are not taken for times of this machine.
    """
    return replace(space.machine, name=f"{MARK}{space.machine.name}")


def recorded_compiler(space: RecordedSpace) -> Compiler:
    """Returns the compiler build that a recording was made with, plus the recording's hash.

    The hash is added to the packages: recordings share no stored results.
    """
    recording = (("recording", space.sha256[:12]),)
    return replace(space.compiler, packages=(*space.compiler.packages, *recording))


def bind_recorded(space: RecordedSpace, candidate: Candidate) -> Script:
    """Returns a script that names the number of a candidate in a recording, instead of a transform script.

    Raises CandidateError(BIND) for a candidate that is not in the recording or failed to bind when recorded.
    """
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
        """Returns an artifact with the number of the script's candidate in the recording.

        ``script`` is one of ``bind_recorded``. Artifacts have equal hashes where the recorded code was equal.
        Raises a CandidateError that was recorded at stage BIND, COMPILE or RESOURCES.
        """
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
        """Returns the number of the artifact's candidate in the recording, an int.

        Raises a CandidateError that was recorded at stage LOAD.
        """
        row = int(artifact.host_code)
        _raise_recorded(self._space, (Stage.LOAD,), row)
        return row

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Returns the recorded verdict of a candidate; without one, a verdict of 0 elements with a note.

        ``loaded`` is a result of ``load``. Raises a CandidateError that was recorded at stage RUN or VERIFY.
        """
        row = _row(loaded)
        _raise_recorded(self._space, (Stage.RUN, Stage.VERIFY), row)
        outcome = self._space.outcomes[row]
        return (isinstance(outcome, RecordedTime) and outcome.verdict) or UNVERIFIED

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Returns the recorded measurement of a candidate; ``effort`` and ``rng`` have no influence.

        ``loaded`` is a result of ``load``. Where only a time or samples were recorded, makes a measurement of
        them. Raises a CandidateError that was recorded at stage MEASURE.
        """
        row = _row(loaded)
        _raise_recorded(self._space, (Stage.MEASURE,), row)
        outcome = self._space.outcomes[row]
        assert isinstance(outcome, RecordedTime)  # every failure has been raised before
        return _measurement(outcome, row)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Returns the recorded measurement of each candidate in ``loaded``, in the same order.

        Raises a CandidateError that was recorded at stage MEASURE.
        """
        return tuple(self.measure(problem, row, effort, rng) for row in loaded)


def _raise_recorded(space: RecordedSpace, stages: tuple[Stage, ...], row: int) -> None:
    outcome = space.outcomes[row]
    if isinstance(outcome, Failure) and outcome.stage in stages:
        raise CandidateError(outcome.stage, outcome.reason)


def _row(loaded: object) -> int:
    assert isinstance(loaded, int)
    return loaded


def _measurement(recorded: RecordedTime, row: int) -> Measurement:
    """Returns a recorded measurement; a missing interval is bootstrapped, with ``row`` as random seed."""
    if recorded.measurement is not None:
        return recorded.measurement
    samples = list(recorded.samples_s or (recorded.time_s,))
    return summarize(samples, 1, np.random.default_rng(row))


# ------------------------------------------------------------------------------
# Recorded search spaces as sources of outcomes: same search loop and database as on a machine.


def replay_settings(request: RunRequest, workers: int) -> RunSettings:
    """Returns the settings of a run that replays the recording of the request's target, ``replay:FILE``.

    ``workers`` + 1 candidates are in flight. Replays evaluate search methods, so a replay must not know what
    an earlier replay found: the run is fresh, and uses other recordings for its warm start only if these are
    named. Raises UsageError for a file that is no recording, and for a request with another problem, another
    number of threads than 1 or the recorded one, or a strategy, space, chip or baseline, which the recording
    decides. A
    recording of another tuner may name no problem: any is allowed.
    """
    file = _asked_file(request)
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


def _asked_file(request: RunRequest) -> Path:
    """Returns the recording's file.

    Raises UsageError for a missing file name, and for options that the recording decides.
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
    return Path(recording)


def replaying_source(space: "RecordedSpace") -> MeasurementBackend:
    """Returns the functions that look up candidates' outcomes in a recording instead of running them."""
    return MeasurementBackend(
        machine=lambda _target: recorded_machine(space),
        compiler=lambda _target: recorded_compiler(space),
        plan=lambda _settings, _machine: Plan(space.feasible),
        bind=lambda *_: partial(bind_recorded, space),
        runner=lambda order, how: _runner(space, order, how),
        baseline=lambda _problem, _threads, _seed: _baseline(space),
        roofline=_no_roofline,
        children=lambda _target, _problem, _threads: _children(space),
        needs_local_resources=False,
    )


def _runner(space: "RecordedSpace", order: "RunnerOrder", how: "RunnerSettings") -> "AbstractRunner":
    """Returns a runner without child processes: a lookup neither crashes nor hangs."""
    return LocalRunner(order, ReplayCompiler(space), ReplayEvaluator(space), how.seed)


def _children(space: "RecordedSpace") -> RunnerChildren:
    """Returns the child processes with which a node of a fleet replays a recording."""
    return RunnerChildren(
        compiler=Factory("tuner.targets.replay:ReplayCompiler", (space,)),
        evaluator=Factory("tuner.targets.replay:ReplayEvaluator", (space,)),
        limits=Limits(),
        device=REPLAY,
    )


def _baseline(space: "RecordedSpace") -> Baseline:
    if space.baseline is None:
        raise TunerError(f"recording {space.name} has no time of a baseline")
    return replace(space.baseline, is_interleaved=False)  # nothing runs here: no ratio to it is printed


def _no_roofline(_problem: Problem, _threads: int) -> Roofline:
    raise TunerError("a replay has no machine to measure")


def outcomes_of_file(file: Path) -> tuple[MeasurementBackend, TargetName]:
    """Returns the functions that look up outcomes in a recorded file, and the target ``replay:NAME`` of it.

    Raises UsageError for a file that is no recording.
    """
    space = _recorded(file.absolute())
    return replaying_source(space), TargetName(REPLAY, space.name)


def _of_run(settings: RunSettings) -> MeasurementBackend:
    outcomes, _ = outcomes_of_file(Path(settings.recording))
    return outcomes


def _recorded(file: Path) -> "RecordedSpace":
    """Returns a recording; the file is read once until it changes."""
    found = file.stat() if file.exists() else None
    stamp = () if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    return _read(file, stamp)


@lru_cache(maxsize=4)
def _read(file: Path, _stamp: tuple[int, ...]) -> "RecordedSpace":
    return read_recorded(file)


RECORDINGS = Recordings(
    status=TargetStatus(REPLAY, False, f"with a file only, a recorded space: --target {REPLAY}:FILE"),
    settings=replay_settings,
    of_file=outcomes_of_file,
    of_run=_of_run,
)
