"""Scripts and libraries timed interleaved on this machine: against each other, and per entry of a library.

A library is timed on a program on tensors, to which it is applied, lowered to LLVM dialect for this
processor:

    func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) -> tensor<4x16xf32>
  becomes
    llvm.func @f(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr)

With bare pointers a function cannot return a buffer: malloc's address is returned, not the aligned one.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tuner.analysis.slowdown import InterleavedSession, PairedSlowdown, paired_slowdown
from tuner.core.compiled_code import KernelCode
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem
from tuner.mlir import bindings, transform
from tuner.mlir.cpu.lowering import lower_to_llvm, reject_unjittable
from tuner.mlir.ir.memrefs import copy_by_loops
from tuner.mlir.passes import run_passes
from tuner.payload.cpu import maps_attribute, tensor_program
from tuner.runtime.timing_lock import TimingLock, holder_text
from tuner.runtime.workers.worker import call_in_child, child_memory_bytes
from tuner.space.scripts.matchers import contractions_of
from tuner.targets.cpu.compiler import CpuCompiler

RESULTS_TO_ARGUMENTS = (
    "builtin.module(buffer-results-to-out-params{modify-public-functions=true hoist-static-allocs=true})"
)
Value = TypeVar("Value")
SESSIONS = 3
EFFORT = Effort(budget_s=0.05, min_samples=12, max_samples=60)  # of each code in a session
TIMEOUT_S = 240.0
BATCH = 4  # matrices of the batch that a matmul's schedule is timed on


def lowered(module: bindings.ir.Module) -> str:
    """Lowers a bufferized module to LLVM dialect for the JIT, in place; returns its text.

    Raises CandidateError if a pass fails, or if the JIT could not link the code.
    """
    run_passes(module, RESULTS_TO_ARGUMENTS)
    copy_by_loops(module)
    code = lower_to_llvm(module)
    reject_unjittable(code)
    return code


def slower_by(problem: Problem, script: str, reference: str) -> PairedSlowdown:
    """Returns how much longer a bound script takes than a reference script, on one thread.

    Raises TunerError if one of the two fails to compile, to run or to verify.
    """
    return _in_child(problem, partial(_script_slowdown, problem, script, reference))


def _script_slowdown(problem: Problem, script: str, reference: str) -> PairedSlowdown:
    return _timed(problem, _compiled(problem, script), _compiled(problem, reference))


def _in_child(problem: Problem, work: Callable[[], Value]) -> Value:
    with TimingLock("cpu", holder_text(problem)).held():
        return call_in_child("library", work, TIMEOUT_S, child_memory_bytes(problem))


def _compiled(problem: Problem, script: str) -> Artifact:
    return CpuCompiler().compile(problem, Script.of(script))


def _timed(problem: Problem, code: Artifact, reference: Artifact) -> PairedSlowdown:
    """Times two codes in sessions, each of which loads both at new addresses, the reference twice."""
    import numpy as np

    from tuner.targets.cpu.evaluator import CpuEvaluator  # loads ml_dtypes

    sessions = []
    for seed in range(SESSIONS):
        rng = np.random.default_rng(seed)
        evaluator = CpuEvaluator(threads=1)
        loaded = tuple(evaluator.load(problem, artifact) for artifact in (reference, reference, code))
        for kernel in loaded[1:] if seed == 0 else ():
            evaluator.verify(problem, kernel, rng)
        then, again, current = evaluator.measure_together(problem, loaded, EFFORT, rng)
        sessions.append(InterleavedSession(then.samples_s, again.samples_s, current.samples_s))
    return paired_slowdown(tuple(sessions))


@dataclass(frozen=True)
class OutliningCost:
    """How much longer an entry takes in a library, as an outlined function, than its script alone does."""

    tensors: PairedSlowdown | None  # of one contraction on tensors; None for the entry of a batch
    batch: PairedSlowdown | None  # of a batch on tensors; None for a layout of which no batch is recognized


def outlining_cost(problem: Problem, script: str, library: str) -> OutliningCost:
    """Times a library of one entry against the entry's script, on each kind that it matches: matmul, batch.

    Raises TunerError if one of the two fails to compile, to run or to verify.
    """
    problems = tuple(
        replace(
            problem,
            operation=contraction.operation,
            batch=contraction.batch or (BATCH if contraction.has_batch else 1),
        )
        for contraction in contractions_of(problem)
    )
    slowdowns = _in_child(problems[0], partial(_library_slowdowns, problems, library, script))
    costs = {timed.operation: slowdown for timed, slowdown in zip(problems, slowdowns, strict=True)}
    return OutliningCost(costs.get(MATMUL), costs.get(BATCH_MATMUL))


def _library_slowdowns(problems: tuple[Problem, ...], library: str, script: str) -> list[PairedSlowdown]:
    slowdowns = []
    for problem in problems:
        alone = _compiled(problem, script)
        (partition,) = alone.partitions
        with transform.new_context(), bindings.ir.Location.unknown():
            maps = maps_attribute(problem.operation, problem.layout)
            program = tensor_program(problem, partition.called, problem.result_dtype, maps)
            module = transform.parse(program, "payload")
            transform.apply_script(module, transform.parse(library, "library"))
            code = lowered(module)
        sha256 = hashlib.sha256(code.encode()).hexdigest()
        applied = Artifact(KernelCode.of_host(code), sha256, alone.partitions)
        slowdowns.append(_timed(problem, applied, alone))
    return slowdowns
