"""Ports: what programs need of devices, in three parts, each of which the package for GPUs registers.

``operations`` reads a device's operations in a program, ``compiler`` compiles programs for a device,
``runtime`` runs them, and interprets kernels. Whoever reads, compiles or runs a program imports nothing of
the package for GPUs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, Protocol

from tuner.core.dtypes import IEEE

if TYPE_CHECKING:
    from tuner.core.compiled_code import Assemble, KernelCode
    from tuner.core.device import AbstractDevice
    from tuner.core.device_programs import (
        DeviceOptions,
        DeviceProgram,
        DeviceWork,
        LoweringStep,
        MatmulKernel,
    )
    from tuner.core.errors import Refusal
    from tuner.core.fusions import FusedProgram
    from tuner.core.gpu import Chip
    from tuner.core.interfaces import Script
    from tuner.core.problem import Problem
    from tuner.mlir.bindings import Op, ir
    from tuner.mlir.programs.payload import ProgramPayload
    from tuner.runtime.programs.runner_functions import Write

PARTS: Final[Mapping[str, str]] = {  # name -> "module:object", imported at first use, as targets are
    "operations": "tuner.gpu.ports.operations:OPERATIONS",
    "compiler": "tuner.gpu.ports.compiler:COMPILER",
    "runtime": "tuner.gpu.ports.runtime:RUNTIME",
}


class DeviceOperations(Protocol):
    """A port: reads a device's operations in a program, and turns them into code of the processor."""

    def parse(self, text: str, name: str) -> "ir.Module":
        """Parses MLIR text in the current context, which may name streams (GPUX); ``name``: for errors.

        Raises CandidateError(BIND) for text that does not parse.
        """

    def declare_memory(self, module: "ir.Module") -> None:
        """Inlines the functions that a module's kernels call and declares the kernels' memory, in place."""

    def take_stream(self, function: "Op") -> None:
        """Makes a function that takes a stream use its caller's, in place."""

    def inline_stream_functions(self, module: "ir.Module") -> None:
        """Inlines the functions of a module that take streams, in place."""

    def names_device_memory(self, function: "Op") -> bool:
        """Returns whether a host function allocates device memory, or names its streams."""

    def to_host(self, payload: "ProgramPayload") -> str:
        """Turns device memory, streams and kernels of a program into code of the processor, in place.

        Kernels become loops, or calls of the interpreter: returns the text of the latter, for
        ``DeviceRuntime.host_kernels``; "" without any. Raises CandidateError(COMPILE) for kernels that
        neither can run.
        """


@dataclass(frozen=True)
class DeviceTarget:
    """The chip and the options that a program is compiled with."""

    chip: "Chip"
    options: "DeviceOptions"
    assemble: "Assemble | None"  # converts PTX to machine code; None: the program contains PTX
    is_checked: bool  # whether the host's loops assert that each access is in bounds
    math: str = IEEE  # how f32 is multiplied, a key of ``MATH``


class DeviceCompiler(Protocol):
    """A port: compiles programs for a device, in the current MLIR context."""

    def compile_fusions(
        self,
        program: "FusedProgram",
        entry: str,
        target: DeviceTarget,
        script_of: "Callable[[Problem], Script | None]",
    ) -> "DeviceProgram":
        """Compiles a program of fusions; the weights on the device have no contents yet.

        ``script_of`` returns the script of a matmul; None where no strategy supports it. Raises
        CandidateError where a fusion does not compile.
        """

    def kernel(self, problem: "Problem", script: "Script", chip: "Chip") -> "KernelCode":
        """Compiles the kernel of one problem by a script. Raises CandidateError where that fails."""

    def launch_kernels(
        self, payload: "ProgramPayload", scripts: "Mapping[Problem, Script]", chip: "Chip", math: str
    ) -> "tuple[MatmulKernel, ...]":
        """Converts a payload's linalg operations and parallel loops to launches of kernels, in place.

        Matmuls with a script become the script's kernels; ``math``: how f32 is multiplied in the problems of
        ``scripts``. Returns the kernels whose single launch computes a whole matmul. Raises CandidateError
        for a script that fails, and for an operation that cannot be lowered to loops.
        """

    def reference_kernels(self, module: "ir.Module", left_out: frozenset[str]) -> str:
        """Returns the text of a module's kernels that are interpreted, except ``left_out``; or ""."""

    def lower(self, payload: "ProgramPayload", target: DeviceTarget) -> "DeviceProgram":
        """Lowers a payload whose work is launches of kernels to a program, in place.

        Raises CandidateError where an operation cannot be lowered.
        """

    def text_after(
        self, step: "LoweringStep", payload: "ProgramPayload", chip: "Chip", options: "DeviceOptions"
    ) -> str:
        """Lowers a payload whose work is launches of kernels up to a step; returns the text after it."""

    def counted_work(
        self, payload: "ProgramPayload", chip: "Chip", options: "DeviceOptions"
    ) -> "DeviceWork | None":
        """Returns the launches and copied bytes of one call of a payload, which is lowered in place.

        None where only a call shows the work: it is in a loop or a branch, or its size is not static. Raises
        CandidateError where the lowering fails.
        """


class HostKernels(Protocol):
    """Interpreted kernels: C functions that compiled host code calls, valid as long as this object."""

    def addresses(self) -> dict[str, int]:
        """Returns the address of each kernel's C function, by the name that the host code calls."""

    def raise_error(self) -> None:
        """Raises the error of a kernel that failed in a call of the host code, once."""


class DeviceRuntime(Protocol):
    """A port: runs compiled programs on a device, and interprets kernels and functions."""

    host_functions: frozenset[str]  # names of functions that the host code of a device's program calls

    def function(
        self, program: "DeviceProgram", device: "AbstractDevice", write: "Write", why_no_fusions: str = ""
    ) -> Any:
        """Returns a program as a Python function on an opened device, a ``DeviceFunction``.

        ``write`` receives the text that the program prints; ``why_no_fusions``: why the program is not
        compiled as fusions. Raises CandidateError(LOAD) where the code does not load, DeviceError where the
        device refuses.
        """

    def host_kernels(self, text: str, write: "Write") -> HostKernels:
        """Returns the kernels of MLIR text ("": none), interpreted; ``write`` receives what they print."""

    def interpreted(
        self, text: str, entry: str, arguments: tuple[Any, ...], write: "Write"
    ) -> "tuple[Any, ...] | Refusal":
        """Interprets a function of MLIR text as written, on arguments that it may change.

        Returns its results, or a Refusal for too much work or unknown operations. Raises CandidateError for
        a call whose result the text leaves undefined.
        """

    def sampled_launches(
        self, program: "DeviceProgram", blocks: int, add: Callable[[Any], None]
    ) -> Callable[..., object]:
        """Returns a function that simulates about ``blocks`` blocks of each launch, for ``open_device``.

        ``program`` has its kernels' MLIR and matmuls; ``add`` receives a ``LaunchSample`` per launch.
        """


def device_operations() -> DeviceOperations:
    """Imports and returns the part that reads a device's operations."""
    operations: DeviceOperations = resolve_name(PARTS["operations"])
    return operations


def device_compiler() -> DeviceCompiler:
    """Imports and returns the part that compiles programs for a device."""
    compiler: DeviceCompiler = resolve_name(PARTS["compiler"])
    return compiler


def device_runtime() -> DeviceRuntime:
    """Imports and returns the part that runs programs on a device."""
    runtime: DeviceRuntime = resolve_name(PARTS["runtime"])
    return runtime
