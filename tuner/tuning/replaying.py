"""A run on a recorded space: the same loop, store and answer, with a recording in place of a machine."""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.errors import TunerError, UsageError
from tuner.machine import Roofline
from tuner.problem import Problem
from tuner.runs import RunSettings, Vendor
from tuner.target_name import REPLAY, TargetName
from tuner.tuning.composition import Composition, Plan, TargetStatus

if TYPE_CHECKING:
    from tuner.bench import AbstractBench
    from tuner.recorded_space import RecordedSpace
    from tuner.targets.replay import ReplayTarget
    from tuner.tuning.composition import BenchSettings
    from tuner.workers.ticket import Order


def replay_settings(
    problem: Problem,
    file: Path,
    *,
    threads: int,
    sampler: str,
    seed: int,
    trials: int | None,
    budget_s: float | None,
    workers: int,
    warm_files: tuple[Path, ...] = (),
) -> RunSettings:
    """Returns settings of a run on a recording. Raises UsageError when it is of something else.

    A search is judged by them, so it must not know what an earlier replay found: the run is a fresh one, and
    begins with what other recordings know only if these are named.
    """
    space = _recorded(file.absolute())
    if space.problem not in (None, problem):
        raise UsageError(f"{file}: found problem {problem.key}, recorded {space.problem.key}")
    if threads not in (1, space.threads):
        raise UsageError(f"{file}: threads: found {threads}, recorded {space.threads}")
    return RunSettings(
        problem=problem,
        target=TargetName(REPLAY, recording=space.name).text,
        threads=space.threads,
        strategies=tuple(each.strategy for each in space.feasible.spaces),
        space_yaml=json.dumps({"recording": str(file.absolute())}),
        sampler=sampler,
        seed=seed,
        trials=trials,
        budget_s=budget_s,
        workers=workers,
        fresh=True,
        warm_files=tuple(str(each.absolute()) for each in warm_files),
    )


def replay_status() -> TargetStatus:
    """Returns what to type: a recording is no kind of machine that is there or not."""
    return TargetStatus(REPLAY, False, f"answers from a recorded space: --target {REPLAY}:FILE")


def composition_for(settings: RunSettings, composition: Composition) -> Composition:
    """Returns the parts that a run needs: those given, or for a replay ones that read its recording."""
    if not TargetName.parse(settings.target).is_replay:
        return composition
    return replay_composition(_recorded(_file_of(settings)), composition)


def replay_composition(space: "RecordedSpace", composition: Composition) -> Composition:
    """Returns parts that answer from a recording; of those given, the ones that need no machine stay."""
    from tuner.targets.replay import ReplayTarget

    target = ReplayTarget(space)
    machine = target.machine()
    return replace(
        composition,
        machine=lambda: machine,
        target_machine=lambda _target: machine,
        compiler=lambda _target: target.compiler(),
        plan=lambda _settings, _machine: Plan(space.feasible),
        bind=lambda _settings, _machine: target.bind,
        bench=lambda order, how: _bench(target, order, how),
        vendor=lambda _problem, _threads, _seed, _target: _vendor(space),
        roofline=lambda _problem, _threads, _target: _no_roofline(),
    )


def _bench(target: "ReplayTarget", order: "Order", how: "BenchSettings") -> "AbstractBench":
    """Returns a bench in this process: a lookup neither crashes nor hangs."""
    import numpy as np

    from tuner.workers.local import LocalBench

    return LocalBench(order, target, np.random.default_rng(how.seed))


def _vendor(space: "RecordedSpace") -> Vendor:
    if space.vendor is None:
        raise TunerError(f"recording {space.name} has no time of a vendor library")
    return space.vendor


def _no_roofline() -> Roofline:
    raise TunerError("a replay has no machine to measure")


def _file_of(settings: RunSettings) -> Path:
    """Returns the recording that a stored run answers from."""
    return Path(json.loads(settings.space_yaml)["recording"])


def _recorded(file: Path) -> "RecordedSpace":
    """Reads a file; once, though settings, parts and a resumed run ask for it in turn."""
    stamp_ns = file.stat().st_mtime_ns if file.exists() else 0
    return _read(file, stamp_ns)


@lru_cache(maxsize=4)
def _read(file: Path, _stamp_ns: int) -> "RecordedSpace":
    from tuner.recorded import read_recorded

    return read_recorded(file)
