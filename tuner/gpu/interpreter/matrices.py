"""Steps of reductions and contractions of vectors, of subgroup matrices, and of tensor-core fragments.

A step runs an operation in all active lanes of a frame (``tuner.gpu.interpreter.decoding``).
Values are arrays (blocks, threads, *vector); ``by_subgroup`` makes them (blocks, subgroups, lanes, ...).
"""

import functools
import re
from typing import Any, TypeAlias

import numpy as np

from tuner.gpu.interpreter import arithmetic, memory
from tuner.gpu.interpreter.arithmetic import Compute, aligned, combination, fused, step_of
from tuner.gpu.interpreter.decoding import Decode, FunctionScope, LaneFrame, Step, require, where_of
from tuner.gpu.interpreter.lanes import (
    SUBGROUP,
    Array,
    BufferView,
    ElementType,
    signed,
    to_integer,
    with_trailing_axes,
)
from tuner.gpu.interpreter.subgroup_ops import (
    active_by_subgroup,
    by_lane,
    by_subgroup,
    require_whole_subgroups,
)
from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.reading import maps_in, unsupported

LETTERS = "abcdefghijklmnopqrstuvwxyz"
Places: TypeAlias = tuple[Array, Array]  # row, column
LANES = np.arange(SUBGROUP)[:, None, None]
GROUP = LANES // 4
NUMBER = LANES % 4
REGISTER_BYTES = 4
ROW_BYTES = 16  # of a tile of 8 rows that ldmatrix loads; PTX ISA, ldmatrix
TILE_ROWS = 8
TF32_DROPPED = np.uint32((1 << 13) - 1)  # bits of an f32 that a tensor core does not read
SHAPE = re.compile(r"!gpu\.mma_matrix<([0-9]+)x([0-9]+)x(\w+),")
ELEMENTWISE: dict[str, Compute] = {
    **{name: arithmetic.FLOAT_BINARY[name] for name in ("addf", "subf", "mulf", "divf")},
    **{f"{name}f": arithmetic.FLOAT_BINARY[f"{name}imumf"] for name in ("max", "min")},
    **{name: arithmetic.INTEGER_BINARY[name] for name in ("addi", "subi", "muli")},
    **dict.fromkeys(("negatef", "negates"), np.negative),
}


def reduction(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.reduction``, which combines the elements from the first to the last."""
    combine = combination(op, scope, str(op.attributes["kind"]))

    def compute(values: Array, start: Array | None = None) -> Array:
        elements = [values[:, :, number] for number in range(values.shape[2])]
        return functools.reduce(combine, elements if start is None else [start, *elements])

    return step_of(op, scope, compute)


def multi_reduction(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.multi_reduction``, in row-major order of the reduced dimensions."""
    combine = combination(op, scope, str(op.attributes["kind"]))
    axes = [2 + axis for axis in ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])]

    def compute(values: Array, start: Array) -> Array:
        moved = np.moveaxis(values, axes, range(len(axes)))
        return functools.reduce(combine, moved.reshape(-1, *moved.shape[len(axes) :]), start)

    return step_of(op, scope, compute)


def contract(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.contract`` of kind add; floats are added in float64, rounded once.

    Raises CandidateError(COMPILE) for another kind.
    """
    if str(op.attributes["kind"]) != "#vector.kind<add>":
        raise unsupported(op, str(op.attributes["kind"]), "#vector.kind<add>")
    maps = maps_in(op)
    axes = [
        "".join(LETTERS[ir.AffineDimExpr(result).position] for result in mapping.results) for mapping in maps
    ]
    sum_of = f"...{axes[0]},...{axes[1]}->...{axes[2]}"
    dtype = scope.element(op, op.results[0].type).dtype

    def compute(left: Array, right: Array, start: Array) -> Array:
        if dtype.kind in "ib":
            whole = (signed(factor).astype(np.int64) for factor in (left, right))
            return to_integer(np.einsum(sum_of, *whole) + start, dtype)
        wide = (factor.astype(np.float64) for factor in (left, right))
        total: Array = np.einsum(sum_of, *wide) + start.astype(np.float64)
        return total.astype(dtype)

    return step_of(op, scope, compute)


def outer_product(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``vector.outerproduct`` of kind add; floats with an accumulator are rounded once.

    Raises CandidateError(COMPILE) for another kind.
    """
    if str(op.attributes["kind"]) != "#vector.kind<add>":
        raise unsupported(op, str(op.attributes["kind"]), "#vector.kind<add>")
    is_whole = scope.element(op, op.results[0].type).dtype.kind in "ib"

    def compute(left: Array, right: Array, start: Array | None = None) -> Array:
        if right.ndim == left.ndim:
            left = left[..., :, None]
            right = right[..., None, :]
        else:
            right = aligned(right, left)
        if start is None:
            return left * right
        if is_whole:
            return arithmetic.INTEGER_BINARY["addi"](left * right, start)
        return fused(left, right, start)

    return step_of(op, scope, compute)


CONTRACTIONS: dict[str, Decode] = {
    "vector.reduction": reduction,
    "vector.multi_reduction": multi_reduction,
    "vector.contract": contract,
    "vector.outerproduct": outer_product,
}


# Matrix multiplications by a subgroup whose lanes hold fragments of the matrices in PTX's layout.
#
# Lane ``l`` is number ``l % 4`` of group ``l / 4``. A register has 32 bits, or one f64; the figures of PTX
# ISA, "Matrix Fragments for mma", show which elements of A, B and C a register holds.


def multiply_fragments(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.mma.sync``: a @ b + c on matrices whose fragments a subgroup's lanes hold.

    Floats are rounded once, as by ``multiplied``; with ``tf32Enabled``, A and B are truncated to tf32 first.
    Raises CandidateError(COMPILE) for fragments that are not vectors of two dimensions.
    """
    m, n, k = (ir.IntegerAttr(size).value for size in ir.ArrayAttr(op.attributes["mmaShape"]))
    sources = scope.slots(op.operands)
    (target,) = scope.slots(op.results)
    where = where_of(op)
    kinds = [scope.element(op, operand.type) for operand in op.operands]
    is_tf32 = "tf32Enabled" in op.attributes
    if any(len(type_.shape) != 2 for type_ in kinds):
        raise unsupported(op, "fragments that are not vectors of registers", "two dimensions")
    of_a, of_b, of_c = kinds
    shapes = ((m, k), (k, n), (m, n))
    halves = m // TILE_ROWS  # number of row halves per column block; the next registers hold the next columns
    register, item = _within(of_a)
    row_of_a = GROUP + TILE_ROWS * (register % halves)
    block = register // halves
    places = [_spread(row_of_a, _along(item) + block * 4 * item.size)]
    register, item = _within(of_b)
    places.append(_spread(_along(item) + register * 4 * item.size, GROUP))
    register, item = _within(of_c)
    places.append(_spread(GROUP + TILE_ROWS * register, _along(item)))

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        fragments = [by_subgroup(frame.grid, frame.values[slot]) for slot in sources]
        a, b, c = (_matrix(*fragment) for fragment in zip(fragments, shapes, places, strict=True))
        if is_tf32:
            a, b = ((factor.view(np.uint32) & ~TF32_DROPPED).view(np.float32) for factor in (a, b))
        product = multiplied(a, b, c)
        frame.values[target] = by_lane(frame.grid, product[:, :, places[2][0], places[2][1]])

    return step


def multiplied(a: Array, b: Array, c: Array) -> Array:
    """Returns ``a @ b + c`` in the type of ``c``, computed in float64 or, for integers, in int64."""
    if c.dtype.kind == "i":
        wide = [signed(factor).astype(np.int64) for factor in (a, b)]
        return to_integer(wide[0] @ wide[1] + c, c.dtype)
    left, right, start = (matrix.astype(np.float64) for matrix in (a, b, c))
    total: Array = left @ right + start
    return total.astype(c.dtype)


def _within(fragment: ElementType) -> tuple[Array, Array]:
    registers, items = fragment.shape
    return np.arange(registers)[None, :, None], np.arange(items)[None, None, :]


def _along(item: Array) -> Array:
    """Returns the position of each item of a register along the row or column that a group holds."""
    return NUMBER * item.size + item


def _spread(row: Array, column: Array) -> Places:
    rows, columns = np.broadcast_arrays(row, column)
    return rows, columns


def _matrix(fragments: Array, shape: tuple[int, int], places: Places) -> Array:
    matrix = np.zeros((*fragments.shape[:2], *shape), fragments.dtype)
    matrix[:, :, places[0], places[1]] = fragments
    return matrix


def load_matrix(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``nvgpu.ldmatrix``: loads tiles of 8 rows of 16 bytes from shared memory.

    Lane ``8 i + r`` provides the address of row ``r`` of tile ``i``.
    """
    source, *indices = scope.slots(op.operands)
    (target,) = scope.slots(op.results)
    where = where_of(op)
    kind = scope.element(op, op.operands[0].type)
    tiles = ir.IntegerAttr(op.attributes["numTiles"]).value
    is_transposed = ir.BoolAttr(op.attributes["transpose"]).value
    item = np.arange(max(REGISTER_BYTES // kind.dtype.itemsize, 1))[None, None, :]
    row, column = _spread(GROUP, _along(item))
    if is_transposed:
        row, column = column, row
    provider = TILE_ROWS * np.arange(tiles)[None, :, None] + row  # lane with the address; [lane, tile, item]

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        view = frame.values[source]
        addresses = view.at(frame.take(indices), kind.size_bytes)
        # lanes beyond 8 per tile hold no address that is used: theirs may be anything
        provides_address = frame.grid.linear_thread % SUBGROUP < TILE_ROWS * tiles
        inside = (addresses >= view.low) & (addresses + ROW_BYTES <= view.high)
        require(inside | ~provides_address, frame, where, "found a row outside of its buffer")
        is_aligned = addresses % ROW_BYTES == 0
        require(is_aligned | ~provides_address, frame, where, f"found no multiple of {ROW_BYTES}")
        rows = by_subgroup(frame.grid, addresses)[:, :, provider]  # [block, subgroup, lane, tile, item]
        active = np.broadcast_to(active_by_subgroup(frame)[..., None, None], rows.shape)
        loaded = np.zeros(rows.shape, kind.dtype)
        items = np.broadcast_to(rows + column * kind.size_bytes, rows.shape)
        loaded[active] = memory.read(kind.dtype, items[active])
        frame.values[target] = by_lane(frame.grid, loaded)

    return step


TENSOR_CORES: dict[str, Decode] = {"nvgpu.mma.sync": multiply_fragments, "nvgpu.ldmatrix": load_matrix}


# Matrices distributed over a subgroup: in this interpreter every lane has a copy of the whole matrix.


def shape_of(type_: Any) -> tuple[int, int]:
    """Returns (rows, columns) of ``type_``, an MLIR type ``!gpu.mma_matrix``."""
    match = SHAPE.match(str(type_))
    assert match is not None
    return int(match[1]), int(match[2])


def load(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_load_matrix``: each lane loads a copy of the whole matrix."""
    source, *indices = scope.slots(op.operands)
    (target,) = scope.slots(op.results)
    where = where_of(op)
    kind = scope.element(op, op.operands[0].type)
    places = _places(op, shape_of(op.results[0].type)) * kind.size_bytes
    everything = np.ones((1, 1, *places.shape), bool)

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        view: BufferView = frame.values[source]
        addresses = with_trailing_axes(view.at(frame.take(indices), kind.size_bytes), 2) + places
        frame.values[target] = memory.load_where(frame, where, view, kind, addresses, everything)

    return step


def store(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_store_matrix``: each lane stores the whole matrix."""
    value, to, *indices = scope.slots(op.operands)
    kind = scope.element(op, op.operands[1].type)
    where = where_of(op)
    places = _places(op, shape_of(op.operands[0].type)) * kind.size_bytes
    everything = np.ones((1, 1, *places.shape), bool)

    def step(frame: LaneFrame) -> None:
        require_whole_subgroups(frame, where)
        view: BufferView = frame.values[to]
        addresses = with_trailing_axes(view.at(frame.take(indices), kind.size_bytes), 2) + places
        memory.store_where(frame, where, view, kind, addresses, everything, frame.values[value])

    return step


def _places(op: Op, shape: tuple[int, int]) -> Array:
    leading = ir.IntegerAttr(op.attributes["leadDimension"]).value
    row, column = np.indices(shape)
    if "transpose" in op.attributes:
        row, column = column, row
    offsets: Array = row * leading + column  # of each element from the first, in elements
    return offsets


def multiply_matrices(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_compute``: a @ b + c, rounded once for floats."""
    a_is_transposed = "a_transpose" in op.attributes
    b_is_transposed = "b_transpose" in op.attributes

    def compute(a: Array, b: Array, c: Array) -> Array:
        a = a.swapaxes(-1, -2) if a_is_transposed else a
        b = b.swapaxes(-1, -2) if b_is_transposed else b
        return multiplied(a, b, c)

    return step_of(op, scope, compute)


def constant(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_constant_matrix``: a matrix with one number in all elements."""
    shape = shape_of(op.results[0].type)
    return step_of(
        op, scope, lambda value: np.broadcast_to(with_trailing_axes(value, 2), (*value.shape, *shape))
    )


def elementwise(op: Op, scope: FunctionScope) -> Step:
    """Returns the step for ``gpu.subgroup_mma_elementwise``: a function of each matrix element.

    Raises CandidateError(COMPILE) for a function that ``ELEMENTWISE`` does not list.
    """
    name = str(op.attributes["opType"]).removeprefix("#gpu<mma_element_wise ").removesuffix(">")
    if name not in ELEMENTWISE:
        raise unsupported(op, name, ", ".join(ELEMENTWISE))
    return step_of(op, scope, ELEMENTWISE[name])


SUBGROUP_MATRICES: dict[str, Decode] = {
    "gpu.subgroup_mma_load_matrix": load,
    "gpu.subgroup_mma_store_matrix": store,
    "gpu.subgroup_mma_compute": multiply_matrices,
    "gpu.subgroup_mma_constant_matrix": constant,
    "gpu.subgroup_mma_elementwise": elementwise,
}

DECODERS: dict[str, Decode] = {**CONTRACTIONS, **SUBGROUP_MATRICES, **TENSOR_CORES}
