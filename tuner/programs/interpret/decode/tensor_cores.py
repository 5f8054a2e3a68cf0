"""Matrix multiplications by a subgroup whose lanes hold fragments of the matrices in PTX's layout.

Lane ``l`` is number ``l % 4`` of group ``l / 4``. A register has 32 bits, or one f64; the figures of PTX ISA,
"Matrix Fragments for mma", show which elements of A, B and C a register holds.
"""

from typing import TypeAlias

import numpy as np

from tuner.core.numpy_types import DType
from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret import flat_memory
from tuner.programs.interpret.element_types import Array, ElementType, signed, to_integer
from tuner.programs.interpret.frame import LaneFrame, Step, require
from tuner.programs.interpret.lane_grid import SUBGROUP
from tuner.programs.interpret.scope import Decode, FunctionScope, where_of
from tuner.programs.interpret.subgroups import (
    active_by_subgroup,
    by_lane,
    by_subgroup,
    require_whole_subgroups,
)

Places: TypeAlias = tuple[Array, Array]  # row, column
LANES = np.arange(SUBGROUP)[:, None, None]
GROUP, NUMBER = LANES // 4, LANES % 4
REGISTER_BYTES = 4
ROW_BYTES = 16  # of a tile of 8 rows that ldmatrix loads; PTX ISA, ldmatrix
TILE_ROWS = 8
TF32_DROPPED = np.uint32((1 << 13) - 1)  # bits of an f32 that a tensor core does not read


def multiply(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.mma.sync``: a @ b + c on matrices whose fragments a subgroup's lanes hold.

    Floats are multiplied and summed in float64 and rounded once; with ``tf32Enabled``, A and B are truncated
    to tf32 first. A step is a function that executes ``op`` in all active lanes (GPU threads) of a frame;
    ``scope`` maps SSA values to frame slots. Raises CandidateError(COMPILE) for fragments that are no vectors
    of two dimensions. The step raises CandidateError(RUN) if only some lanes of a subgroup take part.
    """
    m, n, k = (ir.IntegerAttr(each).value for each in ir.ArrayAttr(op.attributes["mmaShape"]))
    sources, (target,), where = scope.slots(op.operands), scope.slots(op.results), where_of(op)
    kinds = [scope.element(op, each.type) for each in op.operands]
    is_tf32 = "tf32Enabled" in op.attributes
    if any(len(kind.shape) != 2 for kind in kinds):
        raise unsupported(op, "fragments that are no vectors of registers", "two dimensions")
    (of_a, of_b, of_c), shapes = kinds, ((m, k), (k, n), (m, n))
    places = [_of_a(m, of_a), _of_b(of_b), _of_c(of_c)]

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        fragments = [by_subgroup(frame.grid, frame.values[slot]) for slot in sources]
        a, b, c = (_matrix(*each) for each in zip(fragments, shapes, places, strict=True))
        if is_tf32:
            a, b = _truncated(a), _truncated(b)
        found = multiplied(a, b, c)
        frame.values[target] = by_lane(frame.grid, found[:, :, places[2][0], places[2][1]])

    return step


def multiplied(a: Array, b: Array, c: Array) -> Array:
    """Returns ``a @ b + c`` of the last two axes, in the type of ``c``.

    Floats are computed in float64 and rounded once; integers are computed in int64 and truncated.
    """
    if c.dtype.kind == "i":
        wide = [signed(each).astype(np.int64) for each in (a, b)]
        return to_integer(wide[0] @ wide[1] + c, c.dtype)
    one, other, start = (each.astype(np.float64) for each in (a, b, c))
    total: Array = one @ other + start
    return total.astype(c.dtype)


def _of_a(m: int, fragment: ElementType) -> Places:
    """Returns (row, column) of each element of A that a lane holds, of axes [lane, register, item]."""
    register, item = _within(fragment)
    halves = m // TILE_ROWS  # number of row halves per column block; the next registers hold the next columns
    row, column = GROUP + TILE_ROWS * (register % halves), _along(item) + register // halves * 4 * item.size
    return _spread(row, column)


def _of_b(fragment: ElementType) -> Places:
    register, item = _within(fragment)
    return _spread(_along(item) + register * 4 * item.size, GROUP)


def _of_c(fragment: ElementType) -> Places:
    register, item = _within(fragment)
    return _spread(GROUP + TILE_ROWS * register, _along(item))


def _within(fragment: ElementType) -> tuple[Array, Array]:
    registers, items = fragment.shape
    return np.arange(registers)[None, :, None], np.arange(items)[None, None, :]


def _along(item: Array) -> Array:
    """Returns the position of each item of a register along the row or column that a group holds."""
    return NUMBER * item.size + item


def _spread(row: Array, column: Array) -> Places:
    one, other = np.broadcast_arrays(row, column)
    return one, other


def _items(dtype: DType) -> int:
    """Returns the number of elements per register."""
    return max(REGISTER_BYTES // dtype.itemsize, 1)


def _matrix(fragments: Array, shape: tuple[int, int], places: Places) -> Array:
    matrix = np.zeros((*fragments.shape[:2], *shape), fragments.dtype)
    matrix[:, :, places[0], places[1]] = fragments
    return matrix


def _truncated(numbers: Array) -> Array:
    """Returns f32 numbers truncated to tf32, as a tensor core reads them."""
    return (numbers.view(np.uint32) & ~TF32_DROPPED).view(np.float32)


def load_matrix(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.ldmatrix``, which loads tiles of 8 rows of 16 bytes from shared memory.

    Lane ``8 i + r`` provides the address of row ``r`` of tile ``i``. A step is a function that executes
    ``op`` in all active lanes (GPU threads) of a frame; ``scope`` maps SSA values to frame slots. The step
    raises CandidateError(RUN) for an address out of bounds or misaligned, and if only some lanes of a
    subgroup take part.
    """
    source, *indices = scope.slots(op.operands)
    (target,), where = scope.slots(op.results), where_of(op)
    kind = scope.element(op, op.operands[0].type)
    tiles = ir.IntegerAttr(op.attributes["numTiles"]).value
    is_transposed = ir.BoolAttr(op.attributes["transpose"]).value
    item = np.arange(_items(kind.dtype))[None, None, :]
    row, column = _spread(GROUP, _along(item))
    if is_transposed:
        row, column = column, row
    teller = TILE_ROWS * np.arange(tiles)[None, :, None] + row  # [lane, tile, item]

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        view = frame.values[source]
        addresses = view.at(frame.take(indices), kind.size_bytes)
        provides_address = frame.grid.linear_thread % SUBGROUP < TILE_ROWS * tiles
        inside = (addresses >= view.low) & (addresses + ROW_BYTES <= view.high)
        require(inside | ~provides_address, frame, where, "found a row outside of its buffer")
        require(
            (addresses % ROW_BYTES == 0) | ~provides_address,
            frame,
            where,
            f"found no multiple of {ROW_BYTES}",
        )
        rows = by_subgroup(frame.grid, addresses)[:, :, teller]
        active = np.broadcast_to(active_by_subgroup(frame)[..., None, None], rows.shape)
        found = np.zeros(rows.shape, kind.dtype)
        places = np.broadcast_to(rows + column * kind.size_bytes, rows.shape)
        found[active] = flat_memory.read(kind.dtype, places[active])
        frame.values[target] = by_lane(frame.grid, found)

    return step


DECODERS: dict[str, Decode] = {
    "nvgpu.mma.sync": multiply,
    "nvgpu.ldmatrix": load_matrix,
}
