"""Builders of 32-bit integer arithmetic and of shared-memory addresses, at the current insertion point."""

from collections.abc import Callable, Sequence

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.rewrite.building import create, value

PREDICATES = {"eq": 0, "ne": 1, "ult": 6}  # arith.cmpi's predicates


def i32() -> Type:
    """Returns the type i32."""
    return ir.IntegerType.get_signless(32)


def word(number: int) -> Value:
    """Creates an i32 constant."""
    return value("arith.constant", i32(), value=ir.IntegerAttr.get(i32(), number))


def long_word(number: int) -> Value:
    """Creates an i64 constant from an unsigned 64-bit number."""
    kind = ir.IntegerType.get_signless(64)
    signed = number - (1 << 64) if number >> 63 else number
    return value("arith.constant", kind, value=ir.IntegerAttr.get(kind, signed))


def calculate(name: str, left: Value, right: Value | int) -> Value:
    """Creates ``arith.<name>`` of two i32; ``right`` may be a number; adding the number 0 creates no op."""
    if name == "addi" and right == 0 and isinstance(right, int):
        return left
    return value(f"arith.{name}", left.type, left, word(right) if isinstance(right, int) else right)


def compare(predicate: str, left: Value, right: Value | int) -> Value:
    """Creates the comparison of two i32 by a predicate of ``PREDICATES``, an i1."""
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), PREDICATES[predicate])
    other = word(right) if isinstance(right, int) else right
    return value("arith.cmpi", ir.IntegerType.get_signless(1), left, other, predicate=attribute)


def as_i32(index: Value) -> Value:
    """Creates the conversion of an index to i32."""
    return value("arith.index_cast", i32(), index)


def as_index(number: Value) -> Value:
    """Creates the conversion of an i32 to an index."""
    return value("arith.index_cast", ir.IndexType.get(), number)


def as_count(number: Value) -> Value:
    """Creates the conversion of a non-negative i32 to an index, which makes divisions cheaper."""
    return value("arith.index_castui", ir.IndexType.get(), number)


def shared_pointer(address: Value) -> Value:
    """Creates the pointer to an address in shared memory, an i32."""
    return value("llvm.inttoptr", ir.Type.parse("!llvm.ptr<3>"), address)


def cluster_pointer(pointer: Value) -> Value:
    """Creates the cluster-shared-memory pointer to a location in the block's own shared memory."""
    return value("llvm.addrspacecast", ir.Type.parse("!llvm.ptr<7>"), pointer)


def count(
    first: int | Value,
    last: int,
    carried: Sequence[Value],
    build: Callable[[Value, list[Value]], Sequence[Value]],
    step: int = 1,
) -> list[Value]:
    """Creates an ``scf.for`` over i32 with carried values; returns their values after the loop.

    ``build`` creates the body from the counter and the carried values, and returns the next carried values.
    """
    bounds = [word(first) if isinstance(first, int) else first, word(last), word(step)]
    kinds = [each.type for each in carried]
    loop = ir.Operation.create("scf.for", results=kinds, operands=[*bounds, *carried], regions=1)
    location = ir.Location.current
    body = loop.regions[0].blocks.append(i32(), *kinds, arg_locs=[location] * (1 + len(kinds)))
    with ir.InsertionPoint(body):
        counter, *values = body.arguments
        create("scf.yield", [], build(counter, values))
    return list(loop.results)
