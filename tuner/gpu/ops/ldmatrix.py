"""``nvgpu.ldmatrix``: its accessors, and ``tuner.fix_transposed_a`` and ``tuner.merge_ldmatrix``."""

from collections.abc import Hashable

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import affine, integers, symbol, value
from tuner.mlir.ir.index_terms import split_constant
from tuner.mlir.ir.reading import ops_in, walk

TILE = 8  # rows of one tile, 16 bytes each


def tiles_of(load: Op) -> int:
    """Returns how many 8x8 tiles of 16-bit elements an ``nvgpu.ldmatrix`` loads: 1, 2 or 4."""
    return int(ir.IntegerAttr(load.attributes["numTiles"]).value)


def is_transposed(load: Op) -> bool:
    """Returns whether an ``nvgpu.ldmatrix`` transposes the tiles that it loads."""
    return bool(ir.BoolAttr(load.attributes["transpose"]).value)


class FixTransposedAOp(InPlaceOp, name="fix_transposed_a"):
    """``tuner.fix_transposed_a``: corrects the lane addresses of a transposed A.

    Takes a function right after ``convert-vector-to-gpu``, which gives the fragment of a transposed A (k
    rows, m columns in shared memory) the lane addresses of a B operand. Exchanges the addresses of lanes
    8..15 and 16..23 of every transposed load of four tiles. Run this op once, before
    ``tuner.merge_ldmatrix``, whose loads look the same: correct loads are made wrong.

        %x = nvgpu.ldmatrix %tile[%i, %j] {numTiles = 4 : i32, transpose = true} : ...
      becomes
        %lane = gpu.lane_id
        %row = affine.apply affine_map<()[s0, s1] -> (s1 + (s0 floordiv 16) * 8 - ...)>()[%lane, %i]
        %column = affine.apply affine_map<()[s0, s1] -> (s1 - ((s0 floordiv 16) * 8 - ...))>()[%lane, %j]
        %x = nvgpu.ldmatrix %tile[%row, %column] {numTiles = 4 : i32, transpose = true} : ...

    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for load in walk(function, "nvgpu.ldmatrix"):
            if tiles_of(load) == 4 and is_transposed(load):
                _exchange(load)
        return None


def _exchange(load: Op) -> None:
    """Adds d = (lane / 16 - lane / 8 % 2) * 8 to the row, and subtracts d from the column."""
    row = len(load.operands) - 2
    column = len(load.operands) - 1
    with load.location, ir.InsertionPoint(load):
        lane = value("gpu.lane_id", ir.IndexType.get())
        half, eighth = (ir.AffineExpr.get_floor_div(symbol(0), lanes) for lanes in (16, 8))
        distance = half * 8 + ir.AffineExpr.get_mod(eighth, 2) * -8
        load.operands[row] = affine(symbol(1) + distance, lane, load.operands[row])
        load.operands[column] = affine(symbol(1) + distance * -1, lane, load.operands[column])


class MergeLdmatrixOp(InPlaceOp, name="merge_ldmatrix"):
    """``tuner.merge_ldmatrix``: merges two loads of adjacent B fragments into one (ldmatrix.x2 twice -> .x4).

    Takes a function right after ``convert-vector-to-gpu``, which loads B for one ``mma.sync`` of 8 columns
    at a time. Gives one load of four tiles for two loads of two tiles at columns n and n + 8 in the body of
    the same ``scf.for``. Other loads stay, such as those after swizzling or pipelining.

        %x = nvgpu.ldmatrix %tile[%k, %n] {numTiles = 2 : i32, transpose = true} : ... -> vector<2x2xf16>
        %n8 = affine.apply affine_map<()[s0] -> (s0 mod 8 + 8)>()[%lane]
        %y = nvgpu.ldmatrix %tile[%k, %n8] {numTiles = 2 : i32, transpose = true} : ... -> vector<2x2xf16>
      becomes
        %xy = nvgpu.ldmatrix %tile[%k, %n] {numTiles = 4 : i32, transpose = true} : ... -> vector<4x2xf16>
        %x = vector.extract_strided_slice %xy {offsets = [0, 0], sizes = [2, 2], strides = [1, 1]} : ...
        %y = vector.extract_strided_slice %xy {offsets = [2, 0], sizes = [2, 2], strides = [1, 1]} : ...

    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for loop in walk(function, "scf.for"):
            _merge_in(loop)
        return None


def _merge_in(loop: Op) -> None:
    groups: dict[Hashable, dict[int, Op]] = {}
    for load in ops_in(loop.regions[0].blocks[0]):
        if load.name == "nvgpu.ldmatrix" and tiles_of(load) == 2:
            key, column = _key_and_column(load)
            groups.setdefault(key, {})[column] = load
    for group in groups.values():
        for column in sorted(group):
            first = group.get(column)
            second = group.get(column + TILE)
            if first is not None and second is not None and first.is_before_in_block(second):
                _merge(first, second)
                del group[column + TILE]


def _key_and_column(load: Op) -> tuple[Hashable, int]:
    """Returns (key, n): loads of equal keys differ only by the constant n in their column of B."""
    buffer, *indices = load.operands
    terms = list(map(split_constant, indices))
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
            positions = {"offsets": [offset, 0], "sizes": [2, per_register], "strides": [1, 1]}
            attributes = {name: integers(numbers) for name, numbers in positions.items()}
            half = value("vector.extract_strided_slice", part, whole, **attributes)
            load.results[0].replace_all_uses_with(half)
    first.erase()
    second.erase()


def _lanes_of_four_tiles(indices: list[Value], per_register: int) -> list[Value]:
    """Creates a lane's [row, column] to load four tiles, not transposed, by those to load two tiles.

    Lanes 16..31 move 8 rows down and two tiles back.
    """
    lane = value("gpu.lane_id", ir.IndexType.get())
    upper = ir.AffineExpr.get_floor_div(symbol(0), 16)
    row = affine(symbol(1) + upper * TILE, lane, indices[0])
    return [row, affine(symbol(1) + upper * (-TILE * per_register), lane, indices[1])]
