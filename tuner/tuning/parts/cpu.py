"""The target kind ``cpu``: this machine's processor."""

from collections.abc import Callable
from functools import partial

from tuner.core.described_processors import PROCESSORS
from tuner.core.errors import UsageError
from tuner.core.instruction_sets import instruction_sets_of
from tuner.core.kernel_program import KernelProgram
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.peak_instructions import peak_text
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, StoredTrial
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.mlir.fingerprint import CPU_SOURCES
from tuner.tuning.outcome_source import BenchChildren, OutcomeSource
from tuner.tuning.parts import strategy_space
from tuner.tuning.parts.child_bench import child_bench
from tuner.tuning.parts.child_call import call_in_child, child_memory_bytes
from tuner.tuning.parts.child_functions import measure_cpu_baseline, measure_cpu_roofline
from tuner.tuning.parts.described_cpu import described_cpu
from tuner.tuning.target_kind import ProgramSupport, TargetKind, TargetStatus

BASELINE_TIMEOUT_S = 120.0  # in addition to the float64 reference
DTYPES = ("f32", "f64", "bf16", "i8")
GPUS_TAKE_IT = "on target cpu; cuda and simulator take it"


def host_machine() -> Machine:
    """Returns this machine, described from /proc and /sys."""
    from tuner.runtime.cpu.describe_host import describe_machine

    return describe_machine()


def _status() -> TargetStatus:
    from tuner.runtime.cpu.describe_host import has_refused_tiles

    machine = host_machine()
    if machine.isa == "none":
        return TargetStatus("cpu", False, f"{machine.processor} has neither AVX-512 nor AVX2 with FMA")
    facts = (
        f"{machine.name}, {machine.physical_cores} cores",
        f"has {', '.join(instruction_sets_of(machine))}",
        *["has AMX, but the operating system refuses it"] * has_refused_tiles(),
        f"peaks: {peak_text(machine)}",
    )
    return TargetStatus("cpu", True, "; ".join(facts))


def _compiler(_target: TargetName) -> Compiler:
    from tuner.mlir.cpu.pipeline import cpu_compiler  # CpuCompiler would import the bindings

    return cpu_compiler()


def _children(_target: TargetName, problem: Problem, threads: int) -> BenchChildren:
    from tuner.runtime.cpu.describe_host import processors
    from tuner.workers.library_environment import library_environment
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory

    return BenchChildren(
        compiler=Factory("tuner.targets.cpu.compiler:CpuCompiler"),
        evaluator=Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (threads, processors(threads))),
        limits=Limits(memory_bytes=child_memory_bytes(problem)),
        # one thread for the float64 reference: more would spin while kernels are timed
        environment=library_environment(1),
    )


def _baseline(problem: Problem, threads: int, seed: int) -> Baseline:
    from tuner.tuning.remeasurement import FINAL_EFFORT
    from tuner.workers.library_environment import library_environment
    from tuner.workers.limits import REFERENCE_FLOP_PER_S
    from tuner.workers.timing_lock import TimingLock, holder_text

    work = partial(measure_cpu_baseline, problem, threads, FINAL_EFFORT, seed)
    timeout_s = BASELINE_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
    with TimingLock("cpu", holder_text(problem)).held():
        return call_in_child("baseline", work, timeout_s, environment=library_environment(threads))


def _roofline(problem: Problem, threads: int) -> Roofline:
    from tuner.workers.timing_lock import TimingLock, holder_text

    work = partial(measure_cpu_roofline, problem.dtype, threads, host_machine())
    with TimingLock("cpu", holder_text(problem)).held():
        return call_in_child("roofline", work, BASELINE_TIMEOUT_S)


def _source(problem: Problem, script: str) -> str:
    from tuner.payload.cpu import partitions_in, payload_mlir

    return payload_mlir(problem, partitions_in(script, problem))


def _load(problem: Problem, trial: StoredTrial, _program: KernelProgram | None) -> Callable[..., object]:
    from tuner.targets.cpu.callable import load_callable

    kernel: Callable[..., object] = load_callable(problem, trial.script_text, trial.threads)
    return kernel


def _code(_target: TargetName, problem: Problem, script: Script) -> str:
    from tuner.targets.cpu.compiler import CpuCompiler

    return str(CpuCompiler().compile(problem, script).host_code)


def _assembly(code: str, _program: KernelProgram | None) -> str:
    from tuner.targets.cpu.assembly import assembly

    return assembly(code)


def _require_types(problem: Problem, _target: TargetName) -> None:
    if problem.dtype not in DTYPES:
        raise UsageError(f"dtype: found {problem.dtype!r}, allowed {', '.join(DTYPES)} {GPUS_TAKE_IT}")


KIND = TargetKind(
    name="cpu",
    status=_status,
    outcomes=OutcomeSource(
        machine=lambda _target: host_machine(),
        compiler=_compiler,
        plan=strategy_space.plan,
        bind=strategy_space.bind,
        bench=child_bench(_children),
        baseline=_baseline,
        roofline=_roofline,
        children=_children,
        times_processors=True,
    ),
    source=_source,
    load=_load,
    code=_code,
    assembly=_assembly,
    require_types=_require_types,
    programs=ProgramSupport(),
    sources=CPU_SOURCES,
    described=described_cpu(_source, _assembly, _require_types),
    details=tuple(PROCESSORS),
)
