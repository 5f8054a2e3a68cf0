"""Compiles for the processor of another machine, and adapts the code to what this processor can run."""

import hashlib
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import final

from tuner.core.described_processors import processor_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.instruction_sets import missing_on, refusal
from tuner.core.problem import Problem
from tuner.core.target import AbstractCompiler, Artifact, Script
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.mlir.cpu.other_processor import compiled_for
from tuner.runtime.cpu.describe_host import describe_machine
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.object_code import write_object


@final
class DescribedCompiler(AbstractCompiler):
    """A compiler of scripts for a processor of ``tuner.core.described_processors``.

    LLVM makes object code for that processor, so that its errors are failures of the candidate. The artifact
    has code that this processor can run, with vectors in place of AMX tiles and VNNI dot products that it
    does not have; or, where even that cannot run, the code for the other processor.
    """

    def __init__(self, processor: str) -> None:
        """Takes LLVM's name of the processor: "sapphirerapids". Raises UsageError for an unknown one."""
        self._processor = processor_of(processor)
        self._compiler = CpuCompiler()
        self._emulating = CpuCompiler(emulates=True)
        self._here = describe_machine()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact whose hash is that of the code for the other processor.

        Raises CandidateError where binding, the script or the lowering fails, for instructions that the other
        processor does not have, and for code of which LLVM makes no object code.
        """
        theirs = self._compiler.compile(problem, script)
        refused = refusal(self._processor.machine, instructions_needed(theirs.host_code))
        if refused:
            raise CandidateError(Stage.COMPILE, refused)
        start = time.perf_counter()
        code = self.code_of(theirs)
        with tempfile.TemporaryDirectory() as folder:
            write_object(code, Path(folder) / "code.o", Stage.COMPILE)
        stages = (*theirs.stage_s, ("object", time.perf_counter() - start))
        sha256 = hashlib.sha256((code + theirs.sha256).encode()).hexdigest()
        runnable = self._runnable(problem, script, theirs)
        return replace(theirs, host_code=runnable or code, sha256=sha256, stage_s=stages)

    def code_of(self, artifact: Artifact) -> str:
        """Returns the LLVM-dialect text of an artifact of ``CpuCompiler`` for the other processor."""
        return compiled_for(artifact.host_code, self._processor.name, self._processor.features)

    def _runnable(self, problem: Problem, script: Script, theirs: Artifact) -> str:
        """Returns code of a script that this processor can run; "" where there is none.

        A failure to make such code is none of the candidate, whose code is for the other processor.
        """
        if self._runs_here(theirs.host_code):
            return theirs.host_code
        try:
            emulated = self._emulating.compile(problem, script).host_code
        except CandidateError:
            return ""
        return emulated if self._runs_here(emulated) else ""

    def _runs_here(self, llvm_text: str) -> bool:
        return not missing_on(self._here, instructions_needed(llvm_text))
