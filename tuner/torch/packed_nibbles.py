"""Weights that PyTorch packed for ``_weight_int4pack_mm_for_cpu``, as integers of i8 again.

The order of the packed nibbles depends on the processor and on PyTorch's version, so it is read from PyTorch
itself: the digits of each element's number are packed. What is unpacked must pack to the same bytes.
"""

import copy
from functools import lru_cache

import torch

from tuner.core.errors import UsageError

INT4_PRODUCT = torch.ops.aten._weight_int4pack_mm_for_cpu.default  # noqa: SLF001 - what models call
PACKED = torch.ops.aten._convert_weight_to_int4pack_for_cpu  # noqa: SLF001 - PyTorch's only name
BLOCK_ROWS = 64  # that PyTorch packs together
ZERO = 8  # the nibble of a weight of 0
TILES = 1  # an argument that the CPU does not use


def with_unpacked_weights(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Returns a program whose products by packed nibbles take i8 from -8 to 7, of the shape n x k.

    ``program`` itself is not changed. Raises UsageError where such a weight is not a buffer or parameter that
    these products alone read, or is packed in an unknown order.
    """
    nodes = [node for node in program.graph.nodes if node.target is INT4_PRODUCT]
    if not nodes:
        return program
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
        integers = unpacked(holder[owner].detach())
        holder[owner] = integers
        node.meta["val"] = node.meta["val"].fake_mode.from_tensor(integers, static_shapes=True)
    return made


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


def unpacked(packed: torch.Tensor) -> torch.Tensor:
    """Returns the integers (i8, -8 to 7) of a weight that PyTorch packed as nibbles, of the shape n x k.

    ``packed``: n x (k / 2) bytes. Raises UsageError if packing these integers again does not give ``packed``:
    an unknown order of nibbles.
    """
    k = 2 * packed.shape[1]
    whole = packed.shape[0] // BLOCK_ROWS * BLOCK_ROWS
    parts = []
    for part in filter(len, (packed[:whole], packed[whole:])):  # rows that are left are a smaller block
        block_rows = min(BLOCK_ROWS, part.shape[0])
        nibbles = torch.stack((part & 15, part >> 4), -1).reshape(-1, block_rows * k)
        integers = torch.empty_like(nibbles)
        integers[:, _order(block_rows, k)] = nibbles
        parts.append(integers.reshape(-1, k))
    all_integers = torch.cat(parts)
    if not torch.equal(PACKED(all_integers.int(), TILES), packed):
        raise UsageError("_weight_int4pack_mm_for_cpu: found a weight in an unknown order of nibbles")
    return all_integers.to(torch.int8) - ZERO


@lru_cache(maxsize=16)
def _order(rows: int, k: int) -> torch.Tensor:
    """Returns, for each nibble of packed rows, the flat index of the element that the nibble holds."""
    numbers = torch.arange(rows * k)
    order = torch.zeros_like(numbers)
    for shift in range(0, (rows * k).bit_length(), 4):
        packed = PACKED(((numbers >> shift) & 15).reshape(rows, k).int(), TILES)
        order += torch.stack((packed & 15, packed >> 4), -1).reshape(-1).long() << shift
    return order
