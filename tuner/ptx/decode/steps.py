"""Steps of one result made of a function on values."""

from collections.abc import Callable

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.operands import Operands, Step
from tuner.ptx.dtypes import Array, PtxType


def unary(operands: Operands, type_: PtxType, function: Callable[[Array], Array]) -> Step:
    """Returns ``d = f(a)``, all of one type."""
    operands.need(2)
    write, a = operands.destination(0, type_), operands.source(1, type_)

    def step(chunk: Chunk) -> None:
        write(chunk, function(a(chunk)))

    return step


def binary(operands: Operands, type_: PtxType, function: Callable[[Array, Array], Array]) -> Step:
    """Returns ``d = f(a, b)``, all of one type."""
    return binary_of(operands, type_, (type_, type_), function)


def binary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType],
    function: Callable[[Array, Array], Array],
) -> Step:
    """Returns ``d = f(a, b)`` of several types."""
    operands.need(3)
    write = operands.destination(0, result)
    a, b = operands.source(1, sources[0]), operands.source(2, sources[1])

    def step(chunk: Chunk) -> None:
        write(chunk, function(a(chunk), b(chunk)))

    return step


def ternary(operands: Operands, type_: PtxType, function: Callable[[Array, Array, Array], Array]) -> Step:
    """Returns ``d = f(a, b, c)``, all of one type."""
    return ternary_of(operands, type_, (type_, type_, type_), function)


def ternary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType, PtxType],
    function: Callable[[Array, Array, Array], Array],
) -> Step:
    """Returns ``d = f(a, b, c)`` of several types."""
    operands.need(4)
    write = operands.destination(0, result)
    a, b, c = (operands.source(number, type_) for number, type_ in enumerate(sources, 1))

    def step(chunk: Chunk) -> None:
        write(chunk, function(a(chunk), b(chunk), c(chunk)))

    return step
