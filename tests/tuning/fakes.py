"""Backends without compiler and clock: knobs ``x`` (decides the time) and ``comment`` (does not)."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, final

from tests.fakes import FakeTarget, UntimedTarget, bind, script_of
from tests.forwarding import ForwardingTarget
from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.compiled_code import KernelCode, PredictedCycles
from tuner.core.errors import CandidateError, OpPlace, Stage, TunerError, UsageError
from tuner.core.interfaces import AbstractRunner, Script
from tuner.core.machine import Machine, PresentLoad, Processors
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.queries import TrialQuery
from tuner.core.records import Measurement
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, ChosenStrategy, Compiler, RunSettings
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.gpu.target.target import GpuOrder
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.runner import RunnerOrder, RunnerProcesses, TrialRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets import target
from tuner.targets.backends import Backends
from tuner.targets.registry import TARGETS
from tuner.targets.replay import replay_of
from tuner.tuning.events import Interruption
from tuner.tuning.run import begin
from tuner.tuning.tuned_run import TunedRun

Present = TypeVar("Present")
BASELINE_S = 2e-3
ROOFLINE = Roofline(2e9, 1e9)
BEST_S = 1e-3  # of x = 7
MACHINE = FakeTarget().machine()


def present(value: Present | None) -> Present:
    """Returns a value, which must not be None."""
    assert value is not None
    return value


def settings(trials: int | None = 12, **changes: object) -> RunSettings:
    """Returns settings of a fake run; its space has 10 x 2 points."""
    plain = RunSettings(
        problem=Matmul(8, 8, 8),
        target=TargetName("fake"),
        threads=1,
        strategies=(ChosenStrategy("fake"),),
        space_yaml="strategies: {}",
        sampler="random",
        seed=0,
        trials=trials,
        budget_s=None,
        workers=1,
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


@final
class Preferring(target.InitialModel):
    def __init__(self, rows: tuple[int, ...]) -> None:
        self._rows = rows

    def rows(self, feasible: FeasibleSet, resources: object) -> tuple[int, ...]:
        return self._rows


def plan(knobs: dict[str, tuple[Value, ...]]) -> Callable[[RunSettings, Machine], target.Plan]:
    space = SearchSpace("fake", tuple(Knob(name, choices) for name, choices in knobs.items()))
    return lambda _settings, _machine: target.Plan(FeasibleSet.of((space,)))


def local_runner(order: RunnerOrder, how: target.RunnerSettings) -> AbstractRunner:
    return TrialRunner.local(order, FakeTarget(), FakeTarget(), how.seed)


def runner_without_baseline(order: RunnerOrder, how: target.RunnerSettings) -> AbstractRunner:
    """Returns a runner whose evaluator has no baseline that could be timed interleaved."""
    return TrialRunner.local(order, FakeTarget(), ForwardingTarget(FakeTarget(), FakeTarget()), how.seed)


def worker_runner(factory: Factory) -> Callable[[RunnerOrder, target.RunnerSettings], AbstractRunner]:
    """Returns a runner of real processes that serve a fake target."""

    def build(order: RunnerOrder, how: target.RunnerSettings) -> AbstractRunner:
        processes = RunnerProcesses(compile_spec(factory), evaluation_spec(factory), how.workers, Limits())
        return TrialRunner.in_children(order, processes, how.seed)

    return build


def baseline(problem: Problem, threads: int, seed: int, wait: LockWait | None = None) -> Baseline:
    return Baseline(
        "FakeBLAS 1.0", threads, Measurement((BASELINE_S,) * 5, 1, BASELINE_S, (BASELINE_S, BASELINE_S))
    )


def no_baseline(problem: Problem, threads: int, seed: int, wait: LockWait | None = None) -> Baseline:
    raise TunerError("openblas: exited with status 3")


def tune(store: Store, parts: Backends | None = None, **changes: Any) -> TunedRun:
    """Returns a run of changed settings, which has ended."""
    return begin(settings(**changes), parts or backends(), store, Interruption())


def trials_of(store: Store, run: int = 1) -> tuple[StoredTrial, ...]:
    return store.trials(TrialQuery(run=run, sort="number"))


def candidates_of(store: Store, run: int) -> list[Candidate]:
    return [trial.record.candidate for trial in trials_of(store, run)]


def load(problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
    """Returns a function that reports the program, else the script, and the arguments of its calls."""
    code = (trial.script_text, trial.threads) if program is None else (program,)
    return lambda *arrays: (problem, *code, arrays)


def no_code(target: TargetName, problem: Problem, script: Script) -> str:
    raise CandidateError(Stage.COMPILE, f"target {target.text}: compiles nothing")


@final
class AnyBaseline(target.BaselineChoice):
    """Whatever is chosen is FakeBLAS."""

    def require(self, choice: str, problem: Problem) -> None:
        pass

    def target(self, choice: str) -> target.Target:
        return FAKE

    def recorded(self, name: str, problem: Problem) -> str:
        return ""


@final
class FakeKind(target.Target):
    name = "fake"
    baselines = AnyBaseline()
    times_processors = True
    runner = staticmethod(local_runner)
    baseline = staticmethod(baseline)
    load = staticmethod(load)
    code = staticmethod(no_code)

    untimed = GpuOrder()

    def status(self) -> target.TargetStatus:
        return target.TargetStatus("fake", True, "for tests")

    def tools(self) -> str:
        return ""

    def is_timed(self) -> bool:
        return self.status().is_timed

    def require_types(self, problem: Problem, named: TargetName) -> None:
        pass

    def machine(self, named: TargetName) -> Machine:
        return MACHINE

    def compiler(self, named: TargetName) -> Compiler:
        return FakeTarget().compiler()

    def plan(self, settings: RunSettings, machine: Machine) -> target.Plan:
        return plan({"x": tuple(range(10)), "comment": ("a", "b")})(settings, machine)

    def bind(
        self, strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine
    ) -> target.Bind:
        return bind

    def children(self, named: TargetName, problem: Problem, threads: int) -> target.RunnerChildren:
        raise UsageError("target fake: has no child processes")

    def runners(
        self, orders: tuple[RunnerOrder, ...], how: tuple[target.RunnerSettings, ...]
    ) -> tuple[AbstractRunner, ...]:
        return tuple(self.runner(*pair) for pair in zip(orders, how, strict=True))

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        return ROOFLINE

    def source(self, problem: Problem, script: str) -> str:
        return f"// source of {problem.shape}\n"

    def assembly(self, code: str, program: KernelCode | None) -> str:
        return ""

    def predicted(self, problem: Problem, program: KernelCode) -> PredictedCycles | None:
        return None


FAKE: target.Target = FakeKind()
STATUSES = (FAKE.status(), target.TargetStatus("gpu", False, "no driver"))


def kind_of(status: target.TargetStatus, **changes: Any) -> target.Target:
    """Returns a fake target; one named like a real one has the chips, processors and types of that."""
    fake = changed(FAKE, name=status.name, status=lambda: status, **changes)
    if status.name not in TARGETS:
        return fake
    real = TARGETS[status.name]
    return changed(
        fake,
        default_chip=real.default_chip,
        chips=real.chips,
        require_types=real.require_types,
        times_processors=real.times_processors,
        cross_compiled=None if real.cross_compiled is None else fake,
        details=real.details,
    )


Changed = TypeVar("Changed", target.Target, Backends)


def changed(whole: Changed, **changes: Any) -> Changed:
    """Returns a target, or backends, with other attributes: values, and functions in place of methods."""
    other = copy.copy(whole)
    vars(other).update(changes)
    return other


@final
class FakeBackends(Backends):
    def __init__(self, targets: Mapping[str, target.Target]) -> None:
        self.targets = targets

    def replay_of(self, file: Path) -> tuple[target.Target, TargetName]:
        return replay_of(file)

    def machine(self) -> Machine:
        return MACHINE

    def processors(self) -> Processors:
        return Processors(present=2, allowed=2)

    def present_load(self) -> PresentLoad:
        return PresentLoad(busy=0.0, stolen=0.0)

    def load_average(self) -> float | None:
        return 0.5

    def apply(
        self, script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()
    ) -> str:
        return f"// applied{' with effects' * allows_effects}\n{payload}"

    def failing_op(self, script: str, payload: str) -> OpPlace | None:
        return None


def backends(statuses: tuple[target.TargetStatus, ...] = STATUSES, **changes: Any) -> Backends:
    """Returns backends of fakes, a target for each status, all with the same changes; replays are real."""
    return FakeBackends({status.name: kind_of(status, **changes) for status in statuses})


def untimed_runner(order: RunnerOrder, how: target.RunnerSettings) -> AbstractRunner:
    return TrialRunner.local(order, UntimedTarget(), UntimedTarget(), how.seed)


def untimed_backends() -> Backends:
    """Returns backends of one target, the simulator, that gives no times and no baseline."""

    def unwanted(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        raise AssertionError("asked for the baseline's time")

    untimed = target.TargetStatus("simulator", True, "no clock", is_timed=False)
    return backends((untimed,), runner=untimed_runner, baseline=unwanted)


def failing_bind(chosen: Candidate) -> Script:
    """Makes every candidate fail when it is verified."""
    return bind(Candidate.of(chosen.strategy, dict(chosen.choices) | {"deed": "wrong", "at": "verify"}))


def bind_with_custom_op(chosen: Candidate) -> Script:
    """Lets the script of x = 7, the fastest, call an op that stock mlir-opt does not have."""
    plain = bind(chosen)
    is_fastest = dict(chosen.choices)["x"] == 7
    return script_of(f'{plain.text}\n"tuner.fast"(%x) : (!any) -> ()') if is_fastest else plain


ALL_FAIL: target.Bind = failing_bind
OTHER_COMPILER = Compiler("fake 2.0", (), "1" * 64)
OTHER_MACHINE = dataclasses.replace(MACHINE, name="another")
