"""Kernels of MLIR text that can be launched on host memory, block after block, some at once."""

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
from tuner.programs.interpret.decode.allocations import filled, new_buffer
from tuner.programs.interpret.decode.table import DECODERS
from tuner.programs.interpret.element_types import INDEX
from tuner.programs.interpret.frame import BlockMemory, LaneFrame
from tuner.programs.interpret.lane_grid import LaneGrid, Sizes3
from tuner.programs.interpret.parameters import LaneParameter, arguments_of, parameter_of
from tuner.programs.interpret.scope import LaneFunction, decode_function

LANES_LIMIT = 1 << 14  # that run at once: more need more memory, fewer pay more overhead
DEFAULT_SHARED_BYTES = 232448  # a block's most on sm_90; CUDA programming guide, compute capabilities
Make: TypeAlias = Callable[[LaneFrame], BufferView]


@dataclass(frozen=True)
class LaneLaunch:
    """The sizes of a launch."""

    grid: Sizes3
    block: Sizes3
    shared_bytes: int | None = None  # of dynamic shared memory; None: nobody has told
    blocks: Sequence[int] | None = None  # numbers of those to run, x fastest; None: all

    @property
    def numbers(self) -> Sequence[int]:
        """Returns the numbers of the blocks to run."""
        return range(math.prod(self.grid)) if self.blocks is None else self.blocks

    @property
    def blocks_at_once(self) -> int:
        """Returns how many blocks run side by side."""
        return max(1, LANES_LIMIT // max(1, math.prod(self.block)))


@dataclass(frozen=True, eq=False)
class LaneKernel:
    """A decoded kernel."""

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
        """Runs blocks on parameters that stand at addresses of memref descriptors, numbers in rank 0.

        ``write`` takes what is printed. Raises CandidateError(RUN) for what a device would fault at.
        """
        arguments = [each.at(address) for each, address in zip(self.parameters, descriptors, strict=True)]
        self._run(launch, arguments, write)

    def launch_bytes(self, launch: LaneLaunch, contents: Sequence[bytes]) -> None:
        """Runs blocks on parameters as a driver gets them. Raises CandidateError(RUN), and ValueError."""
        self._run(launch, arguments_of(self.parameters, contents), lambda _: None)

    def pointers(self, contents: Sequence[bytes]) -> list[tuple[int, str]]:
        """Returns where each memref of a driver's parameters begins, and the name of its elements."""
        arguments = arguments_of(self.parameters, contents)
        pairs = zip(self.parameters, arguments, strict=True)
        return [
            (int(view.address[0, 0]), parameter.element.name)
            for parameter, view in pairs
            if isinstance(view, BufferView)
        ]

    @property
    def terms(self) -> int:
        """Returns the longest known dimension of a memref: as many terms a sum may have."""
        layouts = [each.layout for each in self.parameters if each.layout is not None]
        return max((size for layout in layouts for size in layout.sizes if size is not None), default=1)

    def _run(self, launch: LaneLaunch, arguments: list[Any], write: Callable[[str], object]) -> None:
        numbers, at_once = np.array(launch.numbers, INDEX), launch.blocks_at_once
        if not math.prod(launch.block):
            return
        told = launch.shared_bytes
        for first in range(0, len(numbers), at_once):
            lanes = LaneGrid(launch.grid, launch.block, numbers[first : first + at_once])
            memory = BlockMemory(DEFAULT_SHARED_BYTES if told is None else told)
            frame = LaneFrame([None] * self.function.slots, lanes, memory, write)
            self._run_blocks(frame, arguments)

    def _run_blocks(self, frame: LaneFrame, arguments: list[Any]) -> None:
        try:
            with np.errstate(all="ignore"):  # lanes that do not run hold anything
                self.function.run(frame, [*arguments, *(make(frame) for make in self.attributions)])
        except CandidateError as error:
            raise CandidateError(error.stage, f"kernel {self.name}: {error.reason}") from error


def read_kernels(text: str) -> dict[str, LaneKernel]:
    """Returns the kernels of a module by name. Raises CandidateError for what is not known here."""
    with new_context(), ir.Location.unknown():
        return decode_kernels(parse(text, "kernels"))


def decode_kernels(module: ir.Module) -> dict[str, LaneKernel]:
    """Returns the kernels of a module by name. Raises CandidateError(COMPILE)."""
    kernels = [kernel for kernel in walk(module, "gpu.func") if "kernel" in kernel.attributes]
    return {name_of(kernel): decode_kernel(kernel) for kernel in kernels}


def decode_kernel(kernel: Op) -> LaneKernel:
    """Decodes a ``gpu.func`` and what it calls. Raises CandidateError(COMPILE) for what is not known here."""
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
