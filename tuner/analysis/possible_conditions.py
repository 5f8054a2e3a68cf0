"""Conditions that could explain why points fail: comparisons of knobs, of products of knobs, and of sizes."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Value

Truth = npt.NDArray[np.bool_]  # one per point
Column = npt.NDArray[np.int64] | npt.NDArray[np.str_]

THRESHOLDS = 24  # of one term; more are thinned out evenly
SIZES = ("m", "n", "k")


@dataclass(frozen=True, eq=False)
class Condition:
    """A comparison of knobs or sizes that may explain failures: points where it is true may fail.

    ``truth`` has one bool per point; ``allowed`` is the negated comparison, as the text of a constraint.
    """

    allowed: str  # the negation, as the text of a constraint
    truth: Truth
    cost: int  # number of names: the fewer, the simpler
    is_partner: bool  # simple enough to be joined with other conditions
    is_alone: bool  # involves knobs, so that its negation is a constraint by itself


@dataclass(frozen=True, eq=False)
class _Term:
    text: str
    values: npt.NDArray[np.int64]
    names: int
    is_of_knobs: bool


class PointColumns:
    """The values of search-space points as numpy columns by name, with one element per point.

    Names that have the same value at every point are left out.
    """

    def __init__(self, points: tuple[dict[str, Value], ...], knobs: tuple[str, ...]) -> None:
        columns = {name: np.array([point[name] for point in points]) for name in points[0]} if points else {}
        self.columns: dict[str, Column] = {
            name: column for name, column in columns.items() if len(np.unique(column)) > 1
        }
        self.knobs = tuple(name for name in knobs if name in self.columns)
        self.numbers = tuple(name for name, column in self.columns.items() if column.dtype.kind == "i")
        self.number_knobs = tuple(name for name in self.knobs if name in self.numbers)
        self.texts = tuple(name for name in self.columns if name not in self.numbers)

    def number(self, name: str) -> npt.NDArray[np.int64]:
        """Returns the values of the integer knob or size ``name``, one per point, as int64."""
        return self.columns[name].astype(np.int64)


def conditions(columns: PointColumns, failed: Truth) -> Iterator[Condition]:
    """Yields comparisons that could explain failures: thresholds, equalities, orders and divisibility.

    ``failed`` has one bool per point. Thresholds are values that failed points have, at most THRESHOLDS (24)
    of each knob, size or product of knobs.
    """
    for term in _terms(columns):
        yield from _thresholds(term, failed)
    yield from _equalities(columns)
    yield from _comparisons(columns)
    yield from _divisions(columns)


def _terms(columns: PointColumns) -> Iterator[_Term]:
    """Yields every integer name, and the products of two and of three knobs."""
    for name in columns.numbers:
        yield _Term(name, columns.number(name), 1, name in columns.knobs)
    for count in (2, 3):
        for names in itertools.combinations(columns.number_knobs, count):
            product = np.prod([columns.number(name) for name in names], axis=0)
            yield _Term(" * ".join(names), product, count, is_of_knobs=True)


def _thresholds(term: _Term, failed: Truth) -> Iterator[Condition]:
    met = np.unique(term.values[failed])
    if len(met) > THRESHOLDS:
        met = met[np.linspace(0, len(met) - 1, THRESHOLDS).round().astype(int)]
    for value in met.tolist():
        is_partner = term.names <= 2
        above, below = term.values >= value, term.values <= value
        yield Condition(f"{term.text} < {value}", above, term.names, is_partner, term.is_of_knobs)
        yield Condition(f"{term.text} > {value}", below, term.names, is_partner, term.is_of_knobs)


def _equalities(columns: PointColumns) -> Iterator[Condition]:
    for name in (*columns.texts, *columns.number_knobs):
        column = columns.columns[name]
        for value in np.unique(column).tolist():
            yield Condition(f"{name} != {value!r}", column == value, 1, True, name in columns.knobs)


def _comparisons(columns: PointColumns) -> Iterator[Condition]:
    """Compares knobs with knobs, and products of two knobs with knobs, sizes and limits that vary."""
    for left, right in itertools.permutations(columns.number_knobs, 2):
        above = columns.number(left) > columns.number(right)
        yield Condition(f"{left} <= {right}", above, 2, is_partner=True, is_alone=True)
    for term in (term for term in _terms(columns) if term.is_of_knobs and term.names <= 2):
        for other in (name for name in columns.numbers if name not in term.text.split(" * ")):
            if term.names == 1 and other in columns.knobs:
                continue  # the loop above yields these
            is_partner = term.names == 1
            above, below = term.values > columns.number(other), term.values < columns.number(other)
            yield Condition(f"{term.text} <= {other}", above, term.names + 1, is_partner, is_alone=True)
            yield Condition(f"{term.text} >= {other}", below, term.names + 1, is_partner, is_alone=True)


def _divisions(columns: PointColumns) -> Iterator[Condition]:
    """Yields divisibility conditions of knobs and sizes by knobs and by products of two knobs."""
    for part in (term for term in _terms(columns) if term.is_of_knobs and term.names <= 2):
        divisor = np.where(part.values == 0, 1, part.values)
        text = part.text if part.names == 1 else f"({part.text})"
        for whole in (*columns.number_knobs, *(name for name in SIZES if name in columns.numbers)):
            if whole in part.text.split(" * "):
                continue
            # a constraint that divides by zero does not hold
            fails = (columns.number(whole) % divisor != 0) | (part.values == 0)
            yield Condition(f"{whole} % {text} == 0", fails, part.names + 1, part.names == 1, is_alone=True)
