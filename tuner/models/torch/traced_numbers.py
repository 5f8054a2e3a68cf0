"""Where PyTorch's symbols compute otherwise than Python's numbers, they are corrected.

PyTorch 2.13 leaves ``round(n, -1)`` of a symbol out, in torch.export and in torch.compile, has 10 for
``1 // 0.1``, which is 9, and gives "s77" as the text of a size: what a module makes of that text would be a
constant of its program.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch

from tuner.models.torch.element_types import is_float

FLOATS = (float, torch.SymFloat)
EXTREMUM = "the type of max or min of a size and a float, next to integers, depends on the size"
EXTREMA = (torch.sym_max, torch.sym_min)
NUMBERS = (int, torch.SymInt, *FLOATS)
# whose code may write the name of a symbol into a message
LIBRARIES = frozenset((*sys.stdlib_module_names, "sympy", "torch", "tuner"))


def rounded(number: torch.SymInt, digits: int | None = None) -> torch.SymInt:
    """Returns ``round(number, digits)`` of an integer: the nearest multiple of a power of ten.

    Of two multiples that are equally near, the even one. There is no branch, which would be a condition on
    the size.
    """
    if digits is None or digits >= 0:
        return number
    power = 10**-digits
    nearest = (2 * number + power) // (2 * power)  # the greater one where two are as near
    is_tie = 1 - torch.sym_min((2 * number + power) % (2 * power), 1)
    return (nearest - is_tie * (nearest % 2)) * power


def floored(number: Any, divisor: Any) -> Any:
    """Returns ``number // divisor`` where one is a float: the floor of the exact quotient.

    A division that rounds first may give the next integer. NotImplemented for operands that are not numbers.
    """
    if not (isinstance(number, NUMBERS) and isinstance(divisor, NUMBERS)):
        return NotImplemented
    dividend = torch.sym_float(number)
    by = torch.sym_float(divisor)
    return torch.sym_float(round((dividend - dividend % by) / by))


def correct_arithmetic() -> None:
    """Makes ``round`` and ``//`` of symbols compute as Python does, in torch.export and torch.compile."""
    torch.SymInt.__round__ = rounded
    torch.SymInt.__floordiv__ = _floored_integer
    torch.SymInt.__rfloordiv__ = _floored_by_integer
    torch.SymFloat.__floordiv__ = floored
    torch.SymFloat.__rfloordiv__ = _floored_by


def _floored_by(divisor: torch.SymFloat, number: Any) -> Any:
    return floored(number, divisor)


def _floored_by_integer(divisor: torch.SymInt, number: Any) -> Any:
    if isinstance(number, FLOATS):
        return floored(number, divisor)
    if not isinstance(number, NUMBERS):
        return NotImplemented
    return divisor.__rint_floordiv__(number)


def _floored_integer(number: torch.SymInt, divisor: Any) -> Any:
    if isinstance(divisor, FLOATS):
        return floored(number, divisor)
    if not isinstance(divisor, NUMBERS):
        return NotImplemented
    return number.__int_floordiv__(divisor)


def has_extremum_of_types(graph: torch.fx.Graph) -> bool:
    """Returns whether a graph has ``max`` or ``min`` of a size and a float, ``max(n, 2.5)``, with integers.

    PyTorch traces a float. Python has the integer ``n`` where that is the result, so the type of what is
    computed from it depends on n.
    """
    extrema: set[torch.fx.Node] = set()
    for node in graph.nodes:
        value = _value(node)
        inputs = node.all_input_nodes
        if node.target in EXTREMA and isinstance(value, torch.SymFloat):
            extrema.add(node)
        elif extrema.isdisjoint(inputs):
            continue
        elif not isinstance(value, torch.Tensor):
            extrema.add(node)
        elif value.is_floating_point() and not any(is_float(_value(read)) for read in inputs):
            return True
    return False


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("val", node.meta.get("example_value"))


@contextlib.contextmanager
def texts_as_constants() -> Iterator[None]:
    """Context manager: the text of a dynamic size is that of its value, which then becomes a constant."""
    named = torch.SymInt.__repr__
    torch.SymInt.__repr__ = _text
    try:
        yield
    finally:
        torch.SymInt.__repr__ = named


def _text(number: torch.SymInt) -> str:
    reader = str(sys._getframe(1).f_globals.get("__name__"))  # noqa: SLF001 - text is asked for without an argument
    if reader.partition(".")[0] in LIBRARIES:
        name: str = number.node._graph_repr()  # noqa: SLF001 - as torch.SymInt
        return name
    return str(int(number))
