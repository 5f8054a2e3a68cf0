"""Packs non-contiguous factors of matmuls: equal views once, while their memory is not written.

Takes the matches of a function before any is replaced. Two factors share a copy if both are the same view in
one block, and no operation between them may write the view's buffer, directly or through another view. Not
shared are views that cannot be followed: of globals, of values that control flow selects, and of a buffer
whose address is taken.

    linalg.generic ... ins(%view, %b : memref<4x8xf32, strided<[16, 1]>>, ...) outs(%c : ...)
    linalg.generic ... ins(%view, %d : memref<4x8xf32, strided<[16, 1]>>, ...) outs(%e : ...)
  becomes
    %packed = memref.alloc() : memref<4x8xf32>
    scf.parallel (%i, %j) = ... { <%packed[%i, %j] = %view[%i, %j]> }
    <multiply %packed, %b, %c>
    <multiply %packed, %d, %e>
    memref.dealloc %packed : memref<4x8xf32>
"""

from collections import Counter
from collections.abc import Sequence

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import aliases_of
from tuner.mlir.effects.buffer_accesses import FORWARDING
from tuner.mlir.effects.buffer_roots import VIEWS
from tuner.mlir.effects.op_effects import effect_on_operand
from tuner.mlir.rewrite import parallel_loops
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.definitions import attributes_of, source_of
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import ancestor_in_block
from tuner.programs.lower.matmuls.find_matmuls import MatmulMatch

ALLOCATIONS = frozenset({"memref.alloc", "memref.alloca", "gpu.alloc"})


class PackedViews:
    """Contiguous copies of non-contiguous matmul factors, while a program's matmuls are replaced in order.

    Two factors share a copy if they are equal views in one block, of a function argument or an allocation
    that is not written between and whose address is not in memory.
    """

    def __init__(self, matches: Sequence[MatmulMatch]) -> None:
        """Determines which factors share a copy."""
        self._copies = _copies(matches)  # per match: numbers of the copies of A and B
        self._uses_left = Counter(copy for pair in self._copies for copy in pair)
        self._packed: dict[int, Value] = {}  # number of a copy -> its buffer

    def take(self, match: int, factor: int, view: Value) -> Value:
        """Returns a contiguous memref of a matmul's factor: the factor itself, or a copy.

        A copy is created at the current insertion point unless an earlier match made it. Call it once per
        match and factor, in program order: ``free_unused`` counts the calls.

        Args:
            match: number of the matmul.
            factor: 0 for A, 1 for B.
            view: the factor.
        """
        copy = self._copies[match][factor]
        self._uses_left[copy] -= 1
        if is_row_major(view.type):
            return view
        if copy not in self._packed:
            self._packed[copy] = allocate(ir.MemRefType.get(view.type.shape, view.type.element_type))
            parallel_loops.copy(view, self._packed[copy])
        return self._packed[copy]

    def free_unused(self) -> None:
        """Creates deallocations, at the current insertion point, of copies that no later match uses."""
        for copy in [copy for copy in self._packed if not self._uses_left[copy]]:
            create("memref.dealloc", [], [self._packed.pop(copy)])


def allocate(kind: ir.MemRefType) -> Value:
    """Creates a ``memref.alloc`` of a static memref type at the insertion point; returns its result."""
    return value("memref.alloc", kind, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))


def _copies(matches: Sequence[MatmulMatch]) -> list[tuple[int, int]]:
    seen: list[tuple[Op, Value, int]] = []  # (matmul, factor, copy)
    found = []
    for match in matches:
        for view in (match.a, match.b):
            equal = (
                copy
                for op, earlier, copy in reversed(seen)
                if is_same_view(earlier, view) and _is_unwritten(view, op, match.op)
            )
            seen.append((match.op, view, next(equal, len(seen))))
        found.append((seen[-2][2], seen[-1][2]))
    return found


def is_same_view(one: Value, other: Value) -> bool:
    """Returns whether two values are equal, or results of the same view operation on equal values."""
    if one == other:
        return True
    if isinstance(one.owner, ir.Block) or isinstance(other.owner, ir.Block) or one.type != other.type:
        return False
    first, second = one.owner, other.owner
    pairs = zip(first.operands, second.operands, strict=False)
    return (
        first.name == second.name
        and first.name in VIEWS
        and attributes_of(first) == attributes_of(second)
        and len(first.operands) == len(second.operands)
        and all(is_same_view(*pair) for pair in pairs)
    )


def _is_unwritten(view: Value, first: Op, last: Op) -> bool:
    """True if no operation from ``first`` up to ``last`` can write the view's buffer."""
    buffer = source_of(view, VIEWS)
    if first.block != last.block or not _can_be_followed(buffer):
        return False
    aliases = aliases_of(buffer)
    ops = [op.operation for op in first.block.operations]
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
    numbers = [number for number, each in enumerate(op.operands) if each in aliases]
    return op.name not in FORWARDING and any(effect_on_operand(op, number).writes for number in numbers)
