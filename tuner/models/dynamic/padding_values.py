"""What may be known of elements of a tensor in padding: limits of integers, numbers, steps of a softmax."""

from dataclasses import dataclass, field
from enum import Enum, auto

from tuner.core.dynamic_sizes import LinearSize, static_size
from tuner.mlir.bindings import Value


@dataclass(frozen=True)
class IntegerBounds:
    """An integer from ``least`` to ``greatest``, both included, which may depend on n; of an i1 0 or 1."""

    least: LinearSize
    greatest: LinearSize

    @property
    def is_exact(self) -> bool:
        return self.least == self.greatest

    def plus(self, other: "IntegerBounds") -> "IntegerBounds":
        return IntegerBounds(self.least.plus(other.least), self.greatest.plus(other.greatest))

    def minus(self, other: "IntegerBounds") -> "IntegerBounds":
        return IntegerBounds(self.least.minus(other.greatest), self.greatest.minus(other.least))


def exactly(number: LinearSize | int) -> IntegerBounds:
    """Returns the limits of an integer that is known, and may depend on n."""
    size = static_size(number) if isinstance(number, int) else number
    return IntegerBounds(size, size)


class SoftmaxStep(Enum):
    """A step of a softmax over a dimension in whose padding the scores are -inf.

    Padding of a WEIGHT is 0, or NaN in a row whose elements that count are all NaN. Padding of an EXPONENTIAL
    is so, too; of a DISTANCE it is -inf in place of 0. MOST and SUM are numbers of a row.
    """

    DISTANCE = auto()  # a score less the greatest of its row
    EXPONENTIAL = auto()  # of the distance
    WEIGHT = auto()  # the exponential, divided by the sum of its row
    MOST = auto()  # the greatest score of a row
    SUM = auto()  # of the exponentials of a row


WEIGHTS = (SoftmaxStep.EXPONENTIAL, SoftmaxStep.WEIGHT)


@dataclass(frozen=True)
class SoftmaxTerm:
    """A number of a softmax of the tensor ``scores`` over its dimension ``dimension``.

    A DISTANCE and an EXPONENTIAL have the index of their score. ``dimensions``: of a tensor with MOST and
    SUM, for each of its dimensions that of the scores, None for a size of 1.
    """

    step: SoftmaxStep
    scores: Value
    dimension: int
    dimensions: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class OfRow:
    """A number of which nothing is known but that it is the same for all elements of a row."""


Fact = IntegerBounds | float | SoftmaxTerm | OfRow


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of the elements of tensors.

    ``padding``: by tensor and dimension, of elements whose index along the dimension is padding, and whose
    other indices count. ``counted``: by tensor, of integers that count. ``rows``: of numbers of rows.
    """

    padding: dict[tuple[Value, int], Fact] = field(default_factory=dict)
    counted: dict[Value, IntegerBounds] = field(default_factory=dict)
    rows: dict[Value, SoftmaxTerm] = field(default_factory=dict)

    def is_weight(self, tensor: Value, dimension: int) -> bool:
        """Returns whether padding adds nothing to sums of products with numbers that are 0 in padding.

        It adds 0, or NaN to a sum that has a term of NaN already.
        """
        fact = self.padding.get((tensor, dimension))
        return isinstance(fact, SoftmaxTerm) and fact.step in WEIGHTS
