"""The kernels of a C library for CPUs: entries compiled, their functions named, where each thread begins."""

import math
from dataclasses import dataclass, replace

from tuner.core.errors import CandidateError, TunerError
from tuner.core.problem import Problem
from tuner.core.target import Partition, Script
from tuner.library.c.code_target import CodeTarget, code_target
from tuner.library.c.functions import CFunction, function_of
from tuner.library.entry import LibraryEntry
from tuner.mlir.cpu.joined_modules import ModulePart
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.payload.cpu import element_offsets
from tuner.targets.cpu.compiler import CpuCompiler


@dataclass(frozen=True)
class KernelShare:
    """The share of one thread of a kernel: its function, and the bytes from each operand's start."""

    symbol: str
    a: int
    b: int
    bias: int
    c: int


@dataclass(frozen=True)
class CpuKernel:
    """A compiled entry: what runs it, where, and the module that its functions are in."""

    entry: LibraryEntry
    function: CFunction
    target: CodeTarget
    shares: tuple[KernelShare, ...]  # one per thread
    module: ModulePart


def compile_kernels(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[CpuKernel, ...]:
    """Returns the kernels of entries of CPUs, in their order. Nothing of them runs here.

    Of entries that C code could not tell apart (equal sizes, instruction sets, threads), the fastest stays.
    Raises TunerError for an entry that does not compile.
    """
    compiler = CpuCompiler()
    found: dict[tuple[object, ...], CpuKernel] = {}
    for number, entry in enumerate(sorted(entries, key=_rank)):
        kernel = _compiled(compiler, entry, f"{prefix}_{number}_", function_of(entry.problem, prefix))
        key = (kernel.function, entry.problem.extents, kernel.target.needs, len(kernel.shares))
        found.setdefault(key, kernel)
    return tuple(found.values())


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    """Returns what entries are sorted by: sizes, then the time, which is of one machine or of several."""
    time_s = math.inf if entry.median_s is None else entry.median_s
    return (replace(entry.problem, sizes=(1, 1, 1), batch=1).key, entry.problem.extents, time_s)


def _compiled(compiler: CpuCompiler, entry: LibraryEntry, number: str, function: CFunction) -> CpuKernel:
    problem = entry.problem
    try:
        artifact = compiler.compile(problem, Script.of(entry.script))
    except CandidateError as error:
        raise TunerError(f"trial {entry.trial}: {problem.key}: {error}") from error
    target = code_target(problem, entry.machine, instructions_needed(artifact.host_code))
    prefix = f"{number}{problem.dtype}_{problem.layout}_{problem.shape}_"
    shares = tuple(_share(problem, partition, prefix) for partition in artifact.partitions)
    module = ModulePart(artifact.host_code, prefix, target.processor, target.features)
    return CpuKernel(entry, function, target, shares, module)


def _share(problem: Problem, partition: Partition, prefix: str) -> KernelShare:
    a, b, *bias, c = element_offsets(problem, partition)
    of_input, of_output = problem.input_bytes, problem.output_bytes
    return KernelShare(
        symbol=prefix + partition.called,
        a=a * of_input,
        b=b * of_input,
        bias=sum(bias) * of_output,
        c=c * of_output,
    )
