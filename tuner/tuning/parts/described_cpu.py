"""Targets ``cpu:NAME``: the processor of another machine. Candidates are verified where that is possible."""

from collections.abc import Callable
from dataclasses import replace

from tuner.core.described_processors import PROCESSORS, processor_of
from tuner.core.errors import UsageError
from tuner.core.kernel_program import KernelProgram
from tuner.core.machine import Compiler, Machine
from tuner.core.problem import Problem
from tuner.core.runs import StoredTrial
from tuner.core.target import Script
from tuner.core.target_name import CPU, TargetName
from tuner.mlir.fingerprint import DESCRIBED_CPU_SOURCES, sources_sha256
from tuner.tuning.outcome_source import BenchChildren
from tuner.tuning.parts.child_call import child_memory_bytes
from tuner.tuning.parts.untimed import untimed_outcomes
from tuner.tuning.target_kind import TargetKind, TargetStatus

NO_CLOCK = "code for another processor is not timed"


def described_cpu(
    source: Callable[[Problem, str], str],
    assembly: Callable[[str, KernelProgram | None], str],
    require_types: Callable[[Problem, TargetName], None],
) -> TargetKind:
    """Returns the kind of targets ``cpu:NAME``; the arguments are the functions of the kind ``cpu``.

    NAME is one of ``tuner.core.described_processors.PROCESSORS``.
    """
    return TargetKind(
        name=CPU,
        status=_status,
        outcomes=untimed_outcomes(_machine, _compiler, _children, NO_CLOCK),
        source=source,
        load=_load,
        code=_code,
        assembly=assembly,
        require_types=require_types,
        sources=DESCRIBED_CPU_SOURCES,
    )


def _status() -> TargetStatus:
    reason = f"compiles for {', '.join(PROCESSORS)}; verifies what this processor can run of it, no times"
    return TargetStatus(f"{CPU}:NAME", True, reason, is_timed=False)


def _machine(target: TargetName) -> Machine:
    return processor_of(target.detail).machine


def _compiler(_target: TargetName) -> Compiler:
    from tuner.mlir.cpu.pipeline import cpu_compiler

    return replace(cpu_compiler(), pipeline_sha256=sources_sha256(DESCRIBED_CPU_SOURCES))


def _children(target: TargetName, problem: Problem, threads: int) -> BenchChildren:
    from tuner.runtime.cpu.describe_host import processors
    from tuner.workers.library_environment import library_environment
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory

    evaluator = "tuner.targets.cpu.described_evaluator:DescribedEvaluator"
    return BenchChildren(
        compiler=Factory("tuner.targets.cpu.described_compiler:DescribedCompiler", (target.detail,)),
        evaluator=Factory(evaluator, (threads, processors(threads))),
        limits=Limits(memory_bytes=child_memory_bytes(problem)),
        environment=library_environment(1),  # the other cores compile
    )


def _load(_problem: Problem, trial: StoredTrial, _program: KernelProgram | None) -> Callable[..., object]:
    raise UsageError(f"trial {trial.id}: is code for another processor, {trial.record.target.detail}")


def _code(target: TargetName, problem: Problem, script: Script) -> str:
    from tuner.targets.cpu.compiler import CpuCompiler
    from tuner.targets.cpu.described_compiler import DescribedCompiler

    return DescribedCompiler(target.detail).code_of(CpuCompiler().compile(problem, script))
