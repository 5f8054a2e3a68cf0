"""Map of the times of a group's configurations: a line per problem, a column per configuration."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.core.reliability import Reliability
from tuner.output.report.heat_map import SHADES

CELL = 14.0  # units
LETTER = 7.0  # width of a letter in units, at most


@dataclass(frozen=True)
class TimedCell:
    """One problem with one configuration: its place on the map and its speed."""

    x: float
    y: float
    problem: str
    column: int
    efficiency: float | None  # best time of the problem / time; None: not timed
    applies: bool
    reliability: Reliability  # of the problem's times

    @property
    def shade(self) -> str:
        """Returns the name of the cell's shade: "0" (slow) to "5" (fastest); "none" without a time."""
        if self.efficiency is None or self.reliability.unreliable:
            return "none"
        return str(sum(self.efficiency >= bound for bound in SHADES))

    @property
    def text(self) -> str:
        """Returns the cell as text: its speed relative to the problem's best, or why it has none."""
        if self.efficiency is not None:
            return of_best_text(self.efficiency, self.reliability)
        return "not timed" if self.applies else "does not apply"


@dataclass(frozen=True)
class TimeMap:
    """The drawn map; coordinates are in SVG units."""

    problems: tuple[str, ...]  # labels of the lines
    columns: tuple[int, ...]  # numbers of the configurations with a time, most timed first
    cells: tuple[TimedCell, ...]

    @property
    def cell(self) -> float:
        """Returns the size of a cell with the gap to the next one."""
        return CELL

    @property
    def margin(self) -> float:
        """Returns the space for the labels to the left of the map."""
        return 10 + LETTER * max(len(label) for label in self.problems)

    @property
    def width(self) -> float:
        """Returns the width of the cells."""
        return CELL * len(self.columns)

    @property
    def height(self) -> float:
        """Returns the height of the cells."""
        return CELL * len(self.problems)


def of_best_text(efficiency: float, reliability: Reliability) -> str:
    """Returns a speed relative to the best, marked if it may be unreliable; no ratio of unreliable times."""
    if reliability.unreliable:
        return "timed, unreliable"
    mark = "" if reliability.is_reliable else f" ({reliability.word})"
    return f"{100 * efficiency:.1f}% of the best{mark}"


def time_map_of(matrix: TimeMatrix, reliability: Sequence[Reliability]) -> TimeMap:
    """Returns the map of a matrix that has a time: all problems, and the configurations with a time.

    ``reliability``: of the times of each problem.
    """
    timed, efficiency = matrix.is_timed(), matrix.efficiency()
    uses = timed.sum(axis=0)
    columns = tuple(sorted((c for c in range(len(uses)) if uses[c]), key=lambda c: (-uses[c], c)))
    labels = tuple(_label(matrix, row) for row in range(len(matrix.problems)))
    cells = tuple(
        TimedCell(
            CELL * place,
            CELL * row,
            label,
            column,
            float(efficiency[row, column]) if timed[row, column] else None,
            matrix.applies[row][column],
            reliability[row],
        )
        for row, label in enumerate(labels)
        for place, column in enumerate(columns)
    )
    return TimeMap(labels, columns, cells)


def _label(matrix: TimeMatrix, row: int) -> str:
    """Returns a problem's shape, and what else is needed to tell it from the others with this shape."""
    problem = matrix.problems[row]
    same = [each for each in matrix.problems if each.shape == problem.shape]
    return problem.shape if len(same) == 1 else problem.key.partition(" ")[2]
