"""Compilers of scripts for CPUs: this processor and others; object code and assembly of the result."""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import final

from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Stage, failing_at, reason_of
from tuner.core.instruction_sets import Architecture
from tuner.core.interfaces import AbstractCompiler, Artifact, Partition, Script
from tuner.core.packings import packings_comment, threads_comment, threads_in
from tuner.core.problem import Problem
from tuner.core.processors import PROCESSORS, missing_on, processor_of, refusal
from tuner.core.progress import code_generation
from tuner.mlir import bindings, transform
from tuner.mlir.bindings import execution_engine, ir
from tuner.mlir.cpu import lowering
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.mlir.cpu.llvm_modules import compiled_for
from tuner.mlir.cpu.lowering import DECLARATION, RESOLVABLE, compile_fusion
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.payload.cpu import matrix_bytes, payload_mlir
from tuner.payload.partitions import partitions_in
from tuner.runtime.cpu.host import describe_machine, own_architecture
from tuner.runtime.cpu.jit import module_for_host
from tuner.targets.cpu.llvm_tools import OBJDUMP, llvm_tool, write_foreign_object

_ADDRESS_OF_NOTHING = 1  # stands for functions that are never called: the code is only written
TIMEOUT_S = 60.0
OPTIONS = ("-d", "--no-show-raw-insn")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\s+(\S.*?)\s*$", re.MULTILINE)  # after its address
TARGET_CPU = re.compile(r'\["target-cpu", "([^"]+)"\]')
FUNCTION = re.compile(r"^[0-9a-f]+ (<.*>:)$", re.MULTILINE)


@final
class CpuCompiler(AbstractCompiler):
    """Compiles transform scripts to LLVM-dialect text for CPUs.

    Machine code is made when the text is loaded.
    """

    def __init__(self, *, emulates: bool = False) -> None:
        """``emulates``: replace AMX tiles and dot products of bytes by vector code."""
        self._emulates = emulates
        self._context: bindings.ir.Context | None = None

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact: LLVM-dialect text, its hash, and the thread partitions of the script.

        Raises CandidateError with the stage that fails, also for code that the JIT cannot link.
        """
        with failing_at(Stage.BIND):
            partitions = () if problem.text else partitions_in(script.text, problem)
        start = time.perf_counter()
        stages = []
        self._context = self._context or transform.new_context()
        with self._context, bindings.ir.Location.unknown():
            if problem.text:
                threads = threads_in(script.text)
                compiled = compile_fusion(problem.text, script.text, threads, emulates=self._emulates)
                divided = threads_comment(threads) if compiled.is_divided else ""
                code = packings_comment(compiled.packings) + divided + compiled.llvm_text
            else:
                module = transform.parse(payload_mlir(problem, partitions), "payload")
                transform.apply_script(module, transform.parse(script.text, "script"))
                lowering.bufferize_remaining_tensors(module)
                stages.append(("transform", time.perf_counter() - start))
                start = time.perf_counter()
                code = lowering.lower_to_llvm(module, emulates=self._emulates)
                code = with_batch_loops(code, partitions, matrix_bytes(problem))
        lowering.reject_unjittable(code)
        stages.append(("lower", time.perf_counter() - start))
        digest = hashlib.sha256((code + hashed_partitions(partitions)).encode()).hexdigest()
        return Artifact(KernelCode.of_host(code), digest, partitions, tuple(stages))


def hashed_partitions(partitions: tuple[Partition, ...]) -> str:
    """Returns partitions as the hash of an artifact contains them.

    Trials are stored by this hash: the text is that of the first version, and does not change with names in
    Python. Of one partition: "(Panel(entry='main', row=0, column=0, m=8, n=8, first=0, matrices=1),)"; of a
    fusion, which has none, "".
    """
    if not partitions:
        return ""
    parts = []
    for part in partitions:
        rectangle = f"entry={part.entry!r}, row={part.row}, column={part.column}, m={part.m}, n={part.n}"
        parts.append(f"Panel({rectangle}, first={part.first}, matrices={part.matrices})")
    if len(parts) == 1:
        return f"({parts[0]},)"
    return f"({', '.join(parts)})"


def write_object(
    llvm_text: str,
    file: Path,
    stage: Stage = Stage.LOAD,  # of the CandidateError where LLVM fails
    *,
    is_position_independent: bool = False,
    entry: str = "",  # a function that must compile, with all that it calls
    architecture: Architecture | None = None,  # that its "target-cpu" is of; None: this machine's
) -> None:
    """Compiles LLVM-dialect text at -O3 for its "target-cpu", else for this processor; writes an object file.

    ``is_position_independent``: whether a shared library can contain it. Raises CandidateError(``stage``) if
    LLVM rejects the text, or if ``entry`` calls a function that the JIT cannot resolve; UsageError for
    another architecture than this machine's without LLVM's tools.
    """
    if architecture not in (None, own_architecture()):
        write_foreign_object(
            llvm_text, file, architecture, stage, is_position_independent=is_position_independent
        )
        return
    try:
        with code_generation(llvm_text), ir.Context(), ir.Location.unknown():
            module = module_for_host(llvm_text)
            engine = execution_engine().ExecutionEngine(
                module, opt_level=3, enable_object_dump=True, enable_pic=is_position_independent
            )
            # functions of the C library that the JIT looks up by a wrong name: any address will do
            for name in sorted(set(DECLARATION.findall(llvm_text)) - RESOLVABLE) if entry else ():
                engine.raw_register_runtime(name, ctypes.c_void_p(_ADDRESS_OF_NOTHING))
            engine.initialize()
            if entry and not engine.raw_lookup(entry):  # compiles the module, else each function is looked up
                raise CandidateError(stage, f"function {entry!r} calls what the JIT cannot resolve")
            engine.dump_to_object_file(str(file))
    except (RuntimeError, ValueError, ir.MLIRError) as error:
        raise CandidateError(stage, reason_of(error)) from error


def object_code(llvm_text: str, entry: str) -> bytes:
    """Compiles LLVM-dialect text at -O3 and returns the object file's bytes.

    Compiles for the text's "target-cpu", else for this processor. Raises CandidateError(LOAD) if LLVM rejects
    the text, or if ``entry`` calls a function that the JIT cannot resolve.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(llvm_text, file, entry=entry)
        return file.read_bytes()


def assembly(llvm_text: str) -> str:
    """Returns the assembly of compiled LLVM-dialect text; "" if no objdump for its architecture is installed.

    Raises CandidateError(LOAD) if LLVM rejects the text.
    """
    architecture = _architecture_of(llvm_text)
    objdump: str | Path | None = llvm_tool(OBJDUMP)
    if architecture is own_architecture():
        objdump = shutil.which("objdump") or shutil.which("llvm-objdump")
    if objdump is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(llvm_text, file, architecture=architecture)
        command = [str(objdump), *OPTIONS, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return instructions(done.stdout)


def _architecture_of(llvm_text: str) -> Architecture:
    named = TARGET_CPU.search(llvm_text)
    if named and named[1] in PROCESSORS:
        return PROCESSORS[named[1]].architecture
    return own_architecture()


def instructions(listing: str) -> str:
    """Returns an objdump listing without addresses: names of functions, and indented instructions."""
    lines = (
        (match.start(), match[1] if match.re is FUNCTION else f"  {match[1]}")
        for pattern in (FUNCTION, INSTRUCTION)
        for match in pattern.finditer(listing)
    )
    return "".join(f"{line}\n" for _, line in sorted(lines))


@final
class CrossCompiler(AbstractCompiler):
    """Compiles for another processor, so that candidates can be verified here.

    An artifact's hash covers the code for the other processor. Its text is code that this processor can run,
    if need be with some instructions emulated; else the code for the other processor.
    """

    def __init__(self, processor: str) -> None:
        """``processor``: LLVM's name, such as "sapphirerapids". Raises UsageError for an unknown one."""
        self._processor = processor_of(processor)
        self._compiler = CpuCompiler()
        self._emulating = CpuCompiler(emulates=True)
        self._here = describe_machine()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact whose hash covers the code for the other processor.

        Raises CandidateError with the stage that fails; COMPILE for instructions that the processor lacks.
        """
        theirs = self._compiler.compile(problem, script)
        refused = refusal(self._processor.machine, instructions_needed(theirs.code.text))
        if refused is not None:
            raise CandidateError(Stage.COMPILE, refused.text)
        start = time.perf_counter()
        code = self.code_of(theirs)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "code.o"
            write_object(code, file, Stage.COMPILE, architecture=self._processor.architecture)
        stages = (*theirs.stage_s, ("object", time.perf_counter() - start))
        sha256 = hashlib.sha256((code + theirs.sha256).encode()).hexdigest()
        runnable = self._runnable(problem, script, theirs)
        # where neither form runs here: the other processor's code, which evaluators report as compiled only
        own = KernelCode.of_host(runnable or code)
        return replace(theirs, code=own, sha256=sha256, stage_s=stages)

    def code_of(self, artifact: Artifact) -> str:
        """Returns an artifact's LLVM-dialect text, marked to be compiled for the other processor."""
        return compiled_for(artifact.code.text, self._processor.name, self._processor.features)

    def _runnable(self, problem: Problem, script: Script, theirs: Artifact) -> str:
        if self._runs_here(theirs.code.text):
            return theirs.code.text
        try:
            emulated = self._emulating.compile(problem, script).code.text
        except CandidateError:  # no failure of the candidate, whose code is for the other processor
            return ""
        if self._runs_here(emulated):
            return emulated
        return ""

    def _runs_here(self, llvm_text: str) -> bool:
        return not missing_on(self._here, instructions_needed(llvm_text))
