"""Weights that PyTorch packed for ``_weight_int4pack_mm_for_cpu``, as integers of i8 again.

The order of the packed nibbles depends on the processor and on PyTorch's version, so it is read from PyTorch
itself: the digits of each element's number are packed. What is unpacked must pack to the same bytes.
"""

import copy
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import torch

from tuner.core.errors import UsageError
from tuner.mlir.ir.resources import Data, SizedData
from tuner.models.torch.importer import bytes_of

INT4_PRODUCT = torch.ops.aten._weight_int4pack_mm_for_cpu.default  # noqa: SLF001 - what models call
PACKED = torch.ops.aten._convert_weight_to_int4pack_for_cpu  # noqa: SLF001 - PyTorch's only name
BLOCK_ROWS = 64  # that PyTorch packs together
ZERO = 8  # the nibble of a weight of 0
TILES = 1  # an argument that the CPU does not use


Address = int  # of the first element of a tensor


class UnpackedData(SizedData):
    """Data of constants by name; packed weights are unpacked when they are asked for, and not kept so."""

    def __init__(self, data: Mapping[str, Data], packed: Mapping[Address, torch.Tensor]) -> None:
        """Takes ``data``, and the packed weights by the address of the memory that stands for each there."""
        self._data = dict(data)
        self._packed: dict[str, torch.Tensor] = {}
        self._checked: set[str] = set()  # weights that were unpacked before
        self._sizes = {name: len(content) for name, content in data.items()}
        for name, content in data.items():
            weight = packed.get(np.frombuffer(content, np.uint8).ctypes.data) if len(content) else None
            if weight is not None:
                self._packed[name] = weight
                self._data[name] = b""

    def __getitem__(self, name: str) -> Data:
        """Returns the data of a constant. Raises UsageError for a weight in an unknown order of nibbles."""
        if name not in self._packed:
            return self._data[name]
        integers = unpacked(self._packed[name], is_checked=name not in self._checked)
        self._checked.add(name)
        return bytes_of(integers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Returns the bytes of each constant's data by its name, unpacked."""
        return self._sizes


def with_unpacked_weights(
    program: torch.export.ExportedProgram,
) -> tuple[torch.export.ExportedProgram, dict[Address, torch.Tensor]]:
    """Returns a program whose products by packed nibbles take i8 from -8 to 7, of the shape n x k.

    The integers are zeros that nobody has touched, so that they take no memory. The packed weights are
    returned, too, by the addresses of these zeros, for ``UnpackedData``. ``program`` itself is not changed.
    Raises UsageError where such a weight is not a buffer or parameter that these products alone read.
    """
    packed: dict[Address, torch.Tensor] = {}
    nodes = [node for node in program.graph.nodes if node.target is INT4_PRODUCT]
    if not nodes:
        return program, packed
    names = {node.args[1].name for node in nodes}
    made = copy.copy(program)
    made._graph_module = copy.deepcopy(program.graph_module)  # noqa: SLF001 - an ExportedProgram has no setter
    made._state_dict = dict(program.state_dict)  # noqa: SLF001
    made._constants = dict(program.constants)  # noqa: SLF001
    signature = program.graph_signature
    owners = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    for node in made.graph.nodes:
        if node.target is INT4_PRODUCT:
            node.target = product_by_nibbles
        if node.name not in names:
            continue
        is_read_alone = all(user.target is INT4_PRODUCT and user.args[1] is node for user in node.users)
        if node.name not in owners or not is_read_alone:
            raise UsageError(
                "_weight_int4pack_mm_for_cpu: its weight must be a buffer that nothing else reads"
            )
        owner = owners[node.name]
        holder = made._state_dict if owner in made._state_dict else made._constants  # noqa: SLF001
        weight = holder[owner].detach()
        integers = torch.from_numpy(np.zeros((weight.shape[0], 2 * weight.shape[1]), np.int8))
        packed[integers.data_ptr()] = weight
        holder[owner] = integers
        node.meta["val"] = node.meta["val"].fake_mode.from_tensor(integers, static_shapes=True)
    return made, packed


def product_by_nibbles(
    x: torch.Tensor, weight: torch.Tensor, group: int, scales_and_zeros: torch.Tensor
) -> torch.Tensor:
    """Computes ``aten._weight_int4pack_mm_for_cpu`` for a weight of unpacked integers.

    A weight's value is q * scale + zero, q from -8 to 7, with a scale and a zero per ``group`` elements of k
    and per column: ``scales_and_zeros`` is (groups, columns, 2). PyTorch's kernel computes in f32, as this
    does.
    """
    columns, k = weight.shape
    scales, zeros = (part.squeeze(-1).float() for part in scales_and_zeros.split(1, -1))  # groups x columns
    grouped = weight.float().reshape(columns, k // group, group) * scales.t().unsqueeze(2)
    wide = x.float()
    sums = wide.reshape(-1, k // group, group).sum(-1)
    product = wide @ grouped.reshape(columns, k).t() + sums @ zeros
    return product.to(x.dtype)


def unpacked(packed: torch.Tensor, *, is_checked: bool = True) -> torch.Tensor:
    """Returns the integers (i8, -8 to 7) of a weight that PyTorch packed as nibbles, of the shape n x k.

    ``packed``: n x (k / 2) bytes. Raises UsageError if packing these integers again does not give ``packed``:
    an unknown order of nibbles. That takes most of the time, and is left out if not ``is_checked``.
    """
    rows, k = packed.shape[0], 2 * packed.shape[1]
    integers = torch.empty((rows, k), dtype=torch.int8)
    for first in range(0, rows, BLOCK_ROWS):  # rows that are left are a smaller block
        block = packed[first : first + BLOCK_ROWS]
        nibbles = torch.stack((block & 15, block >> 4), -1).reshape(-1)
        part = nibbles.index_select(0, _places(len(block), k)).reshape(len(block), k)
        if is_checked and not torch.equal(PACKED(part.int(), TILES), block):
            raise UsageError("_weight_int4pack_mm_for_cpu: found a weight in an unknown order of nibbles")
        integers[first : first + BLOCK_ROWS] = part.to(torch.int8) - ZERO
    return integers


@lru_cache(maxsize=4)  # of some MB
def _places(rows: int, k: int) -> torch.Tensor:
    """Returns, for each element of packed rows, the index of the nibble that holds it."""
    numbers = torch.arange(rows * k)
    order = torch.zeros_like(numbers)
    for shift in range(0, (rows * k).bit_length(), 4):
        packed = PACKED(((numbers >> shift) & 15).reshape(rows, k).int(), TILES)
        order += torch.stack((packed & 15, packed >> 4), -1).reshape(-1).long() << shift
    places = torch.empty_like(numbers, dtype=torch.int32)
    places[order] = numbers.int()  # ``order``: the element of each nibble
    return places
