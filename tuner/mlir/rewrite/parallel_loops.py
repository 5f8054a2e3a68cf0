"""Builds ``scf.parallel`` loops over the elements of buffers, at the current insertion point."""

from collections.abc import Callable

from tuner.mlir.bindings import Value, ir
from tuner.mlir.rewrite.building import create, index, size_of, value, zero


def for_each_element(buffer: Value, build: Callable[[list[Value]], None]) -> None:
    """Creates the loop over all elements of a memref; ``build`` creates its body from the indices."""
    rank = len(buffer.type.shape)
    bounds = [index(0)] * rank + [size_of(buffer, number) for number in range(rank)] + [index(1)] * rank
    if rank == 0:
        build([])
        return
    segments = ir.DenseI32ArrayAttr.get([rank, rank, rank, 0])
    loop = ir.Operation.create(
        "scf.parallel", operands=bounds, attributes={"operandSegmentSizes": segments}, regions=1
    )
    body = loop.regions[0].blocks.append(*[ir.IndexType.get()] * rank, arg_locs=[loop.location] * rank)
    with loop.location, ir.InsertionPoint(body):
        build(list(body.arguments))
        ir.Operation.create("scf.reduce")


def copy(source: Value, target: Value) -> None:
    """Creates the loop that copies ``source`` to ``target``, memrefs of the same shape."""
    for_each_element(target, lambda indices: store(load(source, indices), target, indices))


def add_to(target: Value, source: Value) -> None:
    """Creates the loop that adds each element of ``source``, a float, to that of ``target``."""

    def element(indices: list[Value]) -> None:
        old, more = load(target, indices), load(source, indices)
        store(value("arith.addf", old.type, old, more), target, indices)

    for_each_element(target, element)


def clear(target: Value) -> None:
    """Creates the loop that sets every element of ``target`` to zero."""
    fill(target, zero(target.type.element_type))


def fill(target: Value, element: Value) -> None:
    """Creates the loop that sets every element of ``target`` to the value ``element``."""
    for_each_element(target, lambda indices: store(element, target, indices))


def load(source: Value, indices: list[Value]) -> Value:
    """Creates ``memref.load`` of one element."""
    return value("memref.load", source.type.element_type, source, *indices)


def store(element: Value, target: Value, indices: list[Value]) -> None:
    """Creates ``memref.store`` of one element."""
    create("memref.store", [], [element, target, *indices])


def delinearized(number: Value, sizes: list[Value]) -> list[Value]:
    """Creates the indices of the element with a row-major number, one per dimension."""
    indices: list[Value] = []
    for size in reversed(sizes[1:]):
        indices.append(value("arith.remui", number.type, number, size))
        number = value("arith.divui", number.type, number, size)
    return [number, *reversed(indices)] if sizes else []
