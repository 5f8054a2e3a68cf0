"""A launch's arguments: what they must be, and how they become parameters and buffers."""

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tuner.errors import UsageError
from tuner.kernel import KernelProgram
from tuner.ptx.dtypes import TYPES, Array
from tuner.ptx.geometry import THREADS_LIMIT, Index3, linear
from tuner.ptx.global_memory import Buffer, GlobalMemory
from tuner.ptx.instruction import Kernel, Module, Parameter
from tuner.ptx.layout import Layout
from tuner.ptx.spaces import WINDOWS
from tuner.ptx.tensor_map import PlacedMap, TensorMap
from tuner.ptx.touched import Touched

TENSOR_MAP_BYTES = 128  # CUtensorMap


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address inside an array: the whole array can be reached by it."""

    name: str  # of the array, in messages
    array: Array
    offset_bytes: int


Argument: TypeAlias = Array | Pointer | TensorMap | int | float | np.generic | bytes


@dataclass
class Placement:
    """Everything of a launch that lies in global memory, and the bytes of its parameters."""

    global_: GlobalMemory
    cell_bytes: int
    parameters: Array
    tensor_maps: dict[int, PlacedMap] = field(default_factory=dict)  # by generic address
    _buffers: dict[int, tuple[int, Buffer]] = field(default_factory=dict)  # host address -> address, buffer

    def buffer(self, name: str, array: Array) -> tuple[int, Buffer]:
        """Returns address and buffer of an array, the same ones each time."""
        if not array.flags.c_contiguous:
            raise UsageError(f"argument {name}: found a strided array, allowed a C-contiguous one")
        key = array.__array_interface__["data"][0]
        if key not in self._buffers:
            buffer = Buffer(name, array, self.cell_bytes)
            self._buffers[key] = (self.global_.add(buffer), buffer)
        return self._buffers[key]

    def touched(self) -> tuple[Touched, ...]:
        """Returns what was read and written of each array so far."""
        return tuple(
            Touched.of(key, buffer.bytes.size, buffer.races) for key, (_, buffer) in self._buffers.items()
        )


def place(layout: Layout, arguments: tuple[Argument, ...], global_: GlobalMemory) -> Placement:
    """Returns the placement of a launch's arguments. Raises UsageError for one that does not fit."""
    content = np.zeros(layout.parameter_bytes, np.uint8)
    placement = Placement(global_, layout.cell_bytes, content)
    for parameter, argument in zip(layout.kernel.parameters, arguments, strict=True):
        start = layout.places[parameter.name].address
        value = _value(placement, parameter, argument, start)
        if value.size != parameter.bytes:
            raise UsageError(
                f"argument {parameter.name}: found {value.size} bytes, allowed {parameter.bytes}"
            )
        content[start : start + value.size] = value
    return placement


def _value(placement: Placement, parameter: Parameter, argument: Argument, start: int) -> Array:
    """Returns the bytes of one parameter."""
    if isinstance(argument, TensorMap):
        return _tensor_map(placement, parameter, argument, start)
    if isinstance(argument, Pointer):
        address, _ = placement.buffer(argument.name, argument.array)
        return np.array([address + argument.offset_bytes], np.uint64).view(np.uint8)
    if isinstance(argument, np.ndarray):
        address, _ = placement.buffer(parameter.name, argument)
        return np.array([address], np.uint64).view(np.uint8)
    if isinstance(argument, bytes):
        return np.frombuffer(argument, np.uint8)
    return np.array([argument]).astype(TYPES[parameter.type].dtype).view(np.uint8)


def _tensor_map(placement: Placement, parameter: Parameter, tensor: TensorMap, start: int) -> Array:
    """Places a map: by value it is found at its parameter, by pointer at an address of its own."""
    content = np.zeros(TENSOR_MAP_BYTES, np.uint8)
    _, buffer = placement.buffer(parameter.name, tensor.array)
    if parameter.is_array:
        placement.tensor_maps[WINDOWS["param"] + start] = PlacedMap(tensor, buffer)
        return content
    address = placement.global_.add(Buffer(parameter.name, content, 1, is_read_only=True))
    placement.tensor_maps[address] = PlacedMap(tensor, buffer)
    return np.array([address], np.uint64).view(np.uint8)


def place_variables(module: Module, global_: GlobalMemory) -> dict[str, int]:
    """Places the module's global and constant variables; returns their addresses."""
    found = {}
    for variable in module.variables:
        if variable.space not in ("global", "const"):
            continue
        content = np.zeros(max(variable.bytes, 1), np.uint8)
        content[: len(variable.content)] = variable.content
        found[variable.name] = global_.add(Buffer(variable.name, content, 1, variable.space == "const"))
    return found


def program_buffers(program: KernelProgram, given: dict[str, Array]) -> dict[str, Array]:
    """Returns the array of each buffer of a program: the given ones, new ones for scratch."""
    arrays = {}
    for buffer in program.buffers:
        array = given.get(buffer.name)
        if array is None and buffer.role != "scratch":
            raise UsageError(f"buffer {buffer.name}: found nothing, allowed an array of {buffer.bytes} bytes")
        if array is None:
            array = np.full(buffer.bytes, 0xFF, np.uint8)
        if array.nbytes != buffer.bytes:
            raise UsageError(f"buffer {buffer.name}: found {array.nbytes} bytes, allowed {buffer.bytes}")
        if buffer.is_zeroed:
            array.reshape(-1).view(np.uint8)[:] = 0
        arrays[buffer.name] = array
    return arrays


def check_launch(kernel: Kernel, grid: Index3, block: Index3, arguments: tuple[Argument, ...]) -> None:
    """Raises UsageError for a launch that the kernel does not allow."""
    if min(*grid, *block) < 1:
        raise UsageError(f"kernel {kernel.name}: found grid {grid} and block {block}, allowed sizes from 1")
    threads = math.prod(block)
    limit = min(THREADS_LIMIT, math.prod(kernel.max_threads or (THREADS_LIMIT,)))
    if threads > limit:
        raise UsageError(f"kernel {kernel.name}: found a block of {threads} threads, allowed up to {limit}")
    required = (*(kernel.required_threads or block), 1, 1)[:3]
    if tuple(block) != required:
        raise UsageError(f"kernel {kernel.name}: found a block of {block}, allowed {required}")
    if len(arguments) != len(kernel.parameters):
        count = len(kernel.parameters)
        raise UsageError(f"kernel {kernel.name}: found {len(arguments)} arguments, allowed {count}")


def block_numbers(grid: Index3, blocks: tuple[Index3, ...] | None) -> tuple[int, ...]:
    """Returns the numbers of the named blocks of a grid, of all where none are named."""
    if blocks is None:
        return tuple(range(math.prod(grid)))
    for block in blocks:
        if any(not 0 <= index < extent for index, extent in zip(block, grid, strict=True)):
            raise UsageError(f"blocks: found {block}, allowed blocks of the grid {grid}")
    return tuple(linear(block, grid) for block in dict.fromkeys(blocks))
