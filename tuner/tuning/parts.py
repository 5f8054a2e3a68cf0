"""The real parts of a run. What is heavy is imported by the part that needs it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tuner.kernel import KernelProgram, Resources
from tuner.machine import Compiler, Machine, Roofline
from tuner.problem import Problem
from tuner.runs import RunSettings, Vendor
from tuner.space import Candidate, Value
from tuner.target_name import TargetName
from tuner.tuning.child_call import MEMORY_BYTES, call_in_child
from tuner.tuning.composition import BenchSettings, Bind, Composition, Plan, TargetStatus

if TYPE_CHECKING:
    from tuner.bench import AbstractBench
    from tuner.workers.protocol import Factory
    from tuner.workers.ticket import Order

SPACE_NAME = "search space"  # of a run, in messages: its file may have changed since
VENDOR_TIMEOUT_S = 120.0
APPLY_TIMEOUT_S = 60.0


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
        load_program=_load_program,
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
    from tuner.tuning.replaying import replay_status

    machine = _machine()
    if machine.isa == "none":
        reason = f"{machine.processor} has neither AVX-512 nor AVX2 with FMA"
        return (TargetStatus("cpu", False, reason), *gpu_statuses(), replay_status())
    cpu = TargetStatus("cpu", True, f"{machine.name}, {machine.physical_cores} cores")
    return (cpu, *gpu_statuses(), replay_status())


def _compiler(target: str) -> Compiler:
    from tuner.target import AbstractTarget
    from tuner.targets.cpu_compiler import cpu_compiler

    if TargetName.parse(target).kind == "cpu":
        return cpu_compiler()  # the target itself would import the compiler, which only the children need
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
    from tuner.seeds import seed_rows
    from tuner.tuning.scripts import Chosen, first_rows, spaces

    space_file = parse_space(settings.space_yaml, SPACE_NAME)
    chosen = tuple(Chosen.parse(text) for text in settings.strategies)
    variables = variables_of(settings.problem, machine, settings.threads)
    found = spaces(chosen, space_file, settings.problem, machine.isa, variables)
    listed = [point for entry in space_file.strategies for point in entry.first]
    feasible = FeasibleSet.of(found, (*listed, *(point.candidate for point in settings.first or ())))

    def seeds(resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        return seed_rows(feasible, settings.problem, machine, settings.threads, resources)

    return Plan(feasible, first_rows(space_file, feasible), seeds)


def _bind(settings: RunSettings, machine: Machine) -> Bind:
    from tuner.tuning.binding import binding
    from tuner.tuning.scripts import Chosen

    chosen = tuple(Chosen.parse(text) for text in settings.strategies)
    variables = variables_of(settings.problem, machine, settings.threads)
    return binding(chosen, settings.problem, variables, settings.threads)


def _bench(order: "Order", how: BenchSettings) -> "AbstractBench":
    import numpy as np

    from tuner.reference import reference_bytes
    from tuner.runtime.host import processors
    from tuner.tuning.gpu_parts import limits_of
    from tuner.tuning.vendor import gpu_library_environment, library_environment
    from tuner.workers.bench import WorkerBench
    from tuner.workers.limits import Limits
    from tuner.workers.services import compile_spec, judge_spec

    compiling = _factory(order.target, how.threads)
    timing = _factory(order.target, how.threads, processors(how.threads))
    memory_bytes = MEMORY_BYTES + 2 * reference_bytes(order.problem)
    target = TargetName.parse(order.target)
    limits = limits_of(target, memory_bytes) if target.is_gpu else Limits(memory_bytes=memory_bytes)
    # one thread for the float64 reference: more would spin beside the kernels that are timed,
    # unless these run on a GPU, in turns with cuBLAS
    if target.kind == "cuda":
        environment = (*library_environment(_machine().physical_cores), *gpu_library_environment())
    else:
        environment = library_environment(1)
    return WorkerBench(
        order,
        compile_spec(compiling),
        judge_spec(timing, environment),
        how.workers,
        limits,
        np.random.default_rng(how.seed),
    )


def _vendor(problem: Problem, threads: int, seed: int, target: str) -> Vendor:
    from tuner.tuning.finals import FINAL_EFFORT
    from tuner.tuning.vendor import vendor_spec

    if TargetName.parse(target).is_gpu:
        from tuner.tuning.gpu_parts import gpu_vendor

        return gpu_vendor(problem, FINAL_EFFORT, seed)
    vendor = call_in_child(vendor_spec(threads), "measure", (problem, FINAL_EFFORT, seed), VENDOR_TIMEOUT_S)
    assert isinstance(vendor, Vendor)
    return vendor


def _roofline(problem: Problem, threads: int, target: str) -> Roofline:
    from tuner.workers.protocol import Factory, ServiceSpec

    if TargetName.parse(target).is_gpu:
        from tuner.tuning.gpu_parts import gpu_roofline

        return gpu_roofline(problem)
    spec = ServiceSpec("roofline", Factory("tuner.tuning.roofline:RooflineCall"))
    roofline = call_in_child(spec, "measure", (problem.dtype, threads, _machine()), VENDOR_TIMEOUT_S)
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

    text = call_in_child(apply_spec(), "apply", (script, payload), APPLY_TIMEOUT_S)
    assert isinstance(text, str)
    return text


def _load(problem: Problem, script: str, threads: int) -> Callable[..., object]:
    from tuner.targets.cpu_callable import load_callable

    kernel: Callable[..., object] = load_callable(problem, script, threads)
    return kernel


def _load_program(problem: Problem, program: KernelProgram) -> Callable[..., object]:
    from tuner.targets.gpu_callable import load_program

    kernel: Callable[..., object] = load_program(problem, program)
    return kernel
