"""The transform op ``tuner.set_aside_groups``."""

from dataclasses import dataclass

from tuner.core.errors import Refusal
from tuner.gpu.ir.row_groups import MATRICES, OF_GROUPS, OFFSETS, PARTS, ROWS_IN, ROWS_OUT
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.dialect import InPlaceOp
from tuner.mlir.ir.building import DYNAMIC, value
from tuner.mlir.ir.memrefs import is_argument, set_argument_attribute, sync_function_type
from tuner.mlir.ir.reading import constant_of, op_of, ops_in, users_of, walk

CAST = "arith.index_cast"
VIEW = "memref.subview"
READ = "bufferization.to_tensor"
EMPTY = "tensor.empty"
KEPT = ("bufferization.", "linalg.", EMPTY)  # ops of a group that stay, with rows of all groups


class SetAsideGroupsOp(InPlaceOp, name="set_aside_groups"):
    """``tuner.set_aside_groups``: products of groups of rows become one of all rows, for a later step.

    Takes a function with one loop over groups, in which linalg ops on tensors compute rows ``offsets[group]``
    to ``offsets[group + 1]`` of C from these rows of A and from matrix ``group`` of B. Gives these ops
    without the loop, on all rows and the first matrix; the arguments are marked ``tuner.of_groups`` by what
    they are. ``tuner.choose_groups`` gives each block the rows and the matrix of its group; C is wrong after
    any other step.

        func.func @f(%a: memref<50x60xbf16> ..., %b: memref<3x60x40xbf16> ..., %offsets: memref<4xi32> ...) {
          scf.for %group = %c0 to %c3 step %c1 {
            %rows = memref.subview %a[%first, 0] [%count, 60] [1, 1] : ...
            %A = bufferization.to_tensor %rows restrict : memref<?x60xbf16, ...> to tensor<?x60xbf16>
            %sums = linalg.matmul ins(%A, %B : tensor<?x60xbf16>, tensor<60x40xbf16>) ...
      becomes
        func.func @f(%a: memref<50x60xbf16> {..., tuner.of_groups = "rows"}, %b: memref<60x40xbf16> ...) {
          %A = bufferization.to_tensor %a restrict : memref<50x60xbf16> to tensor<50x60xbf16>
          %sums = linalg.matmul ins(%A, %B : tensor<50x60xbf16>, tensor<60x40xbf16>) ...

    The handle (a func.func) stays valid, and so do those of the linalg ops. Silenceable failure, with nothing
    changed: no such loop, or more than one; parts of arguments other than the rows and the matrix of the
    group; arguments that are not whole arrays.
    """

    def change(self, function: Op) -> Refusal | None:
        loop = _loop_of(function)
        if loop is None:
            return Refusal("found no loop from 0 to a constant number of groups, or several")
        groups = _Groups.of(loop)
        if isinstance(groups, Refusal):
            return groups
        groups.join(function)
        return None


def _loop_of(function: Op) -> Op | None:
    loops = walk(function, "scf.for")
    if len(loops) != 1 or loops[0].parent.operation != function or len(loops[0].results):
        return None
    lower, upper, step = map(constant_of, list(loops[0].operands)[:3])
    if lower != 0 or upper is None or step != 1:
        return None
    return loops[0]


@dataclass(frozen=True)
class _Groups:
    """A loop over groups: its views of arguments, and the arguments by what they are of groups."""

    loop: Op
    views: tuple[Op, ...]
    arguments: dict[str, Value]

    @classmethod
    def of(cls, loop: Op) -> "_Groups | Refusal":
        group = loop.regions[0].blocks[0].arguments[0]
        views = [op for op in ops_in(loop.regions[0].blocks[0]) if op.name == VIEW]
        arguments: dict[str, Value] = {}
        for view in views:
            source = view.operands[0]
            if not is_argument(source):
                return Refusal(f"found a part of {source.type}, allowed parts of arguments")
            offsets = _offsets_of_rows(view, group)
            if offsets is not None:
                arguments.setdefault(OFFSETS, offsets)
            if _is_matrix(view, group):
                part = MATRICES
            elif offsets is not None and offsets == arguments[OFFSETS]:
                is_written = any(user.name != READ for user in users_of(view.results[0]))
                part = ROWS_OUT if is_written else ROWS_IN
            else:
                return Refusal(
                    f"found another part of {source.type}, allowed the rows or the matrix of a group"
                )
            if part in arguments:
                return Refusal(f"found two arguments with the {part} of a group, allowed one")
            arguments[part] = source
        if arguments.keys() != set(PARTS):
            found = ", ".join(arguments) or "none"
            return Refusal(f"found {found} of groups, allowed rows, matrices, offsets and results")
        count = constant_of(loop.operands[1])
        if arguments[OFFSETS].type.shape[0] - 1 != count or arguments[MATRICES].type.shape[0] != count:
            return Refusal(f"found a loop over {count} groups, allowed one for each matrix")
        return cls(loop, tuple(views), arguments)

    def join(self, function: Op) -> None:
        """Replaces the loop by its ops for all rows: moves them before it, for as many rows as A has.

        Erases the loop, drops the groups' dimension of B's type, and marks the arguments ``tuner.of_groups``.
        """
        rows = int(self.arguments[ROWS_IN].type.shape[0])
        matrices = self.arguments[MATRICES]
        shape = ir.MemRefType(matrices.type)
        matrices.set_type(ir.MemRefType.get(shape.shape[1:], shape.element_type))
        for view in self.views:
            view.results[0].replace_all_uses_with(view.operands[0])
        for op in ops_in(self.loop.regions[0].blocks[0]):
            if not op.name.startswith(KEPT):
                continue
            for result in op.results:
                result.set_type(_of_all_rows(result.type, rows))
            if op.name == EMPTY:
                _replace_empty(op, self.loop)
            else:
                op.move_before(self.loop)
        self.loop.erase()
        sync_function_type(function)
        for part, argument in self.arguments.items():
            number = ir.BlockArgument(argument).arg_number
            set_argument_attribute(function, number, OF_GROUPS, ir.StringAttr.get(part))


def _of_all_rows(tensor: ir.Type, rows: int) -> ir.Type:
    type_ = ir.RankedTensorType(tensor)
    sizes = [rows if size == DYNAMIC else size for size in type_.shape]
    return ir.RankedTensorType.get(sizes, type_.element_type)


def _replace_empty(op: Op, loop: Op) -> None:
    with op.location, ir.InsertionPoint(loop):
        op.results[0].replace_all_uses_with(value(EMPTY, op.results[0].type))
    op.erase()


def _list(view: Op, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(view.attributes[name]))


def _is_matrix(view: Op, group: Value) -> bool:
    """Returns whether a view is matrix ``group`` of an argument of three dimensions."""
    first = [_list(view, f"static_{name}")[0] for name in ("offsets", "sizes")]
    is_one = first == [DYNAMIC, 1] and len(view.operands) == 2 and view.operands[1] == group
    return is_one and _is_whole(view) and view.operands[0].type.rank == 3 and view.results[0].type.rank == 2


def _is_whole(view: Op) -> bool:
    """Returns whether all but the first offset is 0 and all but the first size is the argument's."""
    sizes = list(view.operands[0].type.shape)
    is_all = _list(view, "static_sizes")[1:] == sizes[1:] and not any(_list(view, "static_offsets")[1:])
    return is_all and set(_list(view, "static_strides")) == {1}


def _offsets_of_rows(view: Op, group: Value) -> Value | None:
    """Returns the offsets by which a view is the rows of ``group`` of an argument; None: it is not."""
    first = [_list(view, f"static_{name}")[0] for name in ("offsets", "sizes")]
    if first != [DYNAMIC, DYNAMIC] or not _is_whole(view) or view.operands[0].type.rank != 2:
        return None
    _, start, count = view.operands
    difference = op_of(count, "arith.subi")
    begin = _load_of(start)
    if difference is None or begin is None or difference.operands[1] != start:
        return None
    end = _load_of(difference.operands[0])
    if end is None or begin.operands[1] != group or end.operands[0] != begin.operands[0]:
        return None
    next_ = op_of(end.operands[1], "arith.addi")
    if next_ is None or next_.operands[0] != group or constant_of(next_.operands[1]) != 1:
        return None
    offsets = begin.operands[0]
    if not is_argument(offsets):
        return None
    return offsets


def _load_of(number: Value) -> Op | None:
    cast = op_of(number, CAST)
    if cast is None:
        return None
    return op_of(cast.operands[0], "memref.load")
