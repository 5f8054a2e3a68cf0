"""Steps that compute one destination as a function of source values."""

from collections.abc import Callable

from tuner.simulator.ptx.decode.operands import Operands, Step
from tuner.simulator.ptx.dtypes import Array, PtxType
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks


def unary(operands: Operands, type_: PtxType, function: Callable[[Array], Array]) -> Step:
    """Returns the step for ``d = function(a)``, both of ``type_``: operands 0 and 1 of an instruction.

    A step executes the instruction in the active lanes. ``function`` gets and returns arrays of values.
    Raises UnsupportedInstruction for another number of operands.
    """
    operands.need(2)
    write, a = operands.destination(0, type_), operands.source(1, type_)

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident)))

    return step


def binary(operands: Operands, type_: PtxType, function: Callable[[Array, Array], Array]) -> Step:
    """Returns the step for ``d = function(a, b)``, all of ``type_``: operands 0 to 2 of an instruction.

    A step executes the instruction in the active lanes. ``function`` gets and returns arrays of values.
    Raises UnsupportedInstruction for another number of operands.
    """
    return binary_of(operands, type_, (type_, type_), function)


def binary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType],
    function: Callable[[Array, Array], Array],
) -> Step:
    """Returns the step for ``d = function(a, b)``: operands 0 to 2 of an instruction.

    ``result`` is the type of d, ``sources`` the types of a and b. A step executes the instruction in the
    active lanes. ``function`` gets and returns arrays of values. Raises UnsupportedInstruction for another
    number of operands.
    """
    operands.need(3)
    write = operands.destination(0, result)
    a, b = operands.source(1, sources[0]), operands.source(2, sources[1])

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident), b(resident)))

    return step


def ternary(operands: Operands, type_: PtxType, function: Callable[[Array, Array, Array], Array]) -> Step:
    """Returns the step for ``d = function(a, b, c)``, all of ``type_``: operands 0 to 3 of an instruction.

    A step executes the instruction in the active lanes. ``function`` gets and returns arrays of values.
    Raises UnsupportedInstruction for another number of operands.
    """
    return ternary_of(operands, type_, (type_, type_, type_), function)


def ternary_of(
    operands: Operands,
    result: PtxType,
    sources: tuple[PtxType, PtxType, PtxType],
    function: Callable[[Array, Array, Array], Array],
) -> Step:
    """Returns the step for ``d = function(a, b, c)``: operands 0 to 3 of an instruction.

    ``result`` is the type of d, ``sources`` the types of a, b and c. A step executes the instruction in the
    active lanes. ``function`` gets and returns arrays of values. Raises UnsupportedInstruction for another
    number of operands.
    """
    operands.need(4)
    write = operands.destination(0, result)
    a, b, c = (operands.source(number, type_) for number, type_ in enumerate(sources, 1))

    def step(resident: ResidentBlocks) -> None:
        write(resident, function(a(resident), b(resident), c(resident)))

    return step
