"""A target that replays a recorded search space: it returns recorded outcomes and runs nothing.

A script names a configuration by its index in the recording; the compiled code is that index.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from tuner.core.candidate import REPLAY, Candidate, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError
from tuner.core.interfaces import AbstractCompiler, AbstractEvaluator, Artifact, Effort, Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.requests import TIMED_SAMPLER, RunRequest
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, ChosenStrategy, Compiler, RunSettings
from tuner.core.trials import StoredTrial
from tuner.runtime.timing import summarize
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import TrialRunner
from tuner.space.file.seeds import seeds_of_files
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace, RecordedTime
from tuner.targets.backends import REPLAY_STATUS
from tuner.targets.target import Bind, Plan, RunnerChildren, Target, TargetStatus

if TYPE_CHECKING:
    from tuner.core.compiled_code import PredictedCycles
    from tuner.core.interfaces import AbstractRunner
    from tuner.runtime.workers.runner import RunnerOrder
    from tuner.targets.target import RunnerSettings


NO_CODE = "a replay has outcomes and no code"
ROW = "// row "  # begins the script of a configuration, followed by its number in the recording
MARK = "replay of "  # begins the name of the machine in a replay
BEFORE_LOADING = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES)
UNVERIFIED = Verdict(0.0, 0, ("the recording does not say how right the result was",))


def recorded_machine(space: RecordedSpace) -> Machine:
    """Returns a recording's machine, renamed "replay of ...": its times must not look measured here."""
    return replace(space.machine, name=f"{MARK}{space.machine.name}")


def recorded_compiler(space: RecordedSpace) -> Compiler:
    """Returns a recording's compiler build with the recording's hash, so that recordings share no results."""
    recording = (("recording", space.sha256[:12]),)
    return replace(space.compiler, packages=(*space.compiler.packages, *recording))


def bind_recorded(space: RecordedSpace, candidate: Candidate) -> Script:
    """Returns a script that names a candidate's index in the recording.

    Raises CandidateError(BIND) for a candidate that is not in the recording, or whose binding failed there.
    """
    row = space.feasible.row_of(candidate)
    if row is None:
        raise CandidateError(Stage.BIND, f"{candidate.text} is not in recording {space.name}")
    _raise_recorded(space, (Stage.BIND,), row)
    return Script.of(f"{ROW}{row} of recording {space.name}: {candidate.text}\n")


@final
class ReplayCompiler(AbstractCompiler):
    """The compiler of a recorded search space: raises recorded failures, compiles nothing."""

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact with the index of the script's configuration in the recording.

        Raises CandidateError if the recording has a failure before loading for this configuration.
        """
        row = int(script.text.removeprefix(ROW).split()[0])
        _raise_recorded(self._space, BEFORE_LOADING, row)
        code = f"{self._space.sha256} {self._space.codes[row]}"  # equal where the recorded code was equal
        return Artifact(KernelCode.of_host(str(row)), Script.of(code).sha256)


@final
class ReplayEvaluator(AbstractEvaluator):
    """The evaluator of a recorded search space: returns or raises what was recorded, runs nothing."""

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def load(self, problem: Problem, artifact: Artifact) -> object:
        row = int(artifact.code.text)
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
        """Returns the recorded time, whatever ``effort`` is; bootstraps an interval that is missing."""
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
    """Returns the settings of a run that replays the recording of the target ``replay:FILE``.

    No stored results are reused: a replay evaluates the search. Raises UsageError for a file that is not a
    recording, for another problem or number of threads, and for options that the recording decides.
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
        strategies=tuple(ChosenStrategy(knobs.strategy) for knobs in space.feasible.spaces),
        space_yaml="",
        sampler=request.sampler or TIMED_SAMPLER,
        seed=request.seed,
        trials=request.trials_limit,
        budget_s=request.budget_s,
        workers=workers,
        fresh=True,
        warm_files=request.warm_paths,
        seeds=_recorded_seeds(request),
        recording=str(file.absolute()),
    )


def _recorded_seeds(request: RunRequest) -> tuple[Candidate, ...]:
    seeds = []
    for seed in seeds_of_files(request.seeds):
        if isinstance(seed, Path):
            raise UsageError(
                f"{seed}: a replay compiles no script, allowed are configurations of the recording"
            )
        seeds.append(seed)
    return tuple(seeds)


@final
class Replay(Target):
    """The target ``replay:NAME``: outcomes of candidates are read from a recording."""

    name = REPLAY
    needs_local_resources = False

    def __init__(self, space: RecordedSpace) -> None:
        self._space = space

    def status(self) -> TargetStatus:
        return REPLAY_STATUS

    def tools(self) -> str:
        return ""

    def is_timed(self) -> bool:
        return True

    def require_types(self, problem: Problem, target: TargetName) -> None:
        """Accepts every problem: ``replay_settings`` refuses one that was not recorded."""

    def machine(self, target: TargetName) -> Machine:
        return recorded_machine(self._space)

    def compiler(self, target: TargetName) -> Compiler:
        return recorded_compiler(self._space)

    def plan(self, settings: RunSettings, machine: Machine) -> Plan:
        return Plan(self._space.feasible)

    def bind(
        self, strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine
    ) -> Bind:
        return partial(bind_recorded, self._space)

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        return RunnerChildren(  # of a node of a fleet
            compiler=Factory("tuner.targets.replay:ReplayCompiler", (self._space,)),
            evaluator=Factory("tuner.targets.replay:ReplayEvaluator", (self._space,)),
            limits=Limits(),
            device=REPLAY,
        )

    def runners(
        self, orders: "tuple[RunnerOrder, ...]", how: "tuple[RunnerSettings, ...]"
    ) -> "tuple[AbstractRunner, ...]":
        # without child processes: a lookup neither crashes nor hangs
        compiler = ReplayCompiler(self._space)
        evaluator = ReplayEvaluator(self._space)
        pairs = zip(orders, how, strict=True)
        return tuple(TrialRunner.local(order, compiler, evaluator, of_run.seed) for order, of_run in pairs)

    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        if self._space.baseline is None:
            raise TunerError(f"recording {self._space.name} has no time of a baseline")
        return replace(self._space.baseline, is_interleaved=False)  # nothing runs here: no ratio is printed

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        raise TunerError("a replay has no machine to measure")

    def source(self, problem: Problem, script: str) -> str:
        raise TunerError(NO_CODE)

    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        raise UsageError(NO_CODE)

    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        raise CandidateError(Stage.COMPILE, NO_CODE)

    def assembly(self, code: str, program: KernelCode | None) -> str:
        return ""

    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        return None


def replay_of(file: Path) -> tuple[Replay, TargetName]:
    """Reads a recording; returns the target that replays it, and its name ``replay:NAME``.

    Raises UsageError for a file that is missing or damaged.
    """
    space = _recorded(file.absolute())
    return Replay(space), TargetName(REPLAY, space.name)


def _recorded(file: Path) -> RecordedSpace:
    status = file.stat() if file.exists() else None
    stamp = () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return _read(file, stamp)


@lru_cache(maxsize=4)  # the file is read once until it changes
def _read(file: Path, _stamp: tuple[int, ...]) -> RecordedSpace:
    return read_recorded(file)
