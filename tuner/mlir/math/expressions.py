"""Arithmetic on MLIR values by Python's operators: each creates an op at the current insertion point."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from tuner.mlir.bindings import Type, Value, ir
from tuner.mlir.ir.building import line_of, splat, value

PREDICATE_BITS = 64  # of the predicate attribute of arith.cmpf
# arith's oeq, ogt, olt, ole: false where an operand is NaN
EQUAL = 1
GREATER = 2
LESS = 4
NOT_ABOVE = 5
UNORDERED = 14  # arith's uno


@dataclass(frozen=True)
class Term:
    """An MLIR value whose operators in Python (+ - * / << >> & | < >) create ops at the insertion point.

    An integer, a float or a vector of them; ``/``, ``<`` and ``>`` take floats only, shifts, ``&`` and ``|``
    integers only. Python numbers become constants of the value's type.
    """

    value: Value

    @property
    def is_float(self) -> bool:
        return isinstance(self.element, ir.FloatType)

    @property
    def element(self) -> Type:
        if self._is_vector:
            return self.value.type.element_type
        return self.value.type

    def __add__(self, other: "Term | float") -> "Term":
        return self._binary("add", other)

    def __sub__(self, other: "Term | float") -> "Term":
        return self._binary("sub", other)

    def __mul__(self, other: "Term | float") -> "Term":
        return self._binary("mul", other)

    def __truediv__(self, other: "Term | float") -> "Term":
        return self._binary("div", other)

    def __lshift__(self, count: "Term | int") -> "Term":
        return self._created("arith.shli", self, self._of(count))

    def __rshift__(self, count: "Term | int") -> "Term":
        """Creates the arithmetic right shift of an integer, which extends the sign."""
        return self._created("arith.shrsi", self, self._of(count))

    def logical_shift(self, count: int) -> "Term":
        """Creates the right shift of an integer that shifts zeros in."""
        return self._created("arith.shrui", self, self._of(count))

    def __and__(self, other: "Term | int") -> "Term":
        return self._created("arith.andi", self, self._of(other))

    def __or__(self, other: "Term | int") -> "Term":
        return self._created("arith.ori", self, self._of(other))

    def __lt__(self, other: "Term | float") -> "Term":
        return self._compared(LESS, other)

    def __gt__(self, other: "Term | float") -> "Term":
        return self._compared(GREATER, other)

    def equals(self, other: "Term | float") -> "Term":
        """Creates ``self == other`` of floats; returns the i1 result, false where an operand is NaN."""
        return self._compared(EQUAL, other)

    def not_above(self, other: "Term | float") -> "Term":
        """Creates ``self <= other`` of floats; returns the i1 result, false where an operand is NaN."""
        return self._compared(NOT_ABOVE, other)

    def is_nan(self) -> "Term":
        return self._compared(UNORDERED, self)

    def all(self) -> "Term":
        """Creates the conjunction of the elements of a vector of i1; returns it as an i1 term.

        A term of type i1 is returned as it is.
        """
        if not self._is_vector:
            return self
        type_ = ir.VectorType(self.value.type)
        vector = self.value
        if type_.rank == 1:
            attribute = ir.Attribute.parse("#vector.kind<and>")
            return Term(value("vector.reduction", type_.element_type, vector, kind=attribute))
        lines = [Term(line_of(vector, number)) for number in range(type_.shape[0])]
        return reduce(and_, lines).all()

    def replaced(self, where: "Term", by: "Term | float") -> "Term":
        """Creates a select; returns the term that is ``by`` where ``where`` (i1) is true, else ``self``."""
        return self._created("arith.select", where, self._of(by), self)

    def math(self, name: str, *others: "Term") -> "Term":
        """Creates the op ``math.<name>`` with this term and ``others`` as operands; returns its result."""
        return self._created(f"math.{name}", self, *others)

    def fma(self, factor: "Term | float", addend: "Term | float") -> "Term":
        """Creates ``self * factor + addend`` as one ``math.fma``, which rounds once; returns its result."""
        return self.math("fma", self._of(factor), self._of(addend))

    def polynomial(self, coefficients: Sequence[float]) -> "Term":
        """Creates the polynomial of this term by Horner's scheme with fma; returns its value.

        ``coefficients``: from that of power 0 on.
        """
        result = self.constant(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            result = result.fma(self, coefficient)
        return result

    def constant(self, number: float) -> "Term":
        """Creates a constant of this term's type, rounded to the type; a vector has it in each element."""
        return Term(splat(self.value.type, number))

    def converted(self, op: str, element: Type) -> "Term":
        """Creates ``arith.<op>``, such as ``arith.extf``; returns this term converted to ``element``."""
        return Term(value(f"arith.{op}", self.type_with(element), self.value))

    def bits(self) -> "Term":
        """Creates the bitcast of this term, a float, to an integer of the same width; returns the integer."""
        return self.converted("bitcast", ir.IntegerType.get_signless(self.element.width))

    def type_with(self, element: Type) -> Type:
        """Returns the type of this term with other elements."""
        if self._is_vector:
            return ir.VectorType.get(self.value.type.shape, element)
        return element

    def _binary(self, name: str, other: "Term | float") -> "Term":
        return self._created(f"arith.{name}{'f' if self.is_float else 'i'}", self, self._of(other))

    def _compared(self, predicate: int, other: "Term | float") -> "Term":
        type_ = self.type_with(ir.IntegerType.get_signless(1))
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(PREDICATE_BITS), predicate)
        return Term(value("arith.cmpf", type_, self.value, self._of(other).value, predicate=number))

    def _created(self, op: str, *operands: "Term") -> "Term":
        return Term(value(op, self.value.type, *(operand.value for operand in operands)))

    def _of(self, other: "Term | float") -> "Term":
        if isinstance(other, Term):
            return other
        return self.constant(other)

    @property
    def _is_vector(self) -> bool:
        return isinstance(self.value.type, ir.VectorType)
