"""Backends without compiler and clock: knobs ``x`` (decides the time) and ``comment`` (does not)."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from tests.fakes import FakeTarget, UntimedTarget, bind, script_of
from tests.forwarding import ForwardingTarget
from tuner.core.candidate import Candidate, ChosenStrategy, TargetName, Value
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.gpu_code import KernelProgram
from tuner.core.interfaces import AbstractRunner, Script
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.processors import PresentLoad, Processors
from tuner.core.records import Measurement
from tuner.core.runs import Baseline, RunSettings, StoredTrial, TrialQuery
from tuner.db.store import Store
from tuner.runtime.timing_lock import LockWait
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.runtime.workers.runner import LocalRunner, RunnerOrder, RunnerProcesses, WorkerRunner
from tuner.runtime.workers.services import compile_spec, evaluation_spec
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace
from tuner.targets import interface
from tuner.targets.backends import Backends
from tuner.targets.registry import KINDS
from tuner.targets.replay import RECORDINGS
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


def plan(knobs: dict[str, tuple[Value, ...]]) -> Callable[[RunSettings, Machine], interface.Plan]:
    space = SearchSpace("fake", tuple(Knob(name, choices) for name, choices in knobs.items()))
    return lambda _settings, _machine: interface.Plan(FeasibleSet.of((space,)))


def local_runner(order: RunnerOrder, how: interface.RunnerSettings) -> AbstractRunner:
    return LocalRunner(order, FakeTarget(), FakeTarget(), how.seed)


def runner_without_baseline(order: RunnerOrder, how: interface.RunnerSettings) -> AbstractRunner:
    """Returns a runner whose evaluator has no baseline that could be timed interleaved."""
    return LocalRunner(order, FakeTarget(), ForwardingTarget(FakeTarget(), FakeTarget()), how.seed)


def worker_runner(target: Factory) -> Callable[[RunnerOrder, interface.RunnerSettings], AbstractRunner]:
    """Returns a runner of real processes that serve a fake target."""

    def build(order: RunnerOrder, how: interface.RunnerSettings) -> AbstractRunner:
        processes = RunnerProcesses(compile_spec(target), evaluation_spec(target), how.workers, Limits())
        return WorkerRunner(order, processes, how.seed)

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


def load(problem: Problem, trial: StoredTrial, program: KernelProgram | None) -> Callable[..., object]:
    """Returns a function that reports the program, else the script, and the arguments of its calls."""
    code = (trial.script_text, trial.threads) if program is None else (program,)
    return lambda *arrays: (problem, *code, arrays)


def no_code(target: TargetName, problem: Problem, script: Script) -> str:
    raise CandidateError(Stage.COMPILE, f"target {target.text}: compiles nothing")


FAKE: interface.TargetBackend = interface.TargetBackend(
    name="fake",
    status=lambda: interface.TargetStatus("fake", True, "for tests"),
    measurement=interface.MeasurementBackend(
        machine=lambda _target: MACHINE,
        compiler=lambda _target: FakeTarget().compiler(),
        plan=plan({"x": tuple(range(10)), "comment": ("a", "b")}),
        bind=lambda *_: bind,
        runner=local_runner,
        baseline=baseline,
        roofline=lambda _problem, _threads, _wait: ROOFLINE,
        times_processors=True,
    ),
    source=lambda problem, script: f"// source of {problem.shape}\n",
    load=load,
    code=no_code,
    assembly=lambda _code, _program: "",
    require_types=lambda _problem, _target: None,
    baselines=interface.BaselineChoice(
        require=lambda _choice, _problem: None,
        measurement=lambda _choice: FAKE.measurement,  # whatever is chosen is FakeBLAS
        recorded=lambda _name, _problem: "",
    ),
)
STATUSES = (FAKE.status(), interface.TargetStatus("gpu", False, "no driver"))


def kind_of(status: interface.TargetStatus, **changes: Any) -> interface.TargetBackend:
    """Returns a fake kind; one named like a real kind has the chips, processors and types of the real one."""
    fake = dataclasses.replace(FAKE, name=status.name, status=lambda: status)
    fake = changed_kind(fake, is_timed=lambda: status.is_timed, **changes)
    if status.name not in KINDS:
        return fake
    real = KINDS[status.name]
    return changed_kind(
        fake,
        default_chip=real.default_chip,
        require_types=real.require_types,
        times_processors=real.measurement.times_processors,
        cross_compiled=None if real.cross_compiled is None else fake,
        details=real.details,
    )


def changed_kind(kind: interface.TargetBackend, **changes: Any) -> interface.TargetBackend:
    """Returns a kind with other fields, some of them fields of its outcomes."""
    of_outcomes = {field.name for field in dataclasses.fields(interface.MeasurementBackend)} & changes.keys()
    outcomes = dataclasses.replace(kind.measurement, **{name: changes[name] for name in of_outcomes})
    own = {name: value for name, value in changes.items() if name not in of_outcomes}
    return dataclasses.replace(kind, measurement=outcomes, **own)


def _apply(script: str, payload: str, allows_effects: bool = False, trailing: tuple[str, ...] = ()) -> str:
    return f"// applied{' with effects' * allows_effects}\n{payload}"


def backends(statuses: tuple[interface.TargetStatus, ...] = STATUSES, **changes: Any) -> Backends:
    """Returns backends of fakes, a kind for each status, all with the same changes; replays are real."""
    return Backends(
        kinds={status.name: kind_of(status, **changes) for status in statuses},
        recordings=RECORDINGS,
        machine=lambda: MACHINE,
        processors=lambda: Processors(present=2, allowed=2),
        present_load=lambda: PresentLoad(busy=0.0, stolen=0.0),
        load_average=lambda: 0.5,
        apply=_apply,
        failing_op=lambda _script, _payload: None,
    )


def untimed_runner(order: RunnerOrder, how: interface.RunnerSettings) -> AbstractRunner:
    return LocalRunner(order, UntimedTarget(), UntimedTarget(), how.seed)


def untimed_backends() -> Backends:
    """Returns backends of one target, the simulator, that gives no times and no baseline."""

    def unwanted(problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        raise AssertionError("asked for the baseline's time")

    untimed = interface.TargetStatus("simulator", True, "no clock", is_timed=False)
    return backends((untimed,), runner=untimed_runner, baseline=unwanted)


def failing_bind(chosen: Candidate) -> Script:
    """Makes every candidate fail when it is verified."""
    return bind(Candidate.of(chosen.strategy, dict(chosen.choices) | {"deed": "wrong", "at": "verify"}))


def bind_with_custom_op(chosen: Candidate) -> Script:
    """Lets the script of x = 7, the fastest, call an op that stock mlir-opt does not have."""
    plain = bind(chosen)
    is_fastest = dict(chosen.choices)["x"] == 7
    return script_of(f'{plain.text}\n"tuner.fast"(%x) : (!any) -> ()') if is_fastest else plain


ALL_FAIL: interface.Bind = failing_bind
OTHER_COMPILER = Compiler("fake 2.0", (), "1" * 64)
OTHER_MACHINE = dataclasses.replace(MACHINE, name="another")
