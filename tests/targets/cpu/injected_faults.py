"""Kernels written by hand that do harm, a target that takes them as they are, and their child."""

import hashlib
import os
import resource
import signal
from collections.abc import Callable
from functools import partial

import numpy as np

from tests.forwarding import ForwardingTarget
from tests.texts import filled, text_beside
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering
from tuner.payload.partitions import partition
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

PROBLEM = Matmul(4, 16, 8)
EFFORT = Effort(budget_s=0.01, min_samples=3, max_samples=6)
STORE_NULL = "%null = llvm.mlir.zero : !llvm.ptr\n llvm.store volatile %one, %null : i64, !llvm.ptr"
part = partial(text_beside, __file__)
CHANGE_ONE = part("CHANGE_ONE")


def _store(row: int, column: int, value: str) -> str:
    return filled(__file__, "STORE", row=row, column=column, value=value)


def _from_call(number: int, deed: str) -> str:
    return filled(__file__, "FROM_CALL", number=number, deed=deed)


DEEDS = {  # name -> what the kernel does beside its work, and what it declares
    "honest": ("", ""),
    "nan": (_store(3, 15, "0x7FC00000"), ""),
    "infinite": (_store(0, 0, "0x7F800000"), ""),
    "one_element": (CHANGE_ONE, ""),
    "after_c": (_store(4, 0, "1.0"), ""),
    "before_c": (_store(0, -1, "1.0"), ""),
    "null": (STORE_NULL, ""),
    "abort": ("llvm.call @abort() : () -> ()", "llvm.func @abort()"),
    "exit": (part("EXIT"), "llvm.func @_exit(i32)"),
    "late_crash": (_from_call(3, STORE_NULL), ""),
    "late_wrong": (_from_call(2, CHANGE_ONE), ""),
    "changes_a": (part("CHANGE_A"), ""),
    "hang": (part("HANG"), ""),
    "hog": (part("HOG"), "llvm.func @malloc(i64) -> !llvm.ptr"),
    "prints": (
        "%text = llvm.mlir.addressof @said : !llvm.ptr\n llvm.call @puts(%text) : (!llvm.ptr) -> i32",
        'llvm.mlir.global internal constant @said("{}\\00")\n llvm.func @puts(!llvm.ptr) -> i32',
    ),
    "unresolved": ("llvm.call @nowhere() : () -> ()", "llvm.func @nowhere()"),
}


def code_of(deed: str) -> str:
    if deed == "not_written":  # returns at once
        head = "llvm.func @matmul(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr)"
        return f"module {{\n  {head} attributes {{llvm.emit_c_interface}} {{\n    llvm.return\n  }}\n}}\n"
    if deed == "no_entry":
        return code_of("not_written").replace("@matmul", "@other")
    text, declarations = DEEDS[deed]
    with transform.new_context(), ir.Location.unknown():
        kernel = filled(__file__, "KERNEL", deed=text, declarations=declarations)
        return lowering.lower_to_llvm(transform.parse(kernel, deed))


class DrillTarget(ForwardingTarget):
    """Both ports of the CPU, given finished code in the place of scripts."""

    def __init__(self, threads: int) -> None:
        super().__init__(CpuCompiler(), CpuEvaluator(threads))

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Takes LLVM-dialect text as it is; what else there is goes the way of a script."""
        if "llvm.func @" not in script.text:
            return super().compile(problem, script)
        sha256 = hashlib.sha256(script.text.encode()).hexdigest()
        return Artifact(KernelCode.of_host(script.text), sha256, partition(problem, 1, "none", 1))


class ForkedVerification:
    """The service of a child that verifies each kernel in a fork of itself: a fault costs no start."""

    def verify(self, problem: Problem, artifact: Artifact, is_timed: bool = False) -> str:
        """Returns how verification and timing end: "right", the reason of a failure, or a signal's name."""
        evaluator, rng = CpuEvaluator(1), np.random.default_rng(0)
        loaded = evaluator.load(problem, artifact)

        def work() -> None:
            evaluator.verify(problem, loaded, rng)
            if is_timed:
                evaluator.measure(problem, loaded, EFFORT, rng)

        return in_fork(work)


def in_fork(work: Callable[[], object]) -> str:
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            work()
            os.write(writer, b"right")
        except CandidateError as error:
            os.write(writer, f"{error.stage.value}: {error.reason}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as outcome:
        text = outcome.read()
    _, status = os.waitpid(process, 0)
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else text
