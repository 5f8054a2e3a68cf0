"""Replaces a program's matmuls by code that a caller creates; non-contiguous arrays are copied first."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.accesses import FORWARDING
from tuner.mlir.effects.aliases import VIEWS, aliases_of
from tuner.mlir.effects.op_effects import effect_on_operand
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import is_row_major
from tuner.mlir.ir.reading import ancestor_in_block, attributes_of, ops_in, source_of
from tuner.mlir.programs.matmuls import MatmulMatch

ALLOCATIONS = frozenset({"memref.alloc", "memref.alloca", "gpu.alloc"})


class PackedViews:
    """Creates contiguous copies of non-contiguous matmul operands, as a program's matmuls are replaced.

    Two operands share a copy if they are the same view in one block, of a function argument or an allocation,
    and no operation between them may write the view's buffer, directly or through another view.
        linalg.generic ... ins(%view, %b : memref<4x8xf32, strided<[16, 1]>>, ...) outs(%c : ...)
        linalg.generic ... ins(%view, %d : memref<4x8xf32, strided<[16, 1]>>, ...) outs(%e : ...)
      becomes
        %packed = memref.alloc() : memref<4x8xf32>
        scf.parallel (%i, %j) = ... { <%packed[%i, %j] = %view[%i, %j]> }
        <multiply %packed, %b, %c>
        <multiply %packed, %d, %e>
        memref.dealloc %packed : memref<4x8xf32>
    """

    def __init__(self, matches: Sequence[MatmulMatch]) -> None:
        """Determines which operands of ``matches``, a program's matmuls in order, share a copy."""
        self._copies = _copies(matches)  # per match: numbers of the copies of A and B
        self._uses_left = Counter(chain.from_iterable(self._copies))
        self._packed: dict[int, Value] = {}  # number of a copy -> its buffer

    def take(self, match: int, factor: int, view: Value) -> Value:
        """Returns a contiguous memref of factor 0 (A) or 1 (B) of a matmul: ``view`` itself, or a copy.

        Call it once per match and factor, in program order: ``free_unused`` counts the calls.
        """
        copy = self._copies[match][factor]
        self._uses_left[copy] -= 1
        if is_row_major(view.type):
            return view
        if copy not in self._packed:
            self._packed[copy] = allocate(ir.MemRefType.get(view.type.shape, view.type.element_type))
            building.copy(view, self._packed[copy])
        return self._packed[copy]

    def free_unused(self) -> None:
        """Creates deallocations, at the current insertion point, of copies that no later match uses."""
        for copy in [copy for copy in self._packed if not self._uses_left[copy]]:
            create("memref.dealloc", [], [self._packed.pop(copy)])


def allocate(type_: ir.MemRefType) -> Value:
    """Creates a ``memref.alloc`` of a static memref type at the insertion point; returns its result."""
    return value("memref.alloc", type_, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))


def _copies(matches: Sequence[MatmulMatch]) -> list[tuple[int, int]]:
    seen: list[tuple[Op, Value, int]] = []  # (matmul, factor, copy)
    copies = []
    for match in matches:
        for view in (match.a, match.b):
            equal = (
                copy
                for op, earlier, copy in reversed(seen)
                if is_same_view(earlier, view) and _is_unwritten(view, op, match.op)
            )
            seen.append((match.op, view, next(equal, len(seen))))
        copies.append((seen[-2][2], seen[-1][2]))
    return copies


def is_same_view(left: Value, right: Value) -> bool:
    """Returns whether two memrefs are one value, or results of equal view operations on the same memrefs."""
    if left == right:
        return True
    if isinstance(left.owner, ir.Block) or isinstance(right.owner, ir.Block) or left.type != right.type:
        return False
    first = left.owner
    second = right.owner
    pairs = zip(first.operands, second.operands, strict=False)
    return (
        first.name == second.name
        and first.name in VIEWS
        and attributes_of(first) == attributes_of(second)
        and len(first.operands) == len(second.operands)
        and all(is_same_view(*pair) for pair in pairs)
    )


def _is_unwritten(view: Value, first: Op, last: Op) -> bool:
    """Returns whether no operation from ``first`` on, before ``last``, can write the view's buffer.

    False, too, where this is not known: in two blocks, or if other memory may hold the buffer's address.
    """
    buffer = source_of(view, VIEWS)
    if first.block != last.block or not _can_be_followed(buffer):
        return False
    aliases = aliases_of(buffer)
    ops = ops_in(first.block)
    between = set(ops[ops.index(first) : ops.index(last)])
    writers = {
        ancestor_in_block(user, first.block) for user in aliases.users if _writes(user, aliases.values)
    }
    return not aliases.is_kept and not between & writers


def _can_be_followed(buffer: Value) -> bool:
    """True if a buffer is an argument or an allocation, so that def-use chains show all aliases."""
    if isinstance(buffer.owner, ir.Block):
        return bool(buffer.owner.owner.operation.name == "func.func")
    return buffer.owner.name in ALLOCATIONS


def _writes(op: Op, aliases: frozenset[Value]) -> bool:
    alias_indices = [index for index, operand in enumerate(op.operands) if operand in aliases]
    return op.name not in FORWARDING and any(effect_on_operand(op, index).writes for index in alias_indices)


def replace_matmuls(
    matches: Sequence[MatmulMatch], multiply: Callable[[MatmulMatch, Value, Value, Value], None]
) -> None:
    """Replaces matmuls of a program, in place, by code that tuned kernels or other functions create.

    ``multiply(match, a, b, c)`` overwrites C with A B, of three contiguous row-major memrefs. Unless C was
    filled with zeros, the product goes to a separate buffer, which is added to C afterwards; a C that was
    filled but is not contiguous gets a copy of such a buffer.

        linalg.generic ... ins(%a, %b : ...) outs(%c : memref<4x16xf32>)    // C += A B
      becomes
        %product = memref.alloc() : memref<4x16xf32>
        <multiply %a, %b, %product>
        scf.parallel (%i, %j) = ... { <%c[%i, %j] += %product[%i, %j]> }
        memref.dealloc %product : memref<4x16xf32>
    """
    views = PackedViews(matches)
    for index, match in enumerate(matches):
        is_added = match.zero_fill is None
        is_own = is_added or not is_row_major(match.c.type)
        with match.op.location, ir.InsertionPoint(match.op):
            a, b = (views.take(index, factor, operand) for factor, operand in enumerate((match.a, match.b)))
            type_ = match.c.type
            c = allocate(ir.MemRefType.get(type_.shape, type_.element_type)) if is_own else match.c
            multiply(match, a, b, c)
            if is_added:
                building.add_to(match.c, c)
            elif is_own:
                building.copy(c, match.c)
            if is_own:
                create("memref.dealloc", [], [c])
            views.free_unused()
        match.op.erase()
        if match.zero_fill is not None:
            match.zero_fill.erase()
