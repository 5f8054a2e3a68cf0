"""Where the address of a buffer travels: from a use of it to the values that may hold it then, and back.

Not only memrefs hold an address: so do TMA descriptors, integers, pointers, structs, tuples and vectors.
There is one relation, from an operand to what the operation hands it on to. ``handed_on`` follows it forwards
and ``buffers_behind`` backwards; ``aliases`` and ``buffer_roots`` are its closures.

    %n = memref.extract_aligned_pointer_as_index %m : memref<4xf32> -> index  // hands %m on to %n
    memref.store %n, %box[%i] : memref<1xindex>                               // keeps %n: it may be anywhere

Conservative: an operation that is not known hands each operand on to all results that can hold an address,
and may keep the operand in memory, where no def-use chain shows its uses.
"""

from typing import NamedTuple

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.op_effects import NO_MEMORY_EFFECT, READERS
from tuner.mlir.effects.region_dataflow import FOR_BOUNDS, is_carried, sources_of, targets_of
from tuner.mlir.effects.runner_names import is_runner_function
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, SEGMENTS
from tuner.mlir.rewrite.symbols import callee_of, name_of
from tuner.mlir.rewrite.walking import parents_of

ASYNC = "!gpu.async.token"
ADDRESS_BITS = 64  # of device memory, and of x86-64
# Ops whose results are what is in memory, or facts about a memref: no address that they were given.
RESULTS_ARE_DATA = (
    READERS
    | NO_MEMORY_EFFECT
    | {"memref.atomic_rmw", "memref.generic_atomic_rmw", "llvm.load", "llvm.atomicrmw", "llvm.cmpxchg"}
)
# Op that stores one of its operands in memory -> the number of this operand, from the end if negative.
STORED = {
    **dict.fromkeys(("memref.store", "affine.store", "affine.vector_store", "llvm.store"), 0),
    **dict.fromkeys(("vector.store", "vector.transfer_write", "llvm.intr.masked.store"), 0),
    **dict.fromkeys(("llvm.intr.masked.compressstore", "llvm.intr.masked.scatter", "llvm.intr.vp.store"), 0),
    **dict.fromkeys(("llvm.intr.experimental.vp.strided.store", "llvm.intr.matrix.column.major.store"), 0),
    **dict.fromkeys(("vector.maskedstore", "vector.compressstore", "vector.scatter"), -1),
    **dict.fromkeys(("memref.atomic_rmw", "memref.atomic_yield"), 0),
    **dict.fromkeys(("gpu.memset", "gpux.memset", "llvm.cmpxchg", "llvm.atomicrmw"), -1),
}
# Dialects of which no other op keeps an address that it is given.
KEEP_NOTHING = frozenset(
    {
        *("arith", "index", "math", "vector", "affine", "scf", "cf", "builtin", "bufferization", "ub"),
        *("memref", "gpu", "gpux", "nvgpu", "nvvm", "llvm", "func"),
    }
)
UNKNOWN_CODE = frozenset(
    {"llvm.call", "llvm.call_intrinsic", "llvm.inline_asm", "llvm.invoke", "nvvm.inline_ptx"}
)
# Ops whose result points to an object that is no buffer.
OTHER_OBJECTS = frozenset({"llvm.mlir.addressof", "llvm.alloca", "llvm.mlir.zero"})
LAUNCHES = frozenset({"gpu.launch_func", "gpux.launch_func"})


class HandedOn(NamedTuple):
    """What an op does with the address that one of its operands holds."""

    values: tuple[Value, ...]  # which may hold the address then: results and block arguments
    is_kept: bool = False  # it may be in memory, so that there may be uses that no def-use chain shows


def is_buffer(kind: Type) -> bool:
    """Returns whether a type is a memref, ranked or unranked."""
    return isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType)


def is_token(value: Value) -> bool:
    """Returns whether a value is a ``!gpu.async.token``."""
    return str(value.type) == ASYNC


def handed_on(op: Op, number: int) -> HandedOn:
    """Returns what ``op`` does with the address in its operand ``number``, which may be of any type.

    Tokens of asynchronous work are not followed: they hold no address.
    """
    if op.name in LAUNCHES:
        return HandedOn((), _is_kept_by_kernel(op, number))
    values = () if op.name in RESULTS_ARE_DATA else tuple(_receivers(op, number))
    return HandedOn(values, _is_kept(op, number))


def buffers_behind(value: Value) -> tuple[Value, ...]:
    """Returns the memrefs whose address a value that is no memref may hold, each once.

    The search goes back over use-def chains through arithmetic, casts, structs and scf control flow, up to
    the first memrefs. Addresses that come from memory or out of calls are not found.
    """
    return tuple(each for each in _behind(value) if is_buffer(each.type))


def is_from_elsewhere(pointer: Value) -> bool:
    """Returns whether no memref is behind a pointer, and no other object, so that it may point anywhere."""
    behind = [pointer, *_behind(pointer)]
    return not any(is_buffer(each.type) or op_of(each, *OTHER_OBJECTS) is not None for each in behind)


def _behind(value: Value) -> list[Value]:
    """Returns the values whose address ``value`` may hold; the search ends at memrefs."""
    found: dict[Value, None] = {}
    open_values = _handed_from(value)
    while open_values:
        each = open_values.pop()
        if each not in found:
            found[each] = None
            open_values.extend([] if is_buffer(each.type) else _handed_from(each))
    return list(found)


def _handed_from(value: Value) -> list[Value]:
    """Returns the values whose address may be in ``value``: the relation of ``handed_on``, backwards."""
    if is_carried(value):
        return sources_of(value)
    if isinstance(value.owner, ir.Block):
        parent = value.owner.owner.operation
        return list(parent.operands)[:FOR_BOUNDS] if parent.name == "scf.for" else []
    op = value.owner.operation
    return [each for number, each in enumerate(op.operands) if value in handed_on(op, number).values]


def _receivers(op: Op, number: int) -> list[Value]:
    targets = targets_of(op, number)
    if targets is not None:
        return [each for each in targets if _can_hold(each)]
    if op.name == "arith.select" and number == 0:
        return []
    results = [each for each in op.results if _can_hold(each) or "bitcast" in op.name]
    views = [each for each in results if is_buffer(each.type)]
    is_view = bool(views) and is_buffer(op.operands[number].type)
    return views if is_view else results  # the other results of a view are its sizes and strides


def _can_hold(value: Value) -> bool:
    kind = value.type
    if isinstance(kind, ir.VectorType):
        kind = kind.element_type
    is_bit = isinstance(kind, ir.IntegerType) and kind.width == 1
    is_short = isinstance(kind, ir.FloatType) and kind.width < ADDRESS_BITS
    return not (is_bit or is_short or is_token(value))


def _is_kept(op: Op, number: int) -> bool:
    dialect = op.name.partition(".")[0]
    if op.name in STORED:
        return number == STORED[op.name] % len(op.operands)
    if op.name == "func.call":
        return not is_runner_function(callee_of(op))
    if dialect == "linalg":
        return not is_buffer(op.operands[number].type)  # stored in the outputs: a scalar, or what is yielded
    return dialect not in KEEP_NOTHING or op.name in UNKNOWN_CODE


def _is_kept_by_kernel(launch: Op, number: int) -> bool:
    """Returns whether a kernel may store the address that it is given, for a kernel later to use.

    A kernel that is not in the module as MLIR counts as one that does not.
    """
    kernel = _kernel_of(launch)
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes[SEGMENTS])) if SEGMENTS in launch.attributes else []
    argument = number - sum(sizes[:ARGUMENTS])
    if kernel is None or not sizes or argument < 0:
        return False
    open_values, seen = [kernel.regions[0].blocks[0].arguments[argument]], set()
    while open_values:
        each = open_values.pop()
        if each in seen:
            continue
        seen.add(each)
        for use in each.uses:
            found = handed_on(use.owner.operation, use.operand_number)
            if found.is_kept:
                return True
            open_values += found.values
    return False


def _kernel_of(launch: Op) -> Op | None:
    """Returns the function that a launch launches, None where its body is not in the module."""
    *_, function = parents_of(launch)
    found, path = function.parent.operation, ir.SymbolRefAttr(launch.attributes["kernel"]).value
    for name in path:
        inside = [op.operation for region in found.regions for block in region.blocks for op in block]
        named = [op for op in inside if "sym_name" in op.attributes and name_of(op) == str(name)]
        if not named:
            return None
        found = named[0]
    return found if list(found.regions) and list(found.regions[0].blocks) else None
