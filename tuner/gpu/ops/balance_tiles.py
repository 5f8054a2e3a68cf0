"""The transform ops that share out tiles of the last, partial wave of blocks along K."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.gpu.ir.launches import TILE_GRID, constant_grid, index_along
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.effects.launches import axis_of
from tuner.mlir.ir.building import affine, index, is_less, symbol, value
from tuner.mlir.ir.reading import constant_of, ops_in, users_of, uses_of, walk


class BalanceTilesOp(InPlaceOp, name="balance_tiles"):
    """``tuner.balance_tiles``: tiles of the last, partial wave of blocks are shared out along K.

    Takes a function with one ``gpu.launch``, a tile of C per block, whose body has one loop along K at its
    top level, from 0, with constant bounds. Gives a grid of one row: the first ``whole`` blocks compute whole
    tiles, as many as fill all multiprocessors; of each tile that is left ``parts`` blocks, one after the
    other, sum a part of K. ``tuner.add_parts`` with the same ``whole`` adds the parts. Tiles are numbered in
    bands of ``group`` rows, within a band column by column.

        gpu.launch blocks(...) in (%gx = %c3, %gy = %c1, ...) ...
          scf.for %k = %c0 to %c64 step %c8 {
      with whole = 2 and parts = 2 becomes
        gpu.launch blocks(...) in (%gx = %c4, %gy = %c1, ...) ...
          %first = arith.select %is_whole, %c0, %of_part : index
          scf.for %j = %c0 to %c64 step %c8 {
            %k = arith.addi %j, %first : index

    ``tuner.shorten_parts`` must follow after the pipeliner: here all loops are still of whole length.
    Attributes (i64): ``whole`` (default 0), ``parts`` (2), ``group`` (1). The handle (a func.func) stays
    valid. Silenceable failure, with nothing changed: another launch, other than one such loop, more whole
    tiles than there are or a negative number, a loop that ``parts`` does not divide.
    """

    def change(self, function: Op) -> Refusal | None:
        balance = _Balance.of(
            function,
            attribute(self, "whole", 0),
            attribute(self, "parts", 2),
            attribute(self, "group", 1),
        )
        if isinstance(balance, Refusal):
            return balance
        balance.apply()
        return None


@dataclass(frozen=True)
class _Balance:
    """A launch with its loop along K, and how many blocks compute whole tiles or parts of tiles."""

    launch: Op
    loop: Op
    grid: tuple[int, int]  # tiles along x and y
    whole: int
    parts: int
    group: int
    part_length: int

    @classmethod
    def of(cls, function: Op, whole: int, parts: int, group: int) -> "_Balance | Refusal":
        launches = walk(function, "gpu.launch")
        grid = constant_grid(launches[0]) if len(launches) == 1 else None
        if grid is None or constant_of(launches[0].operands[2]) != 1:
            return Refusal(
                f"found {len(launches)} launches, allowed one, of constant size, with one block along z"
            )
        loops = [op for op in ops_in(launches[0].regions[0].blocks[0]) if op.name == "scf.for"]
        if len(loops) != 1:
            return Refusal(f"found {len(loops)} loops in the launch, allowed 1")
        lower, upper, step = map(constant_of, list(loops[0].operands)[:3])
        if lower != 0 or upper is None or step is None:
            return Refusal(f"found a loop from {lower} to {upper} by {step}, allowed constants, from 0")
        tiles = grid[0] * grid[1]
        if whole < 0:
            return Refusal("whole: found a negative number: the target's multiprocessors are not known")
        if whole >= tiles:
            return Refusal(f"whole: found {whole}, allowed 0 to {tiles - 1} of {tiles} tiles")
        if parts < 2 or upper % (step * parts):
            return Refusal(f"parts: found {parts}, allowed 2 or more that divide {upper // step} steps")
        return cls(launches[0], loops[0], grid, whole, parts, group, upper // parts)

    def apply(self) -> None:
        block = self.launch.regions[0].blocks[0]
        old = walk(self.launch, "gpu.block_id")
        self.launch.attributes[TILE_GRID] = ir.DenseI32ArrayAttr.get(list(self.grid))
        rest = self.grid[0] * self.grid[1] - self.whole
        with self.launch.location:
            with ir.InsertionPoint(self.launch):
                self.launch.operands[0] = index(self.whole + rest * self.parts)
                self.launch.operands[1] = index(1)
            with ir.InsertionPoint.at_block_begin(block):
                number = index_along("gpu.block_id", "x")
                is_whole = is_less(number, index(self.whole))
                part = affine(part_of(self.whole, self.parts), number)
                ahead = self.parts * self.whole - self.whole
                shared = affine(ir.AffineExpr.get_floor_div(symbol(0) + ahead, self.parts), number)
                tile = _chosen(is_whole, number, shared)
                pair = self._place(tile)
                first = _chosen(is_whole, index(0), affine(symbol(0) * self.part_length, part))
            for at, replacement in enumerate(pair):
                block.arguments[at].replace_all_uses_with(replacement)
            for op in old:
                op.results[0].replace_all_uses_with(pair[axis_of(op)])
                op.erase()
            self._move_loop(first)

    def _move_loop(self, first: Value) -> None:
        body = self.loop.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(body):
            at = value("arith.addi", ir.IndexType.get(), body.arguments[0], first)
        for user, number in uses_of(body.arguments[0]):
            if user != at.owner:
                user.operands[number] = at

    def _place(self, tile: Value) -> tuple[Value, Value]:
        """Creates the tile's (x, y), in bands of ``group`` rows, within a band column by column."""
        columns, rows = self.grid
        type_ = ir.IndexType.get()
        band = affine(ir.AffineExpr.get_floor_div(symbol(0), self.group * columns) * self.group, tile)
        within = affine(ir.AffineExpr.get_mod(symbol(0), self.group * columns), tile)
        left = value("arith.subi", type_, index(rows), band)
        height = value("arith.minui", type_, left, index(self.group))
        y = value("arith.addi", type_, band, value("arith.remui", type_, within, height))
        return value("arith.divui", type_, within, height), y


def part_of(whole: int, parts: int) -> ir.AffineExpr:
    """Returns which slice of K a block sums, 0 to ``parts`` - 1, as an affine expression of its index ``s0``.

    For blocks after the first ``whole`` ones, which sum all of K: (s0 - whole) mod parts.
    """
    return ir.AffineExpr.get_mod(symbol(0) + (parts - whole % parts), parts)


class ShortenPartsOp(InPlaceOp, name="shorten_parts"):
    """``tuner.shorten_parts``: blocks of ``tuner.balance_tiles`` that sum a part of K end with it.

    Comes after the pipeliner, which takes constant bounds only: the bound of the loop along K becomes that of
    the block, and so do the bounds of copies ahead, which are comparisons of the loop's index with constants.

        scf.for %k = %c0 to %c64 step %c8 {
          %is_left = arith.cmpi slt, %k, %c48 : index
      with whole = 2, length = 64 and part_length = 32 becomes
        %length = arith.select %is_whole, %c64, %c32 : index
        %last = arith.subi %length, %c16 : index
        scf.for %k = %c0 to %length step %c8 {
          %is_left = arith.cmpi slt, %k, %last : index

    Attributes (i64): ``whole``, ``length`` and ``part_length``, the K of whole tiles and of parts. The handle
    (a func.func) stays valid. Silenceable failure, with nothing changed: other than one loop with constant
    bounds at the top level of a launch.
    """

    def change(self, function: Op) -> Refusal | None:
        loops = [op for op in walk(function, "scf.for") if op.parent.name == "gpu.launch"]
        upper = constant_of(loops[0].operands[1]) if len(loops) == 1 else None
        if upper is None:
            return Refusal(f"found {len(loops)} loops in launches, allowed one, of constant bounds")
        loop = loops[0]
        index_of_loop = loop.regions[0].blocks[0].arguments[0]
        with loop.location, ir.InsertionPoint(loop):
            is_whole = is_less(index_along("gpu.block_id", "x"), index(attribute(self, "whole", 0)))
            lengths = [index(attribute(self, name, upper)) for name in ("length", "part_length")]
            length = _chosen(is_whole, *lengths)
            for comparison in filter(_is_comparison, users_of(index_of_loop)):
                limit = constant_of(comparison.operands[1])
                if limit is not None:
                    last = value("arith.subi", ir.IndexType.get(), length, index(upper - limit))
                    comparison.operands[1] = last
            loop.operands[1] = length
        return None


def _is_comparison(op: Op) -> bool:
    return bool(op.name == "arith.cmpi")


def _chosen(condition: Value, then: Value, otherwise: Value) -> Value:
    return value("arith.select", then.type, condition, then, otherwise)
