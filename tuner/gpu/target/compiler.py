"""The compiler of scripts to GPU programs, and ptxas: how it is found and run, its report and defects."""

import functools
import math
import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

from tuner.core.compiled_code import KernelCode, Resources, buffers_of, code_sha256
from tuner.core.errors import TIMED_OUT, CandidateError, Failure, MachineError, Stage, UsageError, failing_at
from tuner.core.gpu import Chip, chip_of
from tuner.core.interfaces import AbstractCompiler, Artifact, Script
from tuner.core.problem import Problem
from tuner.core.runs import Compiler
from tuner.gpu.cost_model.occupancy import (
    BlockNeeds,
    block_shared_bytes,
    blocks_per_multiprocessor,
    occupancy,
    require_launchable,
)
from tuner.gpu.mlir import lowering
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import scratch_in
from tuner.mlir import bindings, transform
from tuner.mlir.fingerprint import GPU_WHEELS, Sources, llvm_version, packages, sources_sha256, verifier_of
from tuner.runtime.wheel_tools import Tool, tool_of_wheels
from tuner.runtime.workers.processes import run_command

# Finds NVIDIA's command-line tools: in their wheels, which state a version, else on PATH.

# Tool -> the distributions that may hold it, the newest CUDA first.
DISTRIBUTIONS = {
    "ptxas": ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12"),
    "nvdisasm": ("nvidia-cuda-nvdisasm",),
    "compute-sanitizer": ("nvidia-cuda-sanitizer-api",),
}
Version = tuple[int, ...]  # (12, 6, 85)
ANY = (0, 999)
ENTRY = re.compile(r"Compiling entry function '(\S+)' for ")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?(.*)")
STATIC_SHARED = re.compile(r"(\d+) bytes smem")
# "warning : ..." and advice such as "info : (C7519) Potential Performance Loss: ..."
NOTE = re.compile(r"ptxas\s*(?:warning\s*:\s*|info\s*:\s*(?=\(C\d+\)))(.*)")
# "ptxas k.ptx, line 4; error   : ..." or "ptxas fatal   : ..."
FAULT = re.compile(r"ptxas(?:.*, (line \d+);)? *(?:error|fatal) *: (.*)")
TIMEOUT_S = 60.0  # of an assembly; the largest matmul kernels take about one second
ELF_HEADER = struct.Struct("<32xQQIHHHHHH")  # elf(5), from e_phoff
QUESTION_TIMEOUT_S = 20.0  # for --help and --version, on a busy machine


def locate(name: str) -> Tool | None:
    """Returns an executable of CUDA, such as "ptxas", from its wheel, else from PATH; None: not installed."""
    # nvidia/cu13/bin since CUDA 13, nvidia/cuda_nvcc/bin before
    in_wheel = tool_of_wheels(name, DISTRIBUTIONS[name])
    if in_wheel is not None:
        return in_wheel
    on_path = shutil.which(name)
    if on_path:
        return Tool(Path(on_path), "PATH")
    return None


@dataclass(frozen=True)
class PtxasDefect:
    """A known miscompilation by ptxas: the versions and compute capabilities affected, and a source."""

    since: Version
    before: Version  # the first version that is not known to be affected
    capabilities: tuple[int, int]  # lowest and highest: 90 is sm_90
    what: str
    source: str  # URL


DEFECTS = (
    PtxasDefect(
        (0,),
        (11, 1),
        ANY,
        "wrong results or invalid addresses of code like XLA's, which warns of it",
        "https://github.com/jax-ml/jax/issues/10083",
    ),
    PtxasDefect(
        (11, 3),
        (11, 7),
        ANY,
        "a stored double-precision complex number loses its imaginary part; seen up to 11.6",
        "https://github.com/llvm/llvm-project/issues/54633",
    ),
    PtxasDefect(
        (12, 0),
        (12, 6, 85),
        (90, 999),
        "NVIDIA's bug 4826023, of Hopper and later",
        "https://github.com/openxla/xla/pull/19927",
    ),
    PtxasDefect(
        (12, 3, 103),
        (12, 3, 104),
        ANY,
        "a defect that XLA was to refuse this version for",
        "https://github.com/openxla/xla/pull/7922",
    ),
    PtxasDefect(
        (12, 8),
        (13, 1),
        (120, 120),
        "NVIDIA's bug 5288270, wrong results at high register pressure; reported for 12.8, 12.9 and 13.0",
        "https://docs.nvidia.com/cuda/cusolverdx/0.2.1/release_notes.html",
    ),
)


def defects_of(version: str, chip: Chip | None = None) -> tuple[PtxasDefect, ...]:
    """Returns the known defects of a ptxas version ("12.6.85") for a chip; None: for any chip."""
    number = tuple(int(part) for part in version.split(".") if part)
    defects = []
    for defect in DEFECTS:
        lowest, highest = defect.capabilities
        is_of_chip = chip is None or lowest <= chip.capability <= highest
        if is_of_chip and defect.since <= number < defect.before:
            defects.append(defect)
    return tuple(defects)


def defect_line(defect: PtxasDefect) -> str:
    """Returns one line for users: what a version of ptxas miscompiles, and the URL of a source."""
    return f"this version is known to miscompile: {defect.what} ({defect.source})"


@dataclass(frozen=True)
class KernelReport:
    """The resources of one kernel as ``ptxas -v`` reports them: registers, spills, shared memory, notes."""

    kernel: str
    registers: int
    barriers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    notes: tuple[str, ...]


@dataclass
class _Section:
    """The lines of one kernel in the output of ``ptxas -v``, while they are read."""

    kernel: str
    stack: tuple[int, int, int] = (0, 0, 0)
    used: tuple[int, int, int] | None = None  # registers, barriers, static shared bytes
    notes: list[str] = field(default_factory=list)


def read_report(text: str) -> tuple[KernelReport, ...]:
    """Returns each kernel's resources from the output of ``ptxas -v``.

    Raises ValueError for a kernel whose number of registers is missing.
    """
    sections: list[_Section] = []
    general: list[str] = []
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            sections.append(_Section(entry[1]))
        elif note := NOTE.match(line):
            (sections[-1].notes if sections else general).append(note[1].strip())
        elif sections and (stack := STACK.search(line)):
            sections[-1].stack = (int(stack[1]), int(stack[2]), int(stack[3]))
        elif sections and (used := USED.search(line)):
            shared = STATIC_SHARED.search(used[3])
            sections[-1].used = (int(used[1]), int(used[2] or 0), int(shared[1]) if shared else 0)
    return tuple(_finish(section, general) for section in sections)


def first_fault(text: str) -> str:
    """Returns the first error in ptxas's output: "line 4: ...", without the temporary file's name.

    The first line of an output without errors; "no message" for an empty one.
    """
    for line in text.splitlines():
        if fault := FAULT.match(line):
            if fault[1]:
                return f"{fault[1]}: {fault[2]}"
            return str(fault[2])
    return text.strip().partition("\n")[0] or "no message"


def _finish(section: _Section, general: list[str]) -> KernelReport:
    if section.used is None:
        raise ValueError(f"ptxas -v: found no registers of {section.kernel}, allowed 'Used N registers'")
    registers, barriers, shared = section.used
    return KernelReport(
        section.kernel, registers, barriers, *section.stack, shared, (*general, *section.notes)
    )


@dataclass(frozen=True)
class Ptxas:
    """An installed ptxas, NVIDIA's assembler of PTX: its version and the chips that it assembles for."""

    tool: Tool
    version: str  # "13.0.88"
    chips: frozenset[str]  # that it assembles for

    def require(self, chip: Chip) -> None:
        """Raises UsageError, with the supported chips, if this ptxas does not assemble for ``chip``."""
        if chip.name not in self.chips:
            known = ", ".join(sorted(self.chips, key=lambda name: (len(name), name)))
            where = f"ptxas {self.version} ({self.tool.origin})"
            raise UsageError(f"chip: found {chip.name!r}, allowed by {where}: {known}")

    def assemble(self, program: KernelCode, timeout_s: float = TIMEOUT_S) -> KernelCode:
        """Assembles a program's PTX; returns the program with a cubin and the resources of its kernels.

        Raises CandidateError(COMPILE) if ptxas fails or takes longer than ``timeout_s``, UsageError for a
        chip that it does not support, MachineError if the disk is full.
        """
        chip = chip_of(program.chip)
        self.require(chip)
        cubin, reports = self._run(program.text, chip, timeout_s)
        known = map(defect_line, defects_of(self.version, chip))
        notes = (f"version {self.version} made this machine code", *known)
        resources = tuple(_resources(program, chip, report, notes) for report in reports)
        return replace(program, binary=cubin, resources=resources)

    def _run(self, ptx: str, chip: Chip, timeout_s: float) -> tuple[bytes, tuple[KernelReport, ...]]:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "kernel.ptx")
            result = Path(folder, "kernel.cubin")
            source.write_text(ptx)
            result.touch()  # raises on a full disk: ptxas would report it as the candidate's error
            arguments = ["-v", "-O3", f"-arch={chip.name}", str(source), "-o", str(result)]
            try:
                done = _call(self.tool.path, arguments, timeout_s)
            except subprocess.TimeoutExpired as error:
                raise CandidateError(Stage.COMPILE, f"{TIMED_OUT} {timeout_s:g} s: ptxas") from error
            if done.returncode < 0:
                raise CandidateError(Stage.COMPILE, f"ptxas: ended by signal {-done.returncode}")
            if done.returncode > 0:
                raise CandidateError(Stage.COMPILE, f"ptxas: {first_fault(done.stderr + done.stdout)}")
            return _whole(result), read_report(done.stderr + done.stdout)


@functools.cache
def find_ptxas() -> Ptxas | None:
    """Returns ptxas, from its wheel, else from PATH; None: not installed. Asked once per process.

    Raises UsageError if the executable does not run, or is not NVIDIA's ptxas.
    """
    tool = locate("ptxas")
    if tool is None:
        return None
    return ask_ptxas(tool)


def ask_ptxas(tool: Tool) -> Ptxas:
    """Runs an executable to ask for its version and supported chips; returns them as a Ptxas.

    Raises UsageError if it does not run, or is not NVIDIA's ptxas.
    """
    try:
        version = _call(tool.path, ["--version"], QUESTION_TIMEOUT_S).stdout
        options = _call(tool.path, ["--help"], QUESTION_TIMEOUT_S).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"ptxas: {tool.path} does not run: {error}") from error
    number = re.search(r"V(\d+[\d.]*)", version)
    chips = frozenset(re.findall(r"'(sm_\d+[af]?)'", options))
    if number is None or not chips:
        raise UsageError(f"ptxas: {tool.path} prints neither a version nor chips: it is not NVIDIA's ptxas")
    return Ptxas(tool, number[1], chips)


def _whole(file: Path) -> bytes:
    """Returns a cubin. Raises MachineError for a truncated file: on a full disk ptxas exits with 0."""
    cubin = file.read_bytes()
    size_bytes = ELF_HEADER.size
    if len(cubin) >= size_bytes:  # the last header table ends where the file ends
        segments, sections, _, _, segment_bytes, segment_count, section_bytes, section_count, _ = (
            ELF_HEADER.unpack_from(cubin)
        )
        size_bytes = max(segments + segment_bytes * segment_count, sections + section_bytes * section_count)
    if len(cubin) < size_bytes:
        raise MachineError(
            f"{file.parent}: found {len(cubin)} bytes of a cubin, allowed all: no room is left"
        )
    return cubin


def _call(path: Path, arguments: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return run_command([str(path), *arguments], timeout_s)


def _resources(program: KernelCode, chip: Chip, report: KernelReport, notes: tuple[str, ...]) -> Resources:
    # of its largest launch, if the kernel is launched
    launches = [launch for launch in program.launches if launch.kernel == report.kernel]
    dynamic = max((launch.dynamic_shared_bytes for launch in launches), default=0)
    threads = max((math.prod(launch.block) for launch in launches), default=1)
    shared = block_shared_bytes(program.text, report.static_shared_bytes, dynamic)
    needs = BlockNeeds(threads, report.registers, shared, report.barriers)
    return Resources(
        kernel=report.kernel,
        registers=report.registers,
        spill_store_bytes=report.spill_store_bytes,
        spill_load_bytes=report.spill_load_bytes,
        static_shared_bytes=report.static_shared_bytes,
        dynamic_shared_bytes=dynamic,
        stack_bytes=report.stack_bytes,
        occupancy=occupancy(chip, needs),
        blocks_per_multiprocessor=blocks_per_multiprocessor(chip, needs),
        notes=(*notes, *report.notes),
    )


def gpu_compiler_build(chip: Chip, ptxas: Ptxas | None, sources: Sources) -> Compiler:
    """Returns the identity of the compiler build: versions, hash of ``sources``, verifier.

    ``ptxas`` None: not installed. Raises UsageError for a chip that ptxas does not support.
    """
    if ptxas is not None:
        ptxas.require(chip)
    assembler = ("ptxas", "none" if ptxas is None else ptxas.version)
    versions = (*packages(GPU_WHEELS), assembler)
    return Compiler(llvm_version(GPU_WHEELS), versions, sources_sha256(sources), verifier_of(sources))


@final
class GpuCompiler(AbstractCompiler):
    """Compiles transform scripts to GPU programs for one chip: PTX, and a cubin if ptxas is installed."""

    def __init__(self, chip: Chip, find: Callable[[], Ptxas | None] = find_ptxas) -> None:
        """``find`` returns ptxas, or None if PTX alone is wanted."""
        self._chip = chip
        self._find = find
        self._context: bindings.ir.Context | None = None

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns an artifact with the GPU program; with a failure if its chip cannot launch it.

        Raises CandidateError with the stage that fails.
        """
        with failing_at(Stage.BIND):
            scratch = scratch_in(script.text, problem)
        start = time.perf_counter()
        self._context = self._context or transform.new_context()
        with self._context, bindings.ir.Location.unknown():
            module = transform.parse(gpu_payload_mlir(problem, scratch), "payload")
            transform.apply_script(module, transform.parse(script.text, "script"))
            transformed = time.perf_counter()
            program = lowering.lower_to_program(
                module, self._chip, buffers_of(problem.one_matmul), problem.batch
            )
        lowered = time.perf_counter()
        ptxas = self._find()
        if ptxas is not None:
            program = ptxas.assemble(program)
        stages = (
            ("transform", transformed - start),
            ("lower", lowered - transformed),
            ("assemble", time.perf_counter() - lowered),
        )
        return Artifact(program, code_sha256(program), (), stages, refusal_of(program))


def refusal_of(program: KernelCode) -> Failure | None:
    """Returns why a program's chip cannot launch it, such as too much shared memory; None if it can."""
    try:
        require_launchable(program)
    except CandidateError as error:
        return error.failure
    return None
