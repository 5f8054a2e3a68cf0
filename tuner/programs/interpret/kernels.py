"""Kernels of MLIR text that can be launched on host memory, in batches of blocks that run together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tuner.core.errors import CandidateError
from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.interpreter import new_context, parse
from tuner.mlir.rewrite.symbols import function_type, name_of
from tuner.mlir.rewrite.walking import walk
from tuner.programs.interpret.buffer_view import BufferView
from tuner.programs.interpret.decode.all_decoders import DECODERS
from tuner.programs.interpret.decode.allocations import filled, new_buffer
from tuner.programs.interpret.element_types import INDEX
from tuner.programs.interpret.frame import BlockMemory, LaneFrame
from tuner.programs.interpret.lane_grid import LaneGrid, Sizes3
from tuner.programs.interpret.parameters import LaneParameter, arguments_of, parameter_of
from tuner.programs.interpret.scope import LaneFunction, decode_function

LANES_LIMIT = 1 << 14  # that run together: more lanes need more memory, fewer lanes have more overhead
# largest size of a block on sm_90; CUDA programming guide, compute capabilities
DEFAULT_SHARED_BYTES = 232448
Make: TypeAlias = Callable[[LaneFrame], BufferView]


@dataclass(frozen=True)
class LaneLaunch:
    """A simulated kernel launch: grid size, block size, dynamic shared memory, and the blocks to run."""

    grid: Sizes3
    block: Sizes3
    shared_bytes: int | None = None  # size of dynamic shared memory; None: unknown
    blocks: Sequence[int] | None = None  # numbers of the blocks to run, x fastest; None: all

    @property
    def numbers(self) -> Sequence[int]:
        """Returns the linear numbers, x fastest, of the blocks to run; by default all blocks of the grid."""
        return range(math.prod(self.grid)) if self.blocks is None else self.blocks

    @property
    def blocks_at_once(self) -> int:
        """Returns how many blocks run together: as many as have up to 16,384 threads in all, at least one."""
        return max(1, LANES_LIMIT // max(1, math.prod(self.block)))


@dataclass(frozen=True, eq=False)
class LaneKernel:
    """A GPU kernel of an MLIR module, decoded so that the interpreter can launch it on host memory."""

    name: str
    function: LaneFunction
    parameters: tuple[LaneParameter, ...]
    attributions: tuple[Make, ...]

    def launch(
        self,
        launch: LaneLaunch,
        descriptors: Sequence[int],
        write: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Runs the blocks of a launch on arguments that are given as memref descriptors in host memory.

        Args:
            launch: the sizes of the launch.
            descriptors: per parameter, the address of a memref descriptor; a number is in a memref of rank 0.
            write: receives the text that the kernel prints.

        Raises CandidateError(RUN) for what would be a fault on a device.
        """
        arguments = [each.at(address) for each, address in zip(self.parameters, descriptors, strict=True)]
        self._run(launch, arguments, write)

    def launch_bytes(self, launch: LaneLaunch, contents: Sequence[bytes]) -> None:
        """Runs the blocks of a launch on the parameter bytes of a driver launch, such as cuLaunchKernel's.

        ``contents`` has the bytes of each driver parameter; pointers are host addresses. What the kernel
        prints is dropped. Raises CandidateError(RUN) for what would be a fault on a device, ValueError for
        bytes that do not fit the parameters.
        """
        self._run(launch, arguments_of(self.parameters, contents), lambda _: None)

    def pointers(self, contents: Sequence[bytes]) -> list[tuple[int, str]]:
        """Returns (address of the first element, MLIR name of the element type) per memref parameter.

        ``contents`` has the bytes of each parameter of a driver launch. Raises ValueError for bytes that do
        not fit.
        """
        arguments = arguments_of(self.parameters, contents)
        pairs = zip(self.parameters, arguments, strict=True)
        return [
            (int(view.address[0, 0]), parameter.element.name)
            for parameter, view in pairs
            if isinstance(view, BufferView)
        ]

    @property
    def terms(self) -> int:
        """Returns the longest static dimension of a memref parameter; 1 if there is none.

        It estimates the number of terms that the kernel sums per result, for an error bound.
        """
        layouts = [each.layout for each in self.parameters if each.layout is not None]
        return max((size for layout in layouts for size in layout.sizes if size is not None), default=1)

    def _run(self, launch: LaneLaunch, arguments: list[Any], write: Callable[[str], object]) -> None:
        numbers, at_once = np.array(launch.numbers, INDEX), launch.blocks_at_once
        if not math.prod(launch.block):
            return
        given = launch.shared_bytes
        for first in range(0, len(numbers), at_once):
            lanes = LaneGrid(launch.grid, launch.block, numbers[first : first + at_once])
            memory = BlockMemory(DEFAULT_SHARED_BYTES if given is None else given)
            frame = LaneFrame([None] * self.function.slots, lanes, memory, write)
            self._run_blocks(frame, arguments)

    def _run_blocks(self, frame: LaneFrame, arguments: list[Any]) -> None:
        try:
            with np.errstate(all="ignore"):  # inactive lanes contain arbitrary values
                self.function.run(frame, [*arguments, *(make(frame) for make in self.attributions)])
        except CandidateError as error:
            raise CandidateError(error.stage, f"kernel {self.name}: {error.reason}") from error


def read_kernels(text: str) -> dict[str, LaneKernel]:
    """Parses MLIR text and decodes its kernels for the interpreter; returns them by name.

    Raises CandidateError: at stage BIND for text that MLIR rejects, at COMPILE for unsupported operations.
    """
    with new_context(), ir.Location.unknown():
        return decode_kernels(parse(text, "kernels"))


def decode_kernels(module: ir.Module) -> dict[str, LaneKernel]:
    """Decodes every kernel (``gpu.func``) of a module for the interpreter; returns the kernels by name.

    Raises CandidateError(COMPILE) for operations or types that the interpreter does not support.
    """
    kernels = [kernel for kernel in walk(module, "gpu.func") if "kernel" in kernel.attributes]
    return {name_of(kernel): decode_kernel(kernel) for kernel in kernels}


def decode_kernel(kernel: Op) -> LaneKernel:
    """Decodes a ``gpu.func``, and the functions that it calls, for the interpreter.

    Raises CandidateError(COMPILE) for operations or types that the interpreter does not support.
    """
    ops = [op.operation for op in kernel.parent.regions[0].blocks[0].operations]
    symbols = {name_of(op): op for op in ops if "sym_name" in op.attributes}
    inputs = list(function_type(kernel).inputs)
    own = list(kernel.regions[0].blocks[0].arguments)[len(inputs) :]
    return LaneKernel(
        name_of(kernel),
        decode_function(kernel, DECODERS, symbols),
        tuple(parameter_of(kernel, kind) for kind in inputs),
        tuple(_attribution(kernel, each.type) for each in own),
    )


def _attribution(kernel: Op, kind: Type) -> Make:
    element, name = parameter_of(kernel, kind).element, name_of(kernel)
    return lambda frame: new_buffer(frame, f"attribution of {name}", kind, element, filled(kind.shape, []))
