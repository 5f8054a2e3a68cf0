"""Arithmetic of constraint expressions on values that may be undefined at some points.

A division by zero makes a value undefined at that point; nothing is raised. Truth values follow Kleene's
logic: ``True or undefined`` is True and ``False and undefined`` is False, in either order; any other
operation on an undefined part that matters is undefined. Integers are exact at any size: numpy columns that
could exceed 64 bits become columns of Python integers.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]  # one value per point: int64, float64, bool, text, or object for big integers
Operand = int | float | str | Column
Mask = bool | npt.NDArray[np.bool_]

WORD_LIMIT = 2**63  # the least magnitude that int64 cannot hold
POWER_BITS_LIMIT = 1024  # a power that could be wider is refused: it could fill the memory

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, eq=False)
class Partial:
    """A value of an expression: a number, a text, or a column of either, with a mask of undefined points."""

    value: Operand
    undefined: Mask = False

    def filled(self) -> Operand:
        """Returns the number, text or column, with 0, False or "" at undefined points."""
        if not np.any(self.undefined):
            return self.value
        nothing = "" if _is_text(self.value) else np.zeros((), np.asarray(self.value).dtype)[()]
        filled: Operand = _plain(np.where(self.undefined, nothing, self.value))
        return filled


def arithmetic(sign: str, left: Partial, right: Partial) -> Partial:
    """Returns ``left sign right``, elementwise, for an operator ``sign`` such as "+" or "//".

    Undefined where the divisor is zero. Raises TypeError for text, OverflowError for a power above 1024 bits
    and for a result beyond a float's range.
    """
    a = _number(left.value, sign)
    b = _number(right.value, sign)
    undefined = _either(left.undefined, right.undefined)
    if sign in ("/", "//", "%"):
        is_zero = b == 0
        undefined = _either(undefined, is_zero)
        b = _plain(np.where(is_zero, 1, b)) if np.any(is_zero) else b
    a, b = _wide_enough(sign, a, b)
    with np.errstate(all="ignore"):
        return Partial(ARITHMETIC[sign](a, b), undefined)


def ceil_div(left: Partial, right: Partial) -> Partial:
    """Returns ``left / right`` rounded up; undefined where ``right`` is zero. Raises TypeError for text."""
    return negative(arithmetic("//", negative(left), right))


def negative(part: Partial) -> Partial:
    """Returns the number or column with its sign changed. Raises TypeError for text."""
    return arithmetic("-", Partial(0), part)


def magnitude(part: Partial) -> Partial:
    """Returns the absolute value of a number or column. Raises TypeError for text."""
    return choose(compare("<", part, Partial(0)), negative(part), part)


def smallest(parts: list[Partial]) -> Partial:
    """Returns the elementwise minimum; undefined where any part is. Raises TypeError for text."""
    return reduce(lambda a, b: choose(compare("<=", a, b), a, b), parts)


def largest(parts: list[Partial]) -> Partial:
    """Returns the elementwise maximum; undefined where any part is. Raises TypeError for text."""
    return reduce(lambda a, b: choose(compare(">=", a, b), a, b), parts)


def compare(sign: str, left: Partial, right: Partial) -> Partial:
    """Returns the truth of ``left sign right``: any comparison of numbers, or == and != of texts.

    Undefined where either side is undefined. Raises TypeError for other comparisons of texts, and for a text
    and a number.
    """
    texts = _is_text(left.value) + _is_text(right.value)
    if texts == 1:
        raise TypeError(f"text compared with a number by {sign}")
    if texts == 2 and sign not in ("==", "!="):
        raise TypeError(f"texts compared by {sign}")
    return Partial(
        _plain(COMPARISONS[sign](left.value, right.value)), _either(left.undefined, right.undefined)
    )


def all_of(parts: list[Partial]) -> Partial:
    """Returns the logical and: False where any part is False, else undefined where any part is undefined.

    Raises TypeError for text.
    """
    return negate(any_of(list(map(negate, parts))))


def any_of(parts: list[Partial]) -> Partial:
    """Returns the logical or: True where any part is True, else undefined where any part is undefined.

    Raises TypeError for text.
    """
    defined = (np.logical_and(_truth(part.value), np.logical_not(part.undefined)) for part in parts)
    true = _plain(reduce(np.logical_or, map(_mask, defined)))
    undefined = reduce(_either, (part.undefined for part in parts))
    return Partial(true, _either(False, np.logical_and(undefined, np.logical_not(true))))


def negate(part: Partial) -> Partial:
    """Returns the logical not; undefined points stay undefined. Raises TypeError for text."""
    return Partial(_plain(np.logical_not(_truth(part.value))), part.undefined)


def choose(test: Partial, then: Partial, other: Partial) -> Partial:
    """Returns ``then`` where ``test`` is true, else ``other``, elementwise.

    Undefined where ``test`` or the chosen value is undefined. Raises TypeError if only one of the values is
    text, or ``test`` is.
    """
    if _is_text(then.value) != _is_text(other.value):
        raise TypeError("a choice between text and a number")
    true = _truth(test.value)
    if isinstance(true, bool):
        picked = then if true else other
        return Partial(picked.value, _either(test.undefined, picked.undefined))
    undefined = _either(test.undefined, np.where(true, then.undefined, other.undefined))
    return Partial(np.where(true, then.value, other.value), undefined)


def _truth(value: Operand) -> Mask:
    if _is_text(value):
        raise TypeError("text used as a condition")
    return _mask(value != 0)


def _either(a: Mask, b: Mask) -> Mask:
    return _mask(np.logical_or(a, b))


def _is_text(value: Operand) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind == "U")


def _number(value: Operand, sign: str) -> int | float | Column:
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "U":
            raise TypeError(f"text in {sign}")
        if value.dtype.kind == "b":
            return value.astype(np.int64)
        return value
    if isinstance(value, str):
        raise TypeError(f"text in {sign}")
    if isinstance(value, bool):
        return int(value)
    return value


def _wide_enough(
    sign: str, a: int | float | Column, b: int | float | Column
) -> tuple[int | float | Column, int | float | Column]:
    """Returns ``a`` and ``b``, as columns of Python integers if the result could exceed 64 bits."""
    wide_a = _widest(a)
    wide_b = _widest(b)
    if sign == "**" and wide_a.bit_length() * wide_b > POWER_BITS_LIMIT:
        raise OverflowError(f"a power wider than {POWER_BITS_LIMIT} bits")
    if sign == "**":
        result = wide_a**wide_b
    elif sign == "*":
        result = wide_a * wide_b
    else:
        result = wide_a + wide_b
    if max(wide_a, wide_b, result) < WORD_LIMIT:
        return a, b
    return _exact(a), _exact(b)


def _widest(value: int | float | Column) -> int:
    if isinstance(value, int):
        return abs(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iO" or value.size == 0:
        return 0
    if value.dtype.kind == "O" and any(isinstance(item, float) for item in value.flat):
        return 0
    return max(abs(int(value.max())), abs(int(value.min())))


def _exact(value: int | float | Column) -> int | float | Column:
    if isinstance(value, np.ndarray) and value.dtype.kind == "i":
        return value.astype(object)
    return value


def _mask(value: Any) -> Mask:
    if isinstance(value, np.ndarray) and value.ndim:
        return value.astype(bool)
    return bool(value)


def _plain(value: Any) -> Any:
    is_scalar = isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if is_scalar:
        return value.item()
    return value
