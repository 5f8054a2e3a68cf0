"""Recorded search spaces as sources of outcomes: same search loop and database as on a machine."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.errors import TunerError, UsageError
from tuner.core.machine import Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, RunSettings
from tuner.core.target_name import REPLAY, TargetName
from tuner.tuning.composition import Recordings
from tuner.tuning.outcome_source import BenchChildren, OutcomeSource, Plan
from tuner.tuning.run_request import TIMED_SAMPLER, RunRequest
from tuner.tuning.target_kind import TargetStatus

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.space.recorded.space import RecordedSpace
    from tuner.tuning.outcome_source import BenchSettings
    from tuner.workers.in_flight import BenchOrder


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


def replaying_source(space: "RecordedSpace") -> OutcomeSource:
    """Returns the functions that look up candidates' outcomes in a recording instead of running them."""
    from tuner.targets import replay

    return OutcomeSource(
        machine=lambda _target: replay.recorded_machine(space),
        compiler=lambda _target: replay.recorded_compiler(space),
        plan=lambda _settings, _machine: Plan(space.feasible),
        bind=lambda *_: partial(replay.bind_recorded, space),
        bench=lambda order, how: _bench(space, order, how),
        baseline=lambda _problem, _threads, _seed: _baseline(space),
        roofline=_no_roofline,
        children=lambda _target, _problem, _threads: _children(space),
        needs_local_resources=False,
    )


def _bench(space: "RecordedSpace", order: "BenchOrder", how: "BenchSettings") -> "AbstractBench":
    """Returns a bench without child processes: a lookup neither crashes nor hangs."""
    from tuner.targets.replay import ReplayCompiler, ReplayEvaluator
    from tuner.workers.local_bench import LocalBench

    return LocalBench(order, ReplayCompiler(space), ReplayEvaluator(space), how.seed)


def _children(space: "RecordedSpace") -> BenchChildren:
    """Returns the child processes with which a node of a fleet replays a recording."""
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory

    return BenchChildren(
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


def outcomes_of_file(file: Path) -> tuple[OutcomeSource, TargetName]:
    """Returns the functions that look up outcomes in a recorded file, and the target ``replay:NAME`` of it.

    Raises UsageError for a file that is no recording.
    """
    space = _recorded(file.absolute())
    return replaying_source(space), TargetName(REPLAY, space.name)


def _of_run(settings: RunSettings) -> OutcomeSource:
    outcomes, _ = outcomes_of_file(Path(settings.recording))
    return outcomes


def _recorded(file: Path) -> "RecordedSpace":
    """Returns a recording; the file is read once until it changes."""
    found = file.stat() if file.exists() else None
    stamp = () if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    return _read(file, stamp)


@lru_cache(maxsize=4)
def _read(file: Path, _stamp: tuple[int, ...]) -> "RecordedSpace":
    from tuner.space.recorded.reading import read_recorded

    return read_recorded(file)


RECORDINGS = Recordings(
    status=TargetStatus(REPLAY, False, f"with a file only, a recorded space: --target {REPLAY}:FILE"),
    settings=replay_settings,
    of_file=outcomes_of_file,
    of_run=_of_run,
)
