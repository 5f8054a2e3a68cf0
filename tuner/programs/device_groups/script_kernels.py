"""The kernels that transform scripts make of a program's matmuls, each compiled once."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.chips import Chip
from tuner.core.errors import CandidateError, Stage
from tuner.core.kernel_program import KernelBuffer
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.mlir.bindings import ir
from tuner.programs.lower.matmuls.insert_gpu_kernels import InsertedKernels, add_kernels_of

ScriptOf = Callable[[Problem], Script | None]


class ScriptKernels:
    """The kernels of scripts in a program, each compiled once for all matmuls that it fits."""

    def __init__(self, module: ir.Module, chip: Chip, script_of: ScriptOf) -> None:
        """Takes the program, the GPU architecture, and what returns the script of a matmul."""
        self.module = module
        self._chip, self._script_of = chip, script_of
        self._known: dict[tuple[str, str], InsertedKernels] = {}

    def script(self, problem: Problem) -> Script:
        """Returns the script of a matmul. Raises CandidateError(COMPILE) where no strategy supports it."""
        script = self._script_of(problem)
        if script is None:
            raise CandidateError(Stage.COMPILE, f"no strategy supports {problem.key}")
        return script

    def of(
        self, payload: ir.Module, buffers: tuple[KernelBuffer, ...], script: Script, suffix: str
    ) -> InsertedKernels:
        """Returns the kernels of a script for a payload, which is changed.

        Args:
            payload: the payload, with the operations of an epilogue.
            buffers: those that its function takes, in order.
            script: the transform script.
            suffix: of the names of the kernels.

        Raises CandidateError where the script fails.
        """
        key = (str(payload), script.text)
        if key not in self._known:
            self._known[key] = add_kernels_of(self.module, payload, buffers, script, suffix, self._chip)
        return self._known[key]


@dataclass(frozen=True)
class KernelPlace:
    """Where the kernels of a group are added."""

    scripts: ScriptKernels
    name: str  # of the group, unique in the program

    @property
    def module(self) -> ir.Module:
        """Returns the program."""
        return self.scripts.module
