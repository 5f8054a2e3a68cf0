"""The target ``cpu`` (this machine's processor), and targets ``cpu:NAME`` of other processors."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import final

from tuner.core.candidate import CPU, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.dtypes import CPU_DTYPES, TILE_DTYPES, unsupported_type
from tuner.core.errors import TunerError, UsageError, install_extra
from tuner.core.instruction_sets import NO_ISA, X86_64, Architecture
from tuner.core.interfaces import FINAL_EFFORT, Script, fastest_baseline
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.processors import PROCESSORS, instruction_sets_of, processor_of
from tuner.core.roofline import Roofline, peak_text
from tuner.core.runs import Baseline, Compiler, LibraryTime, RunSettings
from tuner.core.serialization import count_text
from tuner.core.trials import StoredTrial
from tuner.mlir.cpu.pipeline import cpu_compiler
from tuner.mlir.fingerprint import CPU_SOURCES, sources_sha256
from tuner.runtime.cpu.host import (
    describe_machine,
    has_refused_tiles,
    offers,
    own_architecture,
    own_flags,
    processors,
)
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text
from tuner.runtime.workers.limits import REFERENCE_FLOP_PER_S, Limits
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import library_environment
from tuner.runtime.workers.worker import call_in_child, child_memory_bytes
from tuner.targets.children import measure_cpu_baseline, measure_cpu_roofline
from tuner.targets.compiled_target import CompiledTarget
from tuner.targets.cpu.baseline_libraries import (
    BEST,
    LIBRARIES,
    baseline_environment,
    chosen_libraries,
    limited_environment,
    recorded_library,
    widened_note,
)
from tuner.targets.cpu.llvm_tools import ARM, missing_tools, require_tools
from tuner.targets.run_plan import plan
from tuner.targets.target import (
    BaselineChoice,
    HostPrograms,
    Plan,
    RunnerChildren,
    Target,
    TargetStatus,
)

NO_CLOCK = "code for another processor is not timed"
VERIFIES = "verifies what this processor can run of it, no times"
NOT_HERE = "code for x86-64 is compiled on x86-64 alone"
BASELINE_TIMEOUT_S = 120.0  # in addition to the float64 reference
# to load a fusion and to evaluate its draws by numpy, which is slow for some functions
FUSION_TIMEOUT_S = 20.0
# flags of /proc/cpuinfo
F16C = "f16c"
ASIMD = "asimd"  # NEON, which converts f16
GPUS_TAKE_IT = "on target cpu; cuda and simulator take it"


class CpuCode(CompiledTarget):
    """Base class of the targets ``cpu`` and ``cpu:NAME``: their types, sources and assembly."""

    name = CPU
    sources = CPU_SOURCES

    def require_types(self, problem: Problem, target: TargetName) -> None:
        allowed = (*CPU_DTYPES, *TILE_DTYPES)
        if problem.dtype not in allowed:
            raise unsupported_type(problem.dtype, allowed, GPUS_TAKE_IT)
        if not target.detail:  # all described processors convert f16
            require_conversions(problem, own_flags())

    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        if not target.detail:
            return super().code(target, problem, script)
        from tuner.targets.cpu.compiler import CpuCompiler, CrossCompiler  # loads MLIR

        return CrossCompiler(target.detail).code_of(CpuCompiler().compile(problem, script))

    def assembly(self, code: str, program: KernelCode | None) -> str:
        from tuner.targets.cpu.compiler import assembly  # loads MLIR

        return assembly(code)


@final
class CrossCpu(CpuCode):
    """The target ``cpu:NAME`` of a processor that has more than this one, or other instructions.

    Verifies code for that processor if this one can run it; times nothing.
    """

    def status(self) -> TargetStatus:
        own = own_architecture()
        here = [name for name, processor in PROCESSORS.items() if processor.architecture is own]
        others = [name for name, processor in PROCESSORS.items() if _is_foreign(processor.architecture)]
        without = ""
        if others and missing_tools():
            without = f"; for {', '.join(others)} after {install_extra(ARM)}"
        else:
            here += others
        timed = [name for name in here if offers(PROCESSORS[name])]
        compiled = [name for name in here if name not in timed]
        parts = []
        if timed:
            parts.append(f"times {', '.join(timed)}")
        if compiled:
            parts.append(f"compiles for {', '.join(compiled)}{without}; {VERIFIES}")
        reason = "; ".join(parts)
        return TargetStatus(f"{CPU}:NAME", True, reason, is_timed=False)

    def machine(self, target: TargetName) -> Machine:
        processor = processor_of(target.detail)
        architecture = processor.architecture
        what = f"target {CPU}:{target.detail}"
        if _is_foreign(architecture):
            require_tools(what, architecture)
        elif architecture is not own_architecture():
            raise UsageError(f"{what}: {NOT_HERE}")
        return processor.machine

    def compiler(self, target: TargetName) -> Compiler:
        return replace(cpu_compiler(), pipeline_sha256=sources_sha256(CPU_SOURCES))

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        evaluator = "tuner.targets.cpu.evaluator:CrossCompiledEvaluator"
        return RunnerChildren(
            compiler=Factory("tuner.targets.cpu.compiler:CrossCompiler", (target.detail,)),
            evaluator=Factory(evaluator, (threads, processors(threads))),
            limits=Limits(memory_bytes=child_memory_bytes(problem)),
            environment=library_environment(1),  # the other cores compile
        )

    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        raise TunerError(NO_CLOCK)

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        raise TunerError(NO_CLOCK)

    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        raise _of_another_processor(trial)


def _of_another_processor(trial: StoredTrial) -> UsageError:
    return UsageError(f"trial {trial.id}: is code for another processor, {trial.record.target.detail}")


def _is_foreign(architecture: Architecture) -> bool:
    """Returns whether LLVM's tools compile for ``architecture`` here; False for this machine's own."""
    return own_architecture() is X86_64 and architecture is not X86_64


def host_machine(limit: str = "") -> Machine:
    """Returns this machine, described from /proc and /sys; ``limit``: as of ``describe_machine``."""
    return describe_machine(limit)


def require_conversions(problem: Problem, flags: set[str]) -> None:
    """Raises UsageError for f16 if the processor's ``flags`` lack conversions to f32: f16c, NEON.

    ``flags``: as in /proc/cpuinfo.
    """
    if "f16" in (problem.dtype, problem.result_dtype) and not flags & {F16C, ASIMD}:
        raise UsageError(f"dtype f16: needs the instructions {F16C}, which this processor does not offer")


@final
class CpuLibraries(BaselineChoice):
    """The choice of a matmul library on this processor as the baseline (``tuner tune --baseline``).

    ``limit``: name of a lesser processor that libraries are limited to, "" for this one.
    """

    def __init__(self, limit: str = "") -> None:
        self._limit = limit

    def require(self, choice: str, problem: Problem) -> None:
        chosen_libraries(choice, problem, self._limit)

    def target(self, choice: str) -> Target:
        return Cpu(choice, self._limit)

    def recorded(self, name: str, problem: Problem) -> str:
        return recorded_library(name, problem)


@final
class Cpu(CpuCode):
    """The target ``cpu``, this machine's processor; also ``cpu:NAME`` of a lesser one, whose code runs here.

    ``library``: baseline of the user's choice, "" for the default. ``limit``: name of a lesser processor that
    code, search space and libraries are limited to, "" for this one.
    """

    cross_compiled = CrossCpu()
    details = tuple(PROCESSORS)
    times_processors = True

    def __init__(self, library: str = "", limit: str = "") -> None:
        self._library = library
        self._limit = limit
        self.baselines = CpuLibraries(limit)
        self.programs = None if limit else HostPrograms()

    def of_detail(self, detail: str) -> Target:
        if detail in PROCESSORS and offers(PROCESSORS[detail]):
            return Cpu(self._library, detail)
        return super().of_detail(detail)

    def status(self) -> TargetStatus:
        machine = host_machine(self._limit)
        if machine.isa == NO_ISA:
            return TargetStatus("cpu", False, f"{machine.processor} has {own_architecture().requires}")
        facts = (
            f"{machine.name}, {count_text(machine.physical_cores, 'core')}",
            f"has {', '.join(instruction_sets_of(machine))}",
            *["has AMX, but the operating system refuses it"] * has_refused_tiles(),
            f"peaks: {peak_text(machine)}",
        )
        return TargetStatus("cpu", True, "; ".join(facts))

    def machine(self, target: TargetName) -> Machine:
        return host_machine(self._limit)

    def compiler(self, target: TargetName) -> Compiler:
        return cpu_compiler()  # no method of CpuCompiler, whose module imports MLIR

    def plan(self, settings: RunSettings, machine: Machine) -> Plan:
        planned = plan(settings, machine)
        note = widened_note(self._library, settings.problem, self._limit)
        if note:
            return replace(planned, notes=(*planned.notes, note))
        return planned

    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        return RunnerChildren(
            compiler=Factory("tuner.targets.cpu.compiler:CpuCompiler"),
            evaluator=Factory(
                "tuner.targets.cpu.evaluator:child_evaluator", (threads, processors(threads), self._library)
            ),
            limits=Limits(
                evaluation_timeout_s=FUSION_TIMEOUT_S if problem.text else Limits.evaluation_timeout_s,
                memory_bytes=child_memory_bytes(problem),
                libraries=len(LIBRARIES) if self._library == BEST or problem.weights else 1,
            ),
            # one thread for the float64 reference: more would spin while kernels are timed
            environment=limited_environment(1, self._limit),
        )

    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        # each library alone, in a process of its own
        libraries = chosen_libraries(self._library, problem, self._limit)
        if not libraries:
            able = [name for name, library in LIBRARIES.items() if library.multiplies(problem)]
            raise TunerError(
                f"none is installed of {', '.join(able)}" if able else "no library has such weights"
            )
        timeout_s = BASELINE_TIMEOUT_S + problem.flop / REFERENCE_FLOP_PER_S
        timed: list[tuple[str, Baseline]] = []
        failed: list[LibraryTime] = []
        with TimingLock(CPU, holder_text(problem), wait).held():
            for library in libraries:
                work = partial(measure_cpu_baseline, problem, threads, FINAL_EFFORT, seed, library)
                environment = baseline_environment(library, threads, self._limit)
                try:
                    baseline = call_in_child(
                        "baseline", work, timeout_s, environment=environment, is_named=False
                    )
                    timed.append((library, baseline))
                except TunerError as error:
                    failed.append(LibraryTime(library, "", failure=str(error)))
        fastest = fastest_baseline(timed, failed)
        if fastest is None:
            raise TunerError("; ".join(f"{tried.library}: {tried.failure}" for tried in failed))
        return fastest

    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        machine = host_machine(self._limit)
        work = partial(measure_cpu_roofline, problem.multiplied_dtype, threads, machine)
        environment = limited_environment(threads, self._limit)
        with TimingLock(CPU, holder_text(problem), wait).held():
            return call_in_child("roofline", work, BASELINE_TIMEOUT_S, environment=environment)

    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        from tuner.targets.cpu.callables import load_callable  # loads MLIR

        if self._limit:
            raise _of_another_processor(trial)
        if not problem.runs_alone:
            raise UsageError(f"{problem.key}: a fusion is a part of a program, and runs with it")
        kernel: Callable[..., object] = load_callable(
            problem, trial.script_text, trial.threads, trial.summary
        )
        return kernel


THIS_CPU = Cpu()
