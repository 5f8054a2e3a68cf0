"""Builders of 32-bit integer arithmetic and of shared-memory addresses, at the current insertion point."""

from collections.abc import Callable, Sequence

from tuner.gpu.ir.warps import i32, word
from tuner.mlir.bindings import Value, ir
from tuner.mlir.ir.building import compared, loop, value


def long_word(number: int) -> Value:
    """Creates an ``arith.constant`` of type i64 from a number between 0 and 2**64 - 1; returns its value."""
    type_ = ir.IntegerType.get_signless(64)
    signed = number - (1 << 64) if number >> 63 else number
    return value("arith.constant", type_, value=ir.IntegerAttr.get(type_, signed))


def calculate(name: str, left: Value, right: Value | int) -> Value:
    """Creates ``arith.<name>``, such as "addi", of two i32 values, or of an i32 value and an int.

    Returns its value; adding the int 0 creates no op and returns ``left``.
    """
    if name == "addi" and right == 0 and isinstance(right, int):
        return left
    return value(f"arith.{name}", left.type, left, _as_word(right))


def compare(predicate: str, left: Value, right: Value | int) -> Value:
    """Creates ``arith.cmpi`` ("eq", "ne", "ult") of two i32, or an int as ``right``; returns its i1 value."""
    return compared(predicate, left, _as_word(right))


def _as_word(number: Value | int) -> Value:
    if isinstance(number, int):
        return word(number)
    return number


def as_i32(index: Value) -> Value:
    """Creates ``arith.index_cast`` of an index value to i32; returns the i32 value."""
    return value("arith.index_cast", i32(), index)


def i32_as_index(number: Value) -> Value:
    """Creates ``arith.index_cast`` of an i32 value to index, with sign extension; returns the index value."""
    return value("arith.index_cast", ir.IndexType.get(), number)


def as_count(number: Value) -> Value:
    """Creates ``arith.index_castui`` of an i32 to index: unsigned divisions take fewer instructions."""
    return value("arith.index_castui", ir.IndexType.get(), number)


def shared_pointer(address: Value) -> Value:
    """Creates the LLVM pointer (address space 3) to an address in shared memory, given as an i32 value."""
    return value("llvm.inttoptr", ir.Type.parse("!llvm.ptr<3>"), address)


def cluster_pointer(pointer: Value) -> Value:
    """Creates the cluster-shared-memory pointer (address space 7) from a shared-memory pointer (3)."""
    return value("llvm.addrspacecast", ir.Type.parse("!llvm.ptr<7>"), pointer)


def loop_i32(
    first: int | Value,
    end: int,
    carried: Sequence[Value],
    build: Callable[[Value, list[Value]], Sequence[Value]],
    step: int = 1,
) -> list[Value]:
    """Creates an ``scf.for`` over i32 from ``first`` to below ``end``; returns the carried values after it.

    ``build(counter, values)`` creates the body and returns the carried values of the next iteration.
    """
    begin = word(first) if isinstance(first, int) else first
    return loop(begin, word(end), lambda counter, *values: build(counter, [*values]), carried, word(step))
