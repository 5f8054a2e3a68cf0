"""The target kind ``cpu``: this machine's processor."""

from collections.abc import Callable
from functools import partial

from tuner.core.described_processors import PROCESSORS
from tuner.core.errors import TunerError, UsageError
from tuner.core.fastest_library import fastest_baseline
from tuner.core.instruction_sets import instruction_sets_of
from tuner.core.kernel_program import KernelProgram
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.peak_instructions import peak_text
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, LibraryTime, StoredTrial
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.mlir.fingerprint import CPU_SOURCES
from tuner.tuning.outcome_source import BenchChildren, OutcomeSource
from tuner.tuning.parts import strategy_space
from tuner.tuning.parts.child_bench import child_bench, child_benches
from tuner.tuning.parts.child_call import call_in_child, child_memory_bytes
from tuner.tuning.parts.child_functions import measure_cpu_baseline, measure_cpu_roofline
from tuner.tuning.parts.described_cpu import described_cpu
from tuner.tuning.target_kind import BaselineChoice, ProgramSupport, TargetKind, TargetStatus

BASELINE_TIMEOUT_S = 120.0  # in addition to the float64 reference
GROUP_TIMEOUT_S = 20.0  # to load a group and to evaluate its draws by numpy, which is slow for some functions
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


def _children(choice: str, _target: TargetName, problem: Problem, threads: int) -> BenchChildren:
    from tuner.runtime.cpu.describe_host import processors
    from tuner.workers.library_environment import library_environment
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory

    return BenchChildren(
        compiler=Factory("tuner.targets.cpu.compiler:CpuCompiler"),
        evaluator=Factory("tuner.targets.cpu.evaluator:CpuEvaluator", (threads, processors(threads), choice)),
        limits=Limits(
            evaluation_timeout_s=GROUP_TIMEOUT_S if problem.group else Limits.evaluation_timeout_s,
            memory_bytes=child_memory_bytes(problem),
            libraries=_most_libraries(choice),
        ),
        # one thread for the float64 reference: more would spin while kernels are timed
        environment=library_environment(1),
    )


def _most_libraries(choice: str) -> int:
    """Returns how many libraries a choice stands for at most."""
    from tuner.targets.cpu.baseline_libraries import BEST, LIBRARIES

    return len(LIBRARIES) if choice == BEST else 1


def _require_baseline(choice: str, problem: Problem) -> None:
    from tuner.targets.cpu.baseline_libraries import chosen_libraries

    chosen_libraries(choice, problem)


def _recorded_baseline(name: str, problem: Problem) -> str:
    from tuner.targets.cpu.baseline_libraries import recorded_library

    return recorded_library(name, problem)


def _baseline(choice: str, problem: Problem, threads: int, seed: int) -> Baseline:
    """Times the chosen libraries alone, each in a process of its own; returns the fastest.

    Raises TunerError where none works.
    """
    from tuner.targets.cpu.baseline_libraries import chosen_libraries
    from tuner.workers.timing_lock import TimingLock, holder_text

    timed: list[tuple[str, Baseline]] = []
    failed: list[LibraryTime] = []
    with TimingLock("cpu", holder_text(problem)).held():
        for library in chosen_libraries(choice, problem):
            try:
                timed.append((library, _timed_alone(library, problem, threads, seed)))
            except TunerError as error:
                failed.append(LibraryTime(library, "", failure=str(error)))
    fastest = fastest_baseline(timed, failed)
    if fastest is None:
        raise TunerError("; ".join(each.failure for each in failed))
    return fastest


def _timed_alone(library: str, problem: Problem, threads: int, seed: int) -> Baseline:
    from tuner.targets.cpu.baseline_libraries import baseline_environment
    from tuner.tuning.remeasurement import FINAL_EFFORT
    from tuner.workers.limits import REFERENCE_FLOP_PER_S

    work = partial(measure_cpu_baseline, problem, threads, FINAL_EFFORT, seed, library)
    timeout_s = BASELINE_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
    return call_in_child("baseline", work, timeout_s, environment=baseline_environment(library, threads))


def _roofline(problem: Problem, threads: int) -> Roofline:
    from tuner.workers.timing_lock import TimingLock, holder_text

    work = partial(measure_cpu_roofline, problem.dtype, threads, host_machine())
    with TimingLock("cpu", holder_text(problem)).held():
        return call_in_child("roofline", work, BASELINE_TIMEOUT_S)


def _source(problem: Problem, script: str) -> str:
    from tuner.payload.cpu import partitions_in, payload_mlir

    if problem.group:
        return problem.group
    return payload_mlir(problem, partitions_in(script, problem))


def _load(problem: Problem, trial: StoredTrial, _program: KernelProgram | None) -> Callable[..., object]:
    from tuner.targets.cpu.callable import load_callable

    if problem.group:
        raise UsageError(f"{problem.key}: a group is a part of a program, and runs with it")
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


def _outcomes(choice: str) -> OutcomeSource:
    """Returns the outcomes of runs that are compared with a choice of libraries; "": the default."""
    children = partial(_children, choice)
    return OutcomeSource(
        machine=lambda _target: host_machine(),
        compiler=_compiler,
        plan=strategy_space.plan,
        bind=strategy_space.bind,
        bench=child_bench(children),
        benches=child_benches(children),
        baseline=partial(_baseline, choice),
        roofline=_roofline,
        children=children,
        times_processors=True,
    )


KIND = TargetKind(
    name="cpu",
    status=_status,
    outcomes=_outcomes(""),
    source=_source,
    load=_load,
    code=_code,
    assembly=_assembly,
    require_types=_require_types,
    programs=ProgramSupport(),
    sources=CPU_SOURCES,
    described=described_cpu(_source, _assembly, _require_types),
    details=tuple(PROCESSORS),
    baselines=BaselineChoice(_require_baseline, _outcomes, _recorded_baseline),
)
