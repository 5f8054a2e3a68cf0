"""Compiles scripts to LLVM dialect for this processor; code that would crash the JIT is rejected."""

import hashlib
import time
from typing import final

from tuner.core.errors import Stage, failing_at
from tuner.core.grouped_program import packings_comment
from tuner.core.problem import Problem
from tuner.core.target import AbstractCompiler, Artifact, Script
from tuner.mlir import bindings, interpreter
from tuner.mlir.cpu import jit_guards, lowering
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.mlir.cpu.group_code import compile_group
from tuner.payload.cpu import matrix_bytes, partitions_in, payload_mlir


@final
class CpuCompiler(AbstractCompiler):
    """A compiler of scripts to LLVM-dialect text for CPUs; loading the text makes machine code of it."""

    def __init__(self, *, emulates: bool = False) -> None:
        """Takes whether AMX tiles and dot products of bytes become vector code, as ``lower_to_llvm`` does."""
        self._emulates = emulates
        self._context: bindings.ir.Context | None = None

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact: LLVM-dialect text of the transformed payload, and thread partitions.

        Raises CandidateError where binding, the script or the lowering fails, and for code that would crash
        the JIT.
        """
        if problem.group:
            return self._compile_group(problem, script)
        with failing_at(Stage.BIND):
            partitions = partitions_in(script.text, problem)
        start = time.perf_counter()
        self._context = self._context or interpreter.new_context()
        with self._context, bindings.ir.Location.unknown():
            module = interpreter.parse(payload_mlir(problem, partitions), "payload")
            interpreter.apply_script(module, interpreter.parse(script.text, "script"))
            transformed = time.perf_counter()
            code = lowering.lower_to_llvm(module, emulates=self._emulates)
        code = with_batch_loops(code, partitions, matrix_bytes(problem))
        jit_guards.reject_what_the_jit_cannot_take(code)
        stages = (("transform", transformed - start), ("lower", time.perf_counter() - transformed))
        placed = repr(partitions).replace("Partition(", "Panel(")  # as in the hashes that are stored
        digest = hashlib.sha256((code + placed).encode()).hexdigest()
        return Artifact(code, digest, partitions, stages)

    def _compile_group(self, problem: Problem, script: Script) -> Artifact:
        """Returns the artifact of a group of operations; its code begins with how weights are packed."""
        start = time.perf_counter()
        self._context = self._context or interpreter.new_context()
        with self._context, bindings.ir.Location.unknown():
            compiled = compile_group(problem.group, script.text, emulates=self._emulates)
        code = packings_comment(compiled.packings) + compiled.llvm_text
        jit_guards.reject_what_the_jit_cannot_take(code)
        digest = hashlib.sha256(code.encode()).hexdigest()
        return Artifact(code, digest, (), (("lower", time.perf_counter() - start),))
