"""The target ``cpu`` (this machine's processor), and targets ``cpu:NAME`` of other processors."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tuner.core.candidate import CPU, TargetName
from tuner.core.dtypes import CPU_DTYPES
from tuner.core.errors import TunerError, UsageError
from tuner.core.gpu_code import KernelProgram
from tuner.core.interfaces import FINAL_EFFORT, Script, fastest_baseline
from tuner.core.machine import Machine, Roofline
from tuner.core.problem import Problem, TextProblem
from tuner.core.processors import PROCESSORS, instruction_sets_of, peak_text, processor_of
from tuner.core.runs import Baseline, LibraryTime, RunSettings, StoredTrial
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.mlir.fingerprint import CPU_SOURCES, sources_sha256
from tuner.payload.cpu import partitions_in, payload_mlir
from tuner.runtime.cpu.host import describe_machine, has_refused_tiles, own_flags, processors
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text
from tuner.runtime.workers.protocol import REFERENCE_FLOP_PER_S, Factory, Limits
from tuner.runtime.workers.services import library_environment
from tuner.runtime.workers.worker import call_in_child, child_memory_bytes
from tuner.targets.children import (
    child_runner,
    child_runners,
    measure_cpu_baseline,
    measure_cpu_roofline,
    untimed_measurement,
)
from tuner.targets.cpu.baseline_libraries import (
    BEST,
    LIBRARIES,
    baseline_environment,
    chosen_libraries,
    recorded_library,
    widened_note,
)
from tuner.targets.interface import (
    BaselineChoice,
    MeasurementBackend,
    Plan,
    ProgramSupport,
    RunnerChildren,
    TargetBackend,
    TargetStatus,
)
from tuner.targets.run_plan import bind, plan

NO_CLOCK = "code for another processor is not timed"
CROSS_COMPILES = f"compiles for {', '.join(PROCESSORS)}; verifies what this processor can run of it, no times"


def _cross_children(target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
    evaluator = "tuner.targets.cpu.evaluator:CrossCompiledEvaluator"
    return RunnerChildren(
        compiler=Factory("tuner.targets.cpu.compiler:CrossCompiler", (target.detail,)),
        evaluator=Factory(evaluator, (threads, processors(threads))),
        limits=Limits(memory_bytes=child_memory_bytes(problem)),
        environment=library_environment(1),  # the other cores compile
    )


def _cross_load(
    _problem: Problem, trial: StoredTrial, _program: KernelProgram | None
) -> Callable[..., object]:
    raise UsageError(f"trial {trial.id}: is code for another processor, {trial.record.target.detail}")


def _cross_code(target: TargetName, problem: Problem, script: Script) -> str:
    from tuner.targets.cpu.compiler import CpuCompiler, CrossCompiler  # loads MLIR

    return CrossCompiler(target.detail).code_of(CpuCompiler().compile(problem, script))


BASELINE_TIMEOUT_S = 120.0  # in addition to the float64 reference
# to load a fusion and to evaluate its draws by numpy, which is slow for some functions
FUSION_TIMEOUT_S = 20.0
F16C = "f16c"  # flag of /proc/cpuinfo
GPUS_TAKE_IT = "on target cpu; cuda and simulator take it"


def host_machine() -> Machine:
    """Returns this machine, described from /proc and /sys."""
    return describe_machine()


def _status() -> TargetStatus:
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


def _evaluation_timeout_s(problem: Problem) -> float:
    return FUSION_TIMEOUT_S if isinstance(problem, TextProblem) else Limits.evaluation_timeout_s


def _children(choice: str, _target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
    return RunnerChildren(
        compiler=Factory("tuner.targets.cpu.compiler:CpuCompiler"),
        evaluator=Factory(
            "tuner.targets.cpu.evaluator:child_evaluator", (threads, processors(threads), choice)
        ),
        limits=Limits(
            evaluation_timeout_s=_evaluation_timeout_s(problem),
            memory_bytes=child_memory_bytes(problem),
            libraries=len(LIBRARIES) if choice == BEST or problem.weights else 1,
        ),
        # one thread for the float64 reference: more would spin while kernels are timed
        environment=library_environment(1),
    )


def _baseline(choice: str, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
    # each library alone, in a process of its own
    libraries = chosen_libraries(choice, problem)
    if not libraries:
        able = [name for name, library in LIBRARIES.items() if library.multiplies(problem)]
        raise TunerError(f"none is installed of {', '.join(able)}" if able else "no library has such weights")
    timeout_s = BASELINE_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
    timed: list[tuple[str, Baseline]] = []
    failed: list[LibraryTime] = []
    with TimingLock(CPU, holder_text(problem), wait).held():
        for library in libraries:
            work = partial(measure_cpu_baseline, problem, threads, FINAL_EFFORT, seed, library)
            environment = baseline_environment(library, threads)
            try:
                found = call_in_child("baseline", work, timeout_s, environment=environment, is_named=False)
                timed.append((library, found))
            except TunerError as error:
                failed.append(LibraryTime(library, "", failure=str(error)))
    fastest = fastest_baseline(timed, failed)
    if fastest is None:
        raise TunerError("; ".join(f"{each.library}: {each.failure}" for each in failed))
    return fastest


def _roofline(problem: Problem, threads: int, wait: LockWait) -> Roofline:
    work = partial(measure_cpu_roofline, problem.multiplied_dtype, threads, host_machine())
    with TimingLock(CPU, holder_text(problem), wait).held():
        return call_in_child("roofline", work, BASELINE_TIMEOUT_S)


def _source(problem: Problem, script: str) -> str:
    if isinstance(problem, TextProblem):
        return problem.text
    return payload_mlir(problem, partitions_in(script, problem))


def _load(problem: Problem, trial: StoredTrial, _program: KernelProgram | None) -> Callable[..., object]:
    from tuner.targets.cpu.callables import load_callable  # loads MLIR

    if not problem.runs_alone:
        raise UsageError(f"{problem.key}: a fusion is a part of a program, and runs with it")
    kernel: Callable[..., object] = load_callable(problem, trial.script_text, trial.threads, trial.summary)
    return kernel


def _code(_target: TargetName, problem: Problem, script: Script) -> str:
    from tuner.targets.cpu.compiler import CpuCompiler  # loads MLIR

    return str(CpuCompiler().compile(problem, script).host_code)


def _assembly(code: str, _program: KernelProgram | None) -> str:
    from tuner.targets.cpu.compiler import assembly  # loads MLIR

    return assembly(code)


def _require_types(problem: Problem, target: TargetName) -> None:
    if problem.dtype not in CPU_DTYPES:
        raise UsageError(f"dtype: found {problem.dtype!r}, allowed {', '.join(CPU_DTYPES)} {GPUS_TAKE_IT}")
    if not target.detail:  # all described processors convert f16
        require_conversions(problem, own_flags())


def require_conversions(problem: Problem, flags: set[str]) -> None:
    """Raises UsageError for f16 on a processor whose ``flags`` lack f16c, which converts it to f32."""
    if "f16" in (problem.dtype, problem.result_dtype) and F16C not in flags:
        raise UsageError(f"dtype f16: needs the instructions {F16C}, which this processor does not offer")


def _plan(choice: str, settings: RunSettings, machine: Machine) -> Plan:
    planned = plan(settings, machine)
    note = widened_note(choice, settings.problem)
    return replace(planned, notes=(*planned.notes, note)) if note else planned


def _measurement(choice: str) -> MeasurementBackend:
    children = partial(_children, choice)
    return MeasurementBackend(
        machine=lambda _target: host_machine(),
        compiler=lambda _target: cpu_compiler(),  # no method of CpuCompiler, whose module imports MLIR
        plan=partial(_plan, choice),
        bind=bind,
        runner=child_runner(children),
        runners=child_runners(children),
        baseline=partial(_baseline, choice),
        roofline=_roofline,
        children=children,
        times_processors=True,
    )


CROSS_COMPILED = TargetBackend(
    name=CPU,
    status=lambda: TargetStatus(f"{CPU}:NAME", True, CROSS_COMPILES, is_timed=False),
    measurement=untimed_measurement(
        lambda target: processor_of(target.detail).machine,
        lambda _target: replace(cpu_compiler(), pipeline_sha256=sources_sha256(CPU_SOURCES)),
        _cross_children,
        NO_CLOCK,
    ),
    source=_source,
    load=_cross_load,
    code=_cross_code,
    assembly=_assembly,
    require_types=_require_types,
    sources=CPU_SOURCES,
)
KIND = TargetBackend(
    name=CPU,
    status=_status,
    measurement=_measurement(""),
    source=_source,
    load=_load,
    code=_code,
    assembly=_assembly,
    require_types=_require_types,
    programs=ProgramSupport(),
    sources=CPU_SOURCES,
    cross_compiled=CROSS_COMPILED,
    details=tuple(PROCESSORS),
    baselines=BaselineChoice(chosen_libraries, _measurement, recorded_library),
)
