"""Builds ``scf.parallel`` loops over the elements of buffers, at the current insertion point."""

from collections.abc import Callable
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create, index, value, zero


def for_each_element(buffer: Any, build: Callable[[list[Any]], None]) -> None:
    """Creates the loop over all indices of a memref; ``build`` makes its body from them."""
    rank = len(buffer.type.shape)
    bounds = [index(0)] * rank + [_size(buffer, number) for number in range(rank)] + [index(1)] * rank
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


def copy(source: Any, target: Any) -> None:
    """Creates the loop that copies one memref to another of the same shape."""
    for_each_element(target, lambda place: store(load(source, place), target, place))


def add_to(target: Any, source: Any) -> None:
    """Creates the loop that adds each float of ``source`` to that of ``target``."""

    def element(place: list[Any]) -> None:
        old, more = load(target, place), load(source, place)
        store(value("arith.addf", old.type, old, more), target, place)

    for_each_element(target, element)


def clear(target: Any) -> None:
    """Creates the loop that sets every float to zero."""
    nothing = zero(target.type.element_type)
    for_each_element(target, lambda place: store(nothing, target, place))


def _size(buffer: Any, number: int) -> Any:
    if not buffer.type.is_dynamic_dim(number):
        return index(buffer.type.shape[number])
    return value("memref.dim", ir.IndexType.get(), buffer, index(number))


def load(source: Any, place: list[Any]) -> Any:
    """Creates the read of one element."""
    return value("memref.load", source.type.element_type, source, *place)


def store(element: Any, target: Any, place: list[Any]) -> None:
    """Creates the write of one element."""
    create("memref.store", [], [element, target, *place])
