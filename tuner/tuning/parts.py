"""The real parts of a run. What is heavy is imported by the part that needs it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tuner.errors import Failure, Stage, TunerError, UsageError
from tuner.machine import Compiler, Machine, Roofline
from tuner.problem import Problem
from tuner.runs import RunSettings, Vendor
from tuner.space import Value
from tuner.target_name import TargetName
from tuner.tuning.composition import BenchSettings, Bind, Composition, Plan, TargetStatus

if TYPE_CHECKING:
    from tuner.bench import AbstractBench
    from tuner.workers.protocol import Factory, ServiceSpec
    from tuner.workers.ticket import Order

SPACE_NAME = "search space"  # of a run, in messages: its file may have changed since
VENDOR_TIMEOUT_S = 120.0
APPLY_TIMEOUT_S = 60.0
MEMORY_BYTES = 8 << 30  # of a child beside the arrays of its problem


def real_composition() -> Composition:
    """Returns the parts that compile, run and time for real."""
    return Composition(
        machine=_machine,
        target_machine=_target_machine,
        load_average=_load_average,
        compiler=_compiler,
        plan=_plan,
        bind=_bind,
        bench=_bench,
        vendor=_vendor,
        roofline=_roofline,
        targets=_targets,
        source=_source,
        apply=_apply,
        load=_load,
    )


def variables_of(problem: Problem, machine: Machine, threads: int) -> tuple[tuple[str, Value], ...]:
    """Returns the names that constraints and templates may use."""
    return (*problem.variables(), *machine.limits(), ("threads", threads))


def _machine() -> Machine:
    from tuner.runtime.host import describe_machine

    return describe_machine()


def _target_machine(target: str) -> Machine:
    name = TargetName.parse(target)
    if not name.is_gpu:
        return _machine()
    from tuner.tuning.gpu_parts import machine_of

    return machine_of(name)


def _load_average() -> float | None:
    from tuner.runtime.host import load_average

    return load_average()


def _targets() -> tuple[TargetStatus, ...]:
    from tuner.tuning.gpu_parts import gpu_statuses

    machine = _machine()
    if machine.isa == "none":
        reason = f"{machine.processor} has neither AVX-512 nor AVX2 with FMA"
        return (TargetStatus("cpu", False, reason), *gpu_statuses())
    return (TargetStatus("cpu", True, f"{machine.name}, {machine.physical_cores} cores"), *gpu_statuses())


def _compiler(target: str) -> Compiler:
    from tuner.target import AbstractTarget

    built: AbstractTarget = _factory(target, 1).build()
    return built.compiler()


def _factory(target: str, threads: int, pin_to: tuple[int, ...] = ()) -> "Factory":
    from tuner.targets import TARGETS
    from tuner.workers.protocol import Factory

    name = TargetName.parse(target)
    return Factory(TARGETS[name.kind], (name.chip,) if name.is_gpu else (threads, pin_to))


def _plan(settings: RunSettings, machine: Machine) -> Plan:
    from tuner.config import parse_space
    from tuner.feasible import FeasibleSet
    from tuner.tuning.scripts import Chosen, first_rows, spaces

    space_file = parse_space(settings.space_yaml, SPACE_NAME)
    chosen = tuple(Chosen.parse(text) for text in settings.strategies)
    variables = variables_of(settings.problem, machine, settings.threads)
    feasible = FeasibleSet.of(spaces(chosen, space_file, settings.problem, machine.isa, variables))
    return Plan(feasible, first_rows(space_file, feasible))


def _bind(settings: RunSettings, machine: Machine) -> Bind:
    from tuner.strategy import Binder
    from tuner.tuning.scripts import Chosen

    strategies = tuple(Chosen.parse(text).load() for text in settings.strategies)
    variables = variables_of(settings.problem, machine, settings.threads)
    return Binder(strategies, settings.problem, variables, settings.threads).bind


def _bench(order: "Order", how: BenchSettings) -> "AbstractBench":
    import numpy as np

    from tuner.reference import reference_bytes
    from tuner.runtime.host import processors
    from tuner.tuning.gpu_parts import gpu_limits
    from tuner.tuning.vendor import library_environment
    from tuner.workers.bench import WorkerBench
    from tuner.workers.limits import Limits
    from tuner.workers.services import compile_spec, judge_spec

    compiling = _factory(order.target, how.threads)
    timing = _factory(order.target, how.threads, processors(how.threads))
    memory_bytes = MEMORY_BYTES + 2 * reference_bytes(order.problem)
    is_gpu = TargetName.parse(order.target).is_gpu
    limits = gpu_limits(memory_bytes) if is_gpu else Limits(memory_bytes=memory_bytes)
    return WorkerBench(
        order,
        compile_spec(compiling),
        # one thread for the float64 reference: more would spin beside the kernels that are timed
        judge_spec(timing, library_environment(1)),
        how.workers,
        limits,
        np.random.default_rng(how.seed),
    )


def _vendor(problem: Problem, threads: int, seed: int) -> Vendor:
    from tuner.tuning.finals import FINAL_EFFORT
    from tuner.tuning.vendor import vendor_spec

    vendor = _call(vendor_spec(threads), "measure", (problem, FINAL_EFFORT, seed), VENDOR_TIMEOUT_S)
    assert isinstance(vendor, Vendor)
    return vendor


def _roofline(problem: Problem, threads: int) -> Roofline:
    from tuner.workers.protocol import Factory, ServiceSpec

    spec = ServiceSpec("roofline", Factory("tuner.tuning.roofline:RooflineCall"))
    roofline = _call(spec, "measure", (problem.dtype, threads, _machine()), VENDOR_TIMEOUT_S)
    assert isinstance(roofline, Roofline)
    return roofline


def _source(target: str, problem: Problem, script: str) -> str:
    if TargetName.parse(target).is_gpu:
        from tuner.gpu_payload import gpu_payload_mlir, views_in

        return gpu_payload_mlir(problem, views_in(script, problem))
    from tuner.payload import panels_in, payload_mlir

    return payload_mlir(problem, panels_in(script, problem))


def _apply(script: str, payload: str) -> str:
    from tuner.tuning.apply import apply_spec

    text = _call(apply_spec(), "apply", (script, payload), APPLY_TIMEOUT_S)
    assert isinstance(text, str)
    return text


def _load(problem: Problem, script: str, threads: int) -> Callable[..., object]:
    from tuner.targets.cpu_callable import load_callable

    kernel: Callable[..., object] = load_callable(problem, script, threads)
    return kernel


def _call(spec: "ServiceSpec", method: str, arguments: tuple[object, ...], timeout_s: float) -> object:
    """Returns what one call in a child process gives. Raises TunerError when it fails or crashes."""
    from tuner.workers.protocol import Reply
    from tuner.workers.supervisor import Worker

    worker = Worker(spec, MEMORY_BYTES)
    try:
        worker.submit(method, *arguments, stage=Stage.RUN, timeout_s=timeout_s)
        while not isinstance(news := worker.wait(), Reply):
            worker.go_ahead()
    finally:
        worker.kill()
    if isinstance(news.value, Failure):
        is_misuse = news.value.stage is Stage.BIND  # what was given does not even parse
        kind = UsageError if is_misuse else TunerError
        raise kind(f"{spec.name}: {news.value.reason}")
    return news.value
