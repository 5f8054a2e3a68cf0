"""Runs ptxas: assembles PTX to machine code (cubin), and reads the resources of each kernel."""

import functools
import math
import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.core.chips import Chip, chip_of
from tuner.core.errors import CandidateError, MachineError, Stage, UsageError
from tuner.core.kernel_program import KernelProgram, Resources
from tuner.cost_model.launch_limits import block_shared_bytes
from tuner.cost_model.occupancy import BlockNeeds, blocks_per_multiprocessor, occupancy
from tuner.targets.gpu.cuda_tools import DISTRIBUTIONS, Tool, locate
from tuner.targets.gpu.ptxas_defects import defect_line, defects_of
from tuner.targets.gpu.ptxas_report import KernelReport, first_fault, read_report
from tuner.workers.timed_command import run_command

TIMEOUT_S = 60.0  # of an assembly; the largest matmul kernels take about one second
ELF_HEADER = struct.Struct("<32xQQIHHHHHH")  # elf(5), from e_phoff
QUESTION_TIMEOUT_S = 20.0  # for --help and --version, on a busy machine


@dataclass(frozen=True)
class Ptxas:
    """An installed ptxas, NVIDIA's assembler of PTX: its version and the chips that it assembles for."""

    tool: Tool
    version: str  # "13.0.88"
    chips: frozenset[str]  # that it assembles for

    def require(self, chip: Chip) -> None:
        """Raises UsageError, which lists the known chips, for a chip that this version of ptxas lacks."""
        if chip.name not in self.chips:
            known = ", ".join(sorted(self.chips, key=lambda name: (len(name), name)))
            where = f"ptxas {self.version} ({self.tool.origin})"
            raise UsageError(f"chip: found {chip.name!r}, allowed by {where}: {known}")

    def assemble(self, program: KernelProgram, timeout_s: float = TIMEOUT_S) -> KernelProgram:
        """Assembles a program's PTX; returns the program with its cubin and the resources of its kernels.

        Raises CandidateError(COMPILE) with ptxas's first error, or where it takes longer than ``timeout_s``;
        UsageError for a chip that ptxas does not know, MachineError where the disk has no space for the
        cubin.
        """
        chip = chip_of(program.chip)
        self.require(chip)
        cubin, reports = self._run(program.ptx, chip, timeout_s)
        given = self._notes(chip)
        resources = tuple(_resources(program, chip, report, given) for report in reports)
        return replace(program, cubin=cubin, resources=resources)

    def _notes(self, chip: Chip) -> tuple[str, ...]:
        """Returns notes that are stored with the code: the version of ptxas, and its known defects."""
        known = map(defect_line, defects_of(self.version, chip))
        return (f"version {self.version} made this machine code", *known)

    def _run(self, ptx: str, chip: Chip, timeout_s: float) -> tuple[bytes, tuple[KernelReport, ...]]:
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
            source.write_text(ptx)
            result.touch()  # raises on a full disk: ptxas would report it as the candidate's error
            arguments = ["-v", "-O3", f"-arch={chip.name}", str(source), "-o", str(result)]
            try:
                done = _call(self.tool.path, arguments, timeout_s)
            except subprocess.TimeoutExpired as error:
                raise CandidateError(Stage.COMPILE, f"ptxas: no result within {timeout_s:g} s") from error
            if done.returncode < 0:
                raise CandidateError(Stage.COMPILE, f"ptxas: ended by signal {-done.returncode}")
            if done.returncode > 0:
                raise CandidateError(Stage.COMPILE, f"ptxas: {first_fault(done.stderr + done.stdout)}")
            return _whole(result), read_report(done.stderr + done.stdout)


@functools.cache
def find_ptxas() -> Ptxas | None:
    """Returns the ptxas of the wheel, else the ptxas on PATH, else None; searched once per process.

    Raises UsageError for a ptxas that is found but cannot run.
    """
    tool = locate("ptxas")
    return None if tool is None else ask_ptxas(tool)


def require_ptxas() -> Ptxas:
    """Returns the installed ptxas.

    Raises UsageError without one, with the command that installs ptxas, or for one that cannot run.
    """
    found = find_ptxas()
    if found is None:
        wheels = " or ".join(DISTRIBUTIONS["ptxas"])
        raise UsageError(f"ptxas: missing on PATH and in {wheels}", "pip install nvidia-cuda-nvcc")
    return found


def ask_ptxas(tool: Tool) -> Ptxas:
    """Runs an executable to find its version and chips; returns it as a Ptxas.

    Raises UsageError if the executable cannot run or is not NVIDIA's ptxas.
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
    if len(cubin) < ELF_HEADER.size or len(cubin) < _end_of_headers(cubin):
        raise MachineError(
            f"{file.parent}: found {len(cubin)} bytes of a cubin, allowed all: no room is left"
        )
    return cubin


def _end_of_headers(cubin: bytes) -> int:
    """Returns the offset at which the last header table of an ELF file ends, which is the file's size."""
    segments, sections, _, _, segment_bytes, segment_count, section_bytes, section_count, _ = (
        ELF_HEADER.unpack_from(cubin)
    )
    return int(max(segments + segment_bytes * segment_count, sections + section_bytes * section_count))


def _call(path: Path, arguments: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    return run_command([str(path), *arguments], timeout_s)


def _resources(program: KernelProgram, chip: Chip, report: KernelReport, given: tuple[str, ...]) -> Resources:
    """Returns the resources of a kernel, with those of its largest launch, if the kernel is launched."""
    launches = [launch for launch in program.launches if launch.kernel == report.kernel]
    dynamic = max((launch.dynamic_shared_bytes for launch in launches), default=0)
    threads = max((math.prod(launch.block) for launch in launches), default=1)
    shared = block_shared_bytes(program.ptx, report.static_shared_bytes, dynamic)
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
        notes=(*given, *report.notes),
    )
