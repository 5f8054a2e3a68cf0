"""Builds ``scf.parallel`` loops over the elements of buffers, at the current insertion point."""

from collections.abc import Callable

from tuner.mlir.bindings import Value, ir
from tuner.mlir.rewrite.building import create, index, size_of, value, zero


def for_each_element(buffer: Value, build: Callable[[list[Value]], None]) -> None:
    """Creates an ``scf.parallel`` loop over all elements of a memref; ``build(indices)`` creates its body.

    A memref of rank 0 gets the body without a loop.
    """
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
    """Creates the parallel loop that copies ``source`` to ``target``, memrefs of the same shape."""
    for_each_element(target, lambda indices: store(load(source, indices), target, indices))


def add_to(target: Value, source: Value) -> None:
    """Creates the parallel loop that adds each element of ``source`` to the same element of ``target``.

    Both are memrefs of floats, of the same shape.
    """

    def element(indices: list[Value]) -> None:
        old, more = load(target, indices), load(source, indices)
        store(value("arith.addf", old.type, old, more), target, indices)

    for_each_element(target, element)


def clear(target: Value) -> None:
    """Creates the parallel loop that sets every element of the memref ``target`` to zero."""
    fill(target, zero(target.type.element_type))


def fill(target: Value, element: Value) -> None:
    """Creates the parallel loop that sets every element of the memref ``target`` to the value ``element``."""
    for_each_element(target, lambda indices: store(element, target, indices))


def load(source: Value, indices: list[Value]) -> Value:
    """Creates ``memref.load`` of the element of ``source`` at ``indices``; returns its value."""
    return value("memref.load", source.type.element_type, source, *indices)


def store(element: Value, target: Value, indices: list[Value]) -> None:
    """Creates ``memref.store`` of the value ``element`` to ``target`` at ``indices``."""
    create("memref.store", [], [element, target, *indices])


def delinearized(number: Value, sizes: list[Value]) -> list[Value]:
    """Creates the indices, one per dimension, of the element number ``number`` in row-major order.

    ``sizes``: the array's size along each dimension, as values. Returns [] for no dimension.
    """
    indices: list[Value] = []
    for size in reversed(sizes[1:]):
        indices.append(value("arith.remui", number.type, number, size))
        number = value("arith.divui", number.type, number, size)
    return [number, *reversed(indices)] if sizes else []
