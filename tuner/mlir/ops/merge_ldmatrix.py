"""``tuner.merge_ldmatrix``: two neighbouring loads of B fragments become one."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import affine, integers, symbol, value
from tuner.mlir.index_terms import split_constant
from tuner.mlir.ldmatrix import TILE, is_transposed, tiles_of
from tuner.mlir.ops.dialect import InPlaceOp, walk


class MergeLdmatrixOp(InPlaceOp, name="merge_ldmatrix"):
    """Joins ``nvgpu.ldmatrix`` of two tiles at n and n + 8 to one of four tiles.

    ``convert-vector-to-gpu`` loads B for one ``mma.sync`` of 8 columns at a time. Run after it, while indices
    still are affine functions of the lane: before swizzling and pipelining. The handle (a func.func) stays
    valid. Never fails: loads without a neighbour are left.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        for loop in walk(function, "scf.for"):
            _merge_in(loop)
        return None


def _merge_in(loop: Any) -> None:
    groups: dict[Any, dict[int, Any]] = {}
    for load in (each.operation for each in loop.regions[0].blocks[0].operations):
        if load.name == "nvgpu.ldmatrix" and tiles_of(load) == 2:
            key, column = _place(load)
            groups.setdefault(key, {})[column] = load
    for group in groups.values():
        for column in sorted(group):
            first, second = group.get(column), group.get(column + TILE)
            if first is not None and second is not None and first.is_before_in_block(second):
                _merge(first, second)
                del group[column + TILE]


def _place(load: Any) -> tuple[Any, int]:
    """Returns what neighbours have in common, and the column of B (n), a constant plus that."""
    buffer, *indices = load.operands
    terms = [split_constant(each) for each in indices]
    n = len(terms) - 1 if is_transposed(load) else len(terms) - 2
    others = tuple(number for at, (_, number) in enumerate(terms) if at != n)
    return (buffer, is_transposed(load), tuple(base for base, _ in terms), others), terms[n][1]


def _merge(first: Any, second: Any) -> None:
    part = ir.VectorType(first.results[0].type)
    per_register = part.shape[1]  # elements: 2 of 16 bits, 1 of 32
    buffer, *indices = first.operands
    with first.location, ir.InsertionPoint(first):
        if not is_transposed(first):
            indices[-2:] = _lanes_of_four_tiles(indices[-2:], per_register)
        whole = value(
            "nvgpu.ldmatrix",
            ir.VectorType.get([4, per_register], part.element_type),
            *(buffer, *indices),
            transpose=first.attributes["transpose"],
            numTiles=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        )
        for load, offset in ((first, 0), (second, 2)):
            places = {"offsets": [offset, 0], "sizes": [2, per_register], "strides": [1, 1]}
            attributes = {name: integers(numbers) for name, numbers in places.items()}
            half = value("vector.extract_strided_slice", part, whole, **attributes)
            load.results[0].replace_all_uses_with(half)
    first.erase()
    second.erase()


def _lanes_of_four_tiles(indices: list[Any], per_register: int) -> list[Any]:
    """Moves lanes 16..31 eight rows down, and back over the two tiles' columns that they had advanced.

    In the transposed form the lanes' addresses cover all four tiles already.
    """
    lane = value("gpu.lane_id", ir.IndexType.get())
    upper = ir.AffineExpr.get_floor_div(symbol(0), 16)
    row = affine(symbol(1) + upper * TILE, lane, indices[0])
    return [row, affine(symbol(1) + upper * (-TILE * per_register), lane, indices[1])]
