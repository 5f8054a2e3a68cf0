"""Arguments of a launch: checks, and placement in parameter and global memory."""

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tuner.core.errors import UsageError
from tuner.gpu.ptxsim.memory.global_memory import WINDOWS, GlobalBuffer, GlobalMemory, Pointer
from tuner.gpu.ptxsim.memory.tensor_maps import PlacedMap, TensorMap
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, Array
from tuner.gpu.ptxsim.ptx.geometry import THREADS_LIMIT, Index3, linear, unravel, whole_clusters
from tuner.gpu.ptxsim.ptx.layout import Layout
from tuner.gpu.ptxsim.ptx.syntax_tree import Parameter, PtxKernel, PtxModule

ModuleVariables: TypeAlias = dict[str, Array]  # bytes of global and constant variables, by name

TENSOR_MAP_BYTES = 128  # CUtensorMap


Argument: TypeAlias = Array | Pointer | TensorMap | int | float | np.generic | bytes


@dataclass
class Placement:
    """The placed arguments of a launch: global memory, tensor maps, and the bytes of the parameters."""

    global_: GlobalMemory
    parameters: Array
    tensor_maps: dict[int, PlacedMap] = field(default_factory=dict)  # by generic address


def place_arguments(layout: Layout, arguments: tuple[Argument, ...], global_: GlobalMemory) -> Placement:
    """Places arrays in ``global_``, and writes addresses and other values to the parameter memory.

    Raises UsageError for an argument whose size is not that of its parameter, or a non-contiguous array.
    """
    content = np.zeros(layout.parameter_bytes, np.uint8)
    placement = Placement(global_, content)
    for parameter, argument in zip(layout.kernel.parameters, arguments, strict=True):
        start = layout.slots[parameter.name].address
        value = _value(placement, parameter, argument, start)
        if value.size != parameter.bytes:
            raise UsageError(
                f"argument {parameter.name}: found {value.size} bytes, allowed {parameter.bytes}"
            )
        content[start : start + value.size] = value
    return placement


def _value(placement: Placement, parameter: Parameter, argument: Argument, start: int) -> Array:
    if isinstance(argument, bytes):
        return np.frombuffer(argument, np.uint8)
    if isinstance(argument, Pointer):
        address, _ = placement.global_.place(argument.name, argument.array, argument.number)
        address += argument.offset_bytes
    elif isinstance(argument, np.ndarray):
        address, _ = placement.global_.place(parameter.name, argument)
    elif isinstance(argument, TensorMap):
        content = np.zeros(TENSOR_MAP_BYTES, np.uint8)
        _, buffer = placement.global_.place(parameter.name, argument.array)
        if parameter.is_array:  # by value
            placement.tensor_maps[WINDOWS["param"] + start] = PlacedMap(argument, buffer)
            return content
        address = placement.global_.add(GlobalBuffer(parameter.name, content, 1, is_read_only=True))
        placement.tensor_maps[address] = PlacedMap(argument, buffer)
    else:
        return np.array([argument]).astype(TYPES[parameter.type].dtype).view(np.uint8)
    return np.array([address], np.uint64).view(np.uint8)


def first_content(module: PtxModule) -> ModuleVariables:
    """Returns new arrays with the initial bytes of a module's global and constant variables, by name."""
    content = {}
    for variable in module.variables:
        if variable.space in ("global", "const"):
            content[variable.name] = np.zeros(max(variable.bytes, 1), np.uint8)
            content[variable.name][: len(variable.content)] = variable.content
    return content


def place_variables(module: PtxModule, content: ModuleVariables, global_: GlobalMemory) -> dict[str, int]:
    """Adds the arrays of a module's variables to ``global_`` without copies; returns addresses by name."""
    spaces = {variable.name: variable.space for variable in module.variables}
    return {
        name: global_.add(GlobalBuffer(name, array, 1, spaces[name] == "const"))
        for name, array in content.items()
    }


def check_launch(kernel: PtxKernel, grid: Index3, block: Index3, arguments: tuple[Argument, ...]) -> None:
    """Raises UsageError for sizes that the kernel does not allow, and for a wrong number of arguments."""
    check_sizes(kernel, grid, block)
    if len(arguments) != len(kernel.parameters):
        count = len(kernel.parameters)
        raise UsageError(f"kernel {kernel.name}: found {len(arguments)} arguments, allowed {count}")


def check_sizes(kernel: PtxKernel, grid: Index3, block: Index3) -> None:
    """Raises UsageError for a grid (in blocks) or a block (in threads) that the kernel does not allow."""
    if min(*grid, *block) < 1:
        sizes = f"grid {tuple(grid)} and block {tuple(block)}"
        raise UsageError(f"kernel {kernel.name}: found {sizes}, allowed sizes from 1")
    threads = math.prod(block)
    limit = min(THREADS_LIMIT, math.prod(kernel.max_threads or (THREADS_LIMIT,)))
    if threads > limit:
        raise UsageError(f"kernel {kernel.name}: found a block of {threads} threads, allowed up to {limit}")
    cluster = cluster_of(kernel)
    if any(blocks % size for blocks, size in zip(grid, cluster, strict=True)):
        raise UsageError(
            f"kernel {kernel.name}: found a grid of {tuple(grid)}, allowed multiples of {cluster}"
        )
    required = (*(kernel.required_threads or block), 1, 1)[:3]
    if tuple(block) != required:
        raise UsageError(f"kernel {kernel.name}: found a block of {tuple(block)}, allowed {required}")


def cluster_of(kernel: PtxKernel) -> Index3:
    """Returns the blocks of a kernel's clusters along x, y and z; (1, 1, 1) where none are declared."""
    x, y, z = (*(kernel.cluster or ()), 1, 1, 1)[:3]
    return x, y, z


def block_numbers(grid: Index3, blocks: tuple[Index3, ...] | None, cluster: Index3) -> tuple[int, ...]:
    """Returns the linear numbers of ``blocks`` and of the other blocks of their clusters, by cluster.

    ``blocks``: indices (x, y, z), None for all. Raises UsageError for a block outside of the grid.
    """
    if blocks is None and cluster == (1, 1, 1):
        return tuple(range(math.prod(grid)))
    for block in blocks or ():
        if any(not 0 <= index < extent for index, extent in zip(block, grid, strict=True)):
            raise UsageError(f"blocks: found {block}, allowed blocks of the grid {tuple(grid)}")
    every = (unravel(number, grid) for number in range(math.prod(grid)))
    return tuple(
        linear(block, grid) for block in whole_clusters(every if blocks is None else blocks, cluster)
    )
