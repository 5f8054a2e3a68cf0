"""Builders of 32-bit integer arithmetic and of addresses in shared memory, at the insertion point."""

from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.rewrite.building import create, value

PREDICATES = {"eq": 0, "ne": 1, "ult": 6}  # of arith.cmpi


def i32() -> Type:
    """Returns the type of words."""
    return ir.IntegerType.get_signless(32)


def word(number: int) -> Value:
    """Creates a constant."""
    return value("arith.constant", i32(), value=ir.IntegerAttr.get(i32(), number))


def long_word(number: int) -> Value:
    """Creates a 64-bit constant."""
    kind = ir.IntegerType.get_signless(64)
    signed = number - (1 << 64) if number >> 63 else number
    return value("arith.constant", kind, value=ir.IntegerAttr.get(kind, signed))


def calculate(name: str, left: Value, right: Value | int) -> Value:
    """Creates ``arith.<name>`` of two words, the second perhaps a constant; nothing to add 0."""
    if name == "addi" and right == 0 and isinstance(right, int):
        return left
    return value(f"arith.{name}", left.type, left, word(right) if isinstance(right, int) else right)


def compare(predicate: str, left: Value, right: Value | int) -> Value:
    """Creates a comparison of two words, an i1."""
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), PREDICATES[predicate])
    other = word(right) if isinstance(right, int) else right
    return value("arith.cmpi", ir.IntegerType.get_signless(1), left, other, predicate=attribute)


def as_word(index: Value) -> Value:
    """Creates the conversion of an index."""
    return value("arith.index_cast", i32(), index)


def as_index(number: Value) -> Value:
    """Creates the conversion to an index."""
    return value("arith.index_cast", ir.IndexType.get(), number)


def as_count(number: Value) -> Value:
    """Creates the conversion to an index that is known not to be negative: it divides in fewer steps."""
    return value("arith.index_castui", ir.IndexType.get(), number)


def shared_pointer(address: Value) -> Value:
    """Creates the pointer to an address of shared memory."""
    return value("llvm.inttoptr", ir.Type.parse("!llvm.ptr<3>"), address)


def cluster_pointer(pointer: Value) -> Value:
    """Creates the pointer into the cluster's shared memory to a place in the block's own."""
    return value("llvm.addrspacecast", ir.Type.parse("!llvm.ptr<7>"), pointer)


def count(
    first: int | Value,
    last: int,
    carried: Sequence[Value],
    build: Callable[[Value, list[Value]], Sequence[Value]],
    step: int = 1,
) -> list[Value]:
    """Creates a loop over words with carried values; returns these after it. ``build`` makes its body."""
    bounds = [word(first) if isinstance(first, int) else first, word(last), word(step)]
    kinds = [each.type for each in carried]
    loop = ir.Operation.create("scf.for", results=kinds, operands=[*bounds, *carried], regions=1)
    location = ir.Location.current
    body = loop.regions[0].blocks.append(i32(), *kinds, arg_locs=[location] * (1 + len(kinds)))
    with ir.InsertionPoint(body):
        counter, *values = body.arguments
        create("scf.yield", [], build(counter, values))
    return list(loop.results)
