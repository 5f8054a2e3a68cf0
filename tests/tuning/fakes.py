"""A composition without compiler and clock: knobs ``x`` (decides the time) and ``comment`` (does not)."""

import dataclasses
from collections.abc import Callable

import numpy as np

from tests.fakes import FakeTarget, UntimedTarget, bind
from tuner.bench import AbstractBench
from tuner.errors import TunerError
from tuner.feasible import FeasibleSet
from tuner.machine import Compiler, Machine, Roofline
from tuner.problem import Matmul, Problem
from tuner.record import Measurement
from tuner.runs import RunSettings, Vendor
from tuner.space import Candidate, Knob, SearchSpace, Value
from tuner.target import Script
from tuner.tuning.composition import BenchSettings, Bind, Composition, Plan, TargetStatus
from tuner.workers.bench import WorkerBench
from tuner.workers.limits import Limits
from tuner.workers.local import LocalBench
from tuner.workers.protocol import Factory
from tuner.workers.services import compile_spec, judge_spec
from tuner.workers.ticket import Order

VENDOR_S = 2e-3
ROOFLINE = Roofline(2e9, 1e9)
BEST_S = 1e-3  # of x = 7
MACHINE = FakeTarget().machine()


def settings(trials: int | None = 12, **changes: object) -> RunSettings:
    """Returns settings of a fake run; its space has 10 x 2 points."""
    plain = RunSettings(
        problem=Matmul(8, 8, 8),
        target="fake",
        threads=1,
        strategies=("fake",),
        space_yaml="strategies: {}",
        sampler="random",
        seed=0,
        trials=trials,
        budget_s=None,
        workers=1,
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def plan(knobs: dict[str, tuple[Value, ...]]) -> Callable[[RunSettings, Machine], Plan]:
    space = SearchSpace("fake", tuple(Knob(name, choices) for name, choices in knobs.items()))
    return lambda _settings, _machine: Plan(FeasibleSet.of((space,)))


def local_bench(order: Order, how: BenchSettings) -> AbstractBench:
    return LocalBench(order, FakeTarget(), np.random.default_rng(how.seed))


def worker_bench(target: Factory) -> Callable[[Order, BenchSettings], AbstractBench]:
    """Returns a bench of real processes that serve a fake target."""

    def build(order: Order, how: BenchSettings) -> AbstractBench:
        rng = np.random.default_rng(how.seed)
        return WorkerBench(order, compile_spec(target), judge_spec(target), how.workers, Limits(), rng)

    return build


def vendor(problem: Problem, threads: int, seed: int, target: str) -> Vendor:
    return Vendor("FakeBLAS 1.0", threads, Measurement((VENDOR_S,) * 5, 1, VENDOR_S, (VENDOR_S, VENDOR_S)))


def no_vendor(problem: Problem, threads: int, seed: int, target: str) -> Vendor:
    raise TunerError("vendor: exited with status 3")


def composition(**changes: object) -> Composition:
    """Returns a composition of fakes, parts of it replaced."""
    parts = Composition(
        machine=lambda: MACHINE,
        target_machine=lambda _target: MACHINE,
        load_average=lambda: 0.5,
        compiler=lambda _target: FakeTarget().compiler(),
        plan=plan({"x": tuple(range(10)), "comment": ("a", "b")}),
        bind=lambda _settings, _machine: bind,
        bench=local_bench,
        vendor=vendor,
        roofline=lambda _problem, _threads, _target: ROOFLINE,
        targets=lambda: (TargetStatus("fake", True, "for tests"), TargetStatus("gpu", False, "no driver")),
        source=lambda target, problem, script: f"// source of {problem.shape}\n",
        apply=lambda script, payload: f"// applied\n{payload}",
        load=lambda problem, script, threads: lambda *arrays: (problem, script, threads, arrays),
        load_program=lambda problem, program: lambda *arrays: (problem, program, arrays),
    )
    return dataclasses.replace(parts, **changes)  # type: ignore[arg-type]


def untimed_bench(order: Order, how: BenchSettings) -> AbstractBench:
    return LocalBench(order, UntimedTarget(), np.random.default_rng(how.seed))


def untimed_composition() -> Composition:
    """Returns a composition of one target, the simulator, that gives no times: a vendor is never asked."""
    return composition(
        bench=untimed_bench,
        vendor=no_vendor_wanted,
        targets=lambda: (TargetStatus("simulator", True, "no clock", is_timed=False),),
    )


def no_vendor_wanted(problem: Problem, threads: int, seed: int, target: str) -> Vendor:
    raise AssertionError("asked for the vendor's time")


def failing_bind(chosen: Candidate) -> Script:
    """Makes every candidate fail when it is verified."""
    return bind(Candidate.of(chosen.strategy, dict(chosen.choices) | {"deed": "wrong", "at": "verify"}))


ALL_FAIL: Bind = failing_bind
OTHER_COMPILER = Compiler("fake 2.0", (), "1" * 64)
OTHER_MACHINE = dataclasses.replace(MACHINE, name="another")
