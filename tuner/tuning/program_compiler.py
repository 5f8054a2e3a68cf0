"""A payload with several ops compiled as one program, for a GPU, what stands for it, or the host."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuner.device_program import DeviceProgram
from tuner.errors import CandidateError, Stage, UsageError
from tuner.machine import Machine
from tuner.problem import Problem
from tuner.target import Script
from tuner.target_name import TargetName
from tuner.text_file import read_text

if TYPE_CHECKING:
    from tuner.mlir.device_lowering import Assemble, DeviceOptions
    from tuner.mlir.program_payload import ProgramPayload

MARKS = ("\n", "{")  # of MLIR text; paths have neither


@dataclass(frozen=True)
class CompiledProgram:
    """Code of a whole program."""

    code: DeviceProgram
    problems: tuple[Problem, ...]  # distinct matmuls that a script does
    text: str  # the payload


@dataclass(frozen=True)
class ProgramCompiler:
    """Compiles payloads for one target. Problems without a script get the search space's first point."""

    target: TargetName
    machine: Machine

    def compile(
        self,
        text: str,
        entry: str | None = None,
        scripts: Mapping[Problem, Script] | None = MappingProxyType({}),
        options: "DeviceOptions | None" = None,
    ) -> CompiledProgram:
        """Compiles a payload's text; ``scripts`` None makes loops of every matmul.

        Raises UsageError for a payload that does not parse, CandidateError for one that does not lower.
        """
        from tuner.mlir import bindings, interpreter, program_kernels

        with interpreter.new_context(), bindings.ir.Location.unknown():
            payload = _read(text, entry)
            chosen = self._scripts(program_kernels.problems_of(payload), scripts)
            if not self.target.is_gpu:
                from tuner.mlir.host_lowering import lower_host_program

                return CompiledProgram(lower_host_program(payload, chosen), tuple(chosen), text)
            from tuner.chips import chip_of
            from tuner.mlir.device_lowering import DEFAULTS, lower_device_program

            chip = chip_of(self.target.chip)
            program_kernels.launch_kernels(payload, chosen, chip)
            code = lower_device_program(
                payload.module, payload.entry, chip, options or DEFAULTS, self._assembler()
            )
            return CompiledProgram(code, tuple(chosen), text)

    def _scripts(
        self, problems: tuple[Problem, ...], given: Mapping[Problem, Script] | None
    ) -> dict[Problem, Script]:
        """Returns a script for each problem that a strategy can do here; others become loops."""
        from tuner.tuning.default_script import default_script

        if given is None:
            return {}
        unknown = [problem.key for problem in given if problem not in problems]
        if unknown:
            found = ", ".join(problem.key for problem in problems) or "none"
            raise UsageError(f"scripts: found {unknown[0]}, allowed matmuls of the payload: {found}")
        chosen = {}
        for problem in problems:
            script = given.get(problem) or default_script(problem, self.machine)
            if script is not None:
                chosen[problem] = script
        return chosen

    def _assembler(self) -> "Assemble | None":
        """Returns what makes machine code of PTX; None where the driver, or the simulator, takes PTX."""
        if self.target.kind != "cuda":
            return None
        from tuner.cuda_tools.ptxas import find_ptxas
        from tuner.kernel import KernelProgram

        ptxas = find_ptxas()
        if ptxas is None:
            return None
        empty = KernelProgram(self.target.chip, "", b"", (), ())
        return lambda ptx, _names: ptxas.assemble(replace(empty, ptx=ptx)).cubin


def problems_in(text: str, entry: str | None) -> tuple[Problem, ...]:
    """Returns the distinct matmuls of a payload. Raises UsageError for one that does not parse."""
    from tuner.mlir import bindings, interpreter
    from tuner.mlir.program_kernels import problems_of

    with interpreter.new_context(), bindings.ir.Location.unknown():
        return problems_of(_read(text, entry))


def payload_text(payload: str | Path) -> str:
    """Returns MLIR text as it is, or what a file of that path holds. Raises UsageError."""
    if isinstance(payload, str) and any(mark in payload for mark in MARKS):
        return payload
    if not str(payload).strip():
        raise UsageError("payload: found no text, allowed MLIR or the path of a file")
    return read_text(Path(payload), "MLIR text")


def _read(text: str, entry: str | None) -> "ProgramPayload":
    """Reads a payload; what does not even parse is the user's mistake."""
    from tuner.mlir.program_payload import read_program

    try:
        return read_program(text, entry)
    except CandidateError as error:
        if error.stage is Stage.BIND:
            raise UsageError(error.reason) from error
        raise
