"""Steps that compute one destination as a function of source values."""

from collections.abc import Callable

from tuner.simulator.ptx.decode.operands import Operands, Step
from tuner.simulator.ptx.dtypes import Array, PtxType
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks


def unary(operands: Operands, type_: PtxType, function: Callable[[Array], Array]) -> Step:
    """Returns the step ``d = f(a)``, all operands of one type."""
    operands.need(2)
    write, a = operands.destination(0, type_), operands.source(1, type_)

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident)))

    return step


def binary(operands: Operands, type_: PtxType, function: Callable[[Array, Array], Array]) -> Step:
    """Returns the step ``d = f(a, b)``, all operands of one type."""
    return binary_of(operands, type_, (type_, type_), function)


def binary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType],
    function: Callable[[Array, Array], Array],
) -> Step:
    """Returns the step ``d = f(a, b)`` with operands of different types."""
    operands.need(3)
    write = operands.destination(0, result)
    a, b = operands.source(1, sources[0]), operands.source(2, sources[1])

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident), b(resident)))

    return step


def ternary(operands: Operands, type_: PtxType, function: Callable[[Array, Array, Array], Array]) -> Step:
    """Returns the step ``d = f(a, b, c)``, all operands of one type."""
    return ternary_of(operands, type_, (type_, type_, type_), function)


def ternary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType, PtxType],
    function: Callable[[Array, Array, Array], Array],
) -> Step:
    """Returns the step ``d = f(a, b, c)`` with operands of different types."""
    operands.need(4)
    write = operands.destination(0, result)
    a, b, c = (operands.source(number, type_) for number, type_ in enumerate(sources, 1))

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident), b(resident), c(resident)))

    return step
