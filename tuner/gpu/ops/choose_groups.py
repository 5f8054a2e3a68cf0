"""The transform op ``tuner.choose_groups``."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.gpu.ir.launches import constant_grid, index_along
from tuner.gpu.ir.padded_views import BOUNDS
from tuner.gpu.ir.row_groups import RowGroups, find_groups
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.effects.launches import axis_of
from tuner.mlir.ir.building import (
    DYNAMIC,
    compared,
    create,
    index,
    load,
    loop,
    plus,
    reinterpreted,
    times,
    total,
    value,
)
from tuner.mlir.ir.memrefs import argument_attributes
from tuner.mlir.ir.reading import constant_of, ops_in, set_operands, users_of, uses_of, walk

ALONG_ROWS = 1  # axis y of the grid: blocks of rows of C
FLAT = "memref.reinterpret_cast"
FOLLOWED = ("affine.apply", "arith.addi")  # by which row numbers follow from the number of a block
SLT = 2  # arith.cmpi slt


class ChooseGroupsOp(InPlaceOp, name="choose_groups"):
    """``tuner.choose_groups``: blocks find the group whose rows of C they compute, and its matrix.

    Takes a function whose groups of rows ``tuner.set_aside_groups`` set aside, with one ``gpu.launch`` in
    which the block along y has ``block_m`` rows, and whose reads of A and stores to C are kept within the
    rows of all groups (``tuner.bound_loads``, ``tuner.finish_stores``). Gives tiles of ``block_m`` rows from
    the first row of each group on: none crosses the end of a group. Each block goes through the offsets for
    the tile of its number; blocks beyond the last tile end at once. Views of A and C begin at the group's
    first row, that of B at the group's matrix.

        gpu.launch blocks(...) in (%gx = %c2, %gy = %c5, ...) ...
          %row = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%block_id_y]
          %is_inside = arith.cmpi slt, %row, %c50 : index
      with block_m = 32 becomes
        gpu.launch blocks(...) in (%gx = %c2, %gy = %c5, ...) ...
          %found:6 = scf.for %g = %c0 to %c3 step %c1 iter_args(...) ... {
          %is_some = arith.cmpi ne, %found#5, %c0 : index
          scf.if %is_some {
            %row = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%found#3]
            %is_inside = arith.cmpi slt, %row, %found#5 : index

    Attribute ``block_m`` (i64, default 1): rows of a block. The grid must have as many blocks along y as
    there may be tiles, (m + groups * (block_m - 1)) / ``block_m``, rounded down. The handle (a func.func)
    stays valid. Silenceable failure, with nothing changed: no groups, another launch, fewer blocks, rows that
    are not compared with their number, or arguments that are used by other ops than accesses.
    """

    def change(self, function: Op) -> Refusal | None:
        groups = find_groups(function)
        launches = walk(function, "gpu.launch")
        if groups is None or len(launches) != 1:
            return Refusal(
                f"found {len(launches)} launches, allowed one, of a function with groups set aside"
            )
        choice = _Choice.of(function, launches[0], groups, attribute(self, "block_m", 1))
        if isinstance(choice, Refusal):
            return choice
        with launches[0].location:
            choice.apply()
        return None


@dataclass(frozen=True)
class _Tile:
    """What a block finds: its group, the index of its tile in the group, the group's first row and its rows.

    ``count`` is 0 for a block that has no tile.
    """

    group: Value
    number: Value
    first: Value
    count: Value


@dataclass(frozen=True)
class _Choice:
    """A launch whose blocks are to choose groups, with what follows from a block's index."""

    function: Op
    launch: Op
    groups: RowGroups
    block_m: int
    blocks: tuple[Op, ...]  # gpu.block_id y
    comparisons: tuple[Op, ...]  # of row numbers with the number of all rows

    @classmethod
    def of(cls, function: Op, launch: Op, groups: RowGroups, block_m: int) -> "_Choice | Refusal":
        rows = _true_sizes(function, groups.rows)[0]
        grid = constant_grid(launch)
        # each group that has rows may leave block_m - 1 rows of its last tile empty
        least = (rows + min(groups.count, rows) * (block_m - 1)) // block_m
        if grid is None or grid[ALONG_ROWS] < least:
            return Refusal(f"found a grid of {grid}, allowed {least} blocks or more along y")
        blocks = tuple(op for op in walk(launch, "gpu.block_id") if axis_of(op) == ALONG_ROWS)
        numbers = [*(op.results[0] for op in blocks), launch.regions[0].blocks[0].arguments[ALONG_ROWS]]
        comparisons = _comparisons(numbers)
        if not comparisons or any(constant_of(op.operands[1]) != rows for op in comparisons):
            return Refusal(f"found {len(comparisons)} comparisons of rows, allowed some, all with {rows}")
        for argument in (groups.rows, groups.matrices, groups.results):
            for user in users_of(argument):
                makes_view = any(isinstance(result.type, ir.MemRefType) for result in user.results)
                if makes_view and not _is_flat(user):
                    return Refusal(f"found {user.name} of an argument, allowed accesses")
        return cls(function, launch, groups, block_m, blocks, tuple(comparisons))

    def apply(self) -> None:
        block = self.launch.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            number = index_along("gpu.block_id", "y")
            tile = self._search(number)
            is_some = compared("ne", tile.count, index(0))
        own = is_some.owner.operation
        for op in self.blocks:
            op.results[0].replace_all_uses_with(tile.number)
            op.erase()
        block.arguments[ALONG_ROWS].replace_all_uses_with(tile.number)
        for comparison in self.comparisons:
            comparison.operands[1] = tile.count
        self._move_into_branch(own, is_some)
        rows = self.groups.rows
        matrices = self.groups.matrices
        results = self.groups.results
        matrix = _true_sizes(self.function, matrices)
        with ir.InsertionPoint(own):
            shifts = [(rows, times(tile.first, _pitch(rows))), (results, times(tile.first, _pitch(results)))]
            shifts.append((matrices, times(tile.group, matrix[0] * matrix[1])))
        for argument, shift in shifts:
            _shift(argument, shift)

    def _search(self, number: Value) -> _Tile:
        """Creates the loop over groups that finds tile ``number`` of all groups.

        If there is none, the returned tile's ``count`` is 0.
        """
        offsets = self.groups.offsets
        none = index(0)
        rows = index(self.block_m)

        def step(group: Value, tiles: Value, begin: Value, *tile: Value) -> Sequence[Value]:
            end = _offset(offsets, plus(group, 1))
            count = value("arith.subi", end.type, end, begin)
            of_group = value("arith.divui", end.type, plus(count, self.block_m - 1), rows)
            own = value("arith.subi", end.type, number, tiles)
            is_own = compared("ult", own, of_group)  # a tile of a group before has a negative number here
            found = (group, own, begin, count)
            kept = [
                value("arith.select", end.type, is_own, new, old)
                for new, old in zip(found, tile, strict=True)
            ]
            return [total(tiles, of_group), end, *kept]

        carried = [none, _offset(offsets, none), none, none, none, none]
        _, _, *tile = loop(0, self.groups.count, step, carried)
        return _Tile(*tile)

    def _move_into_branch(self, own: Op, condition: Value) -> None:
        """Moves all ops after ``own`` into an ``scf.if`` of ``condition``.

        Allocations and the terminator stay.
        """
        ops = ops_in(self.launch.regions[0].blocks[0])
        after = ops[ops.index(own) + 1 : -1]
        branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            end = create("scf.yield", [], [])
        for op in after:
            if op.name != "memref.alloc":
                op.move_before(end)
        ops[-1].operation.block.append(branch)
        branch.move_before(ops[-1])


def _offset(offsets: Value, number: Value) -> Value:
    return value("arith.index_cast", ir.IndexType.get(), load(offsets, [number]))


def _true_sizes(function: Op, argument: Value) -> list[int]:
    bounds = argument_attributes(function, ir.BlockArgument(argument).arg_number).get(BOUNDS)
    if bounds is None:
        return list(argument.type.shape)
    return list(ir.DenseI64ArrayAttr(bounds))


def _pitch(argument: Value) -> int:
    """Returns the elements from one row of an argument to the next."""
    return int(ir.MemRefType(argument.type).get_strides_and_offset()[0][0])


def _comparisons(numbers: Sequence[Value]) -> list[Op]:
    """Returns each ``arith.cmpi slt`` that uses ``numbers`` directly, or by way of ops in FOLLOWED."""
    found: dict[Op, None] = {}
    waiting = list(numbers)
    seen = set()
    while waiting:
        for user in users_of(waiting.pop()):
            if user.name == "arith.cmpi" and ir.IntegerAttr(user.attributes["predicate"]).value == SLT:
                found[user] = None
            elif user.name in FOLLOWED and user not in seen:
                seen.add(user)
                waiting.append(user.results[0])
    return list(found)


def _is_flat(user: Op) -> bool:
    """Returns whether an op views a whole argument as one row."""
    return user.name == FLAT and user.results[0].type.rank == 1 and len(user.operands) == 1


def _shift(argument: Value, shift: Value) -> None:
    """Replaces uses of an argument by views that begin ``shift`` elements, an index value, further on."""
    for user in users_of(argument):
        if _is_flat(user):
            with ir.InsertionPoint(user):
                user.results[0].replace_all_uses_with(_view(argument, user.results[0].type, shift))
            user.erase()
    uses = [(op, number) for op, number in uses_of(argument) if op.name != FLAT]
    if uses:
        with ir.InsertionPoint.after(shift.owner):
            whole = _view(argument, argument.type, shift)
        set_operands(uses, whole)


def _view(argument: Value, like: ir.Type, shift: Value) -> Value:
    memref = ir.MemRefType(like)
    strides, _ = memref.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(DYNAMIC, strides)
    shifted = ir.MemRefType.get(memref.shape, memref.element_type, layout, memref.memory_space)
    return reinterpreted(argument, shifted, offsets=[shift])
