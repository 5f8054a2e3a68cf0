"""``tuner.merge_ldmatrix``: merges two loads of adjacent B fragments into one (ldmatrix.x2 twice -> .x4).

Takes a function right after ``convert-vector-to-gpu``, which loads B for one ``mma.sync`` of 8 columns at a
time; indices are still affine functions of the lane. Gives one load of four tiles for two loads of two tiles
at columns n and n + 8. Loads outside of ``scf.for``, after swizzling or pipelining, and loads without an
adjacent load stay.

    %x = nvgpu.ldmatrix %tile[%k, %n] {numTiles = 2 : i32, transpose = true} : ... -> vector<2x2xf16>
    %n8 = affine.apply affine_map<()[s0] -> (s0 mod 8 + 8)>()[%lane]
    %y = nvgpu.ldmatrix %tile[%k, %n8] {numTiles = 2 : i32, transpose = true} : ... -> vector<2x2xf16>
  becomes
    %xy = nvgpu.ldmatrix %tile[%k, %n] {numTiles = 4 : i32, transpose = true} : ... -> vector<4x2xf16>
    %x = vector.extract_strided_slice %xy {offsets = [0, 0], sizes = [2, 2], strides = [1, 1]} : ...
    %y = vector.extract_strided_slice %xy {offsets = [2, 0], sizes = [2, 2], strides = [1, 1]} : ...
"""

from collections.abc import Hashable

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.building import affine, integers, symbol, value
from tuner.mlir.rewrite.index_terms import split_constant
from tuner.mlir.rewrite.ldmatrix import TILE, is_transposed, tiles_of
from tuner.mlir.rewrite.walking import walk


class MergeLdmatrixOp(InPlaceOp, name="merge_ldmatrix"):
    """The transform op ``tuner.merge_ldmatrix``, which merges two loads of adjacent B fragments into one.

    Two ``nvgpu.ldmatrix`` of two tiles, 8 columns apart in the body of the same ``scf.for``, become one of
    four tiles; other loads stay. The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> str | None:
        """Merges pairs of ``nvgpu.ldmatrix`` of adjacent B fragments in the loops of one function, in place.

        Always returns None.
        """
        for loop in walk(function, "scf.for"):
            _merge_in(loop)
        return None


def _merge_in(loop: Op) -> None:
    groups: dict[Hashable, dict[int, Op]] = {}
    for load in (each.operation for each in loop.regions[0].blocks[0].operations):
        if load.name == "nvgpu.ldmatrix" and tiles_of(load) == 2:
            key, column = _key_and_column(load)
            groups.setdefault(key, {})[column] = load
    for group in groups.values():
        for column in sorted(group):
            first, second = group.get(column), group.get(column + TILE)
            if first is not None and second is not None and first.is_before_in_block(second):
                _merge(first, second)
                del group[column + TILE]


def _key_and_column(load: Op) -> tuple[Hashable, int]:
    """Returns (key, n): loads of equal keys differ only by the constant n in their column of B."""
    buffer, *indices = load.operands
    terms = [split_constant(each) for each in indices]
    n = len(terms) - 1 if is_transposed(load) else len(terms) - 2
    others = tuple(number for at, (_, number) in enumerate(terms) if at != n)
    return (buffer, is_transposed(load), tuple(base for base, _ in terms), others), terms[n][1]


def _merge(first: Op, second: Op) -> None:
    part = ir.VectorType(first.results[0].type)
    per_register = part.shape[1]  # elements per 32-bit register: 2 or 1
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


def _lanes_of_four_tiles(indices: list[Value], per_register: int) -> list[Value]:
    """Creates the addresses of four tiles from those of two: lanes 16..31 move 8 rows down, two tiles back.

    In the transposed form lanes 16..31 have the right addresses already.
    """
    lane = value("gpu.lane_id", ir.IndexType.get())
    upper = ir.AffineExpr.get_floor_div(symbol(0), 16)
    row = affine(symbol(1) + upper * TILE, lane, indices[0])
    return [row, affine(symbol(1) + upper * (-TILE * per_register), lane, indices[1])]
