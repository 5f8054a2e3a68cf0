"""Formats values as short text for people, and tables of text fitted to the width of a terminal.

First tables: ``table_lines`` fits one to a width by wrapping text, then by leaving out columns. Then texts of
times, problems and knobs, and ``wrapped`` for the lines of a summary.
"""

import itertools
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from tuner.core.candidate import Value
from tuner.core.fusions import text_hash
from tuner.core.problem import Problem
from tuner.core.problem_classes import FusedProblem
from tuner.core.records import Measurement
from tuner.core.runs import GIVEN, SEED, SHIPPED, SPACE_FILE, WARM_START, InitialConfiguration
from tuner.core.serialization import count_text, printable, seconds_text
from tuner.core.trials import StoredTrial

GAP = "  "  # between columns
BELOW = " " * 7  # begins a line of details: after the column of a number
TEXT_COLUMNS = 24  # a text column is made no narrower while another column can be left out
WORD_COLUMNS = 6  # the least width of a text column: words are broken

Row = tuple[str, ...]
LINE_LIMIT = 2000  # characters of a message
# width of a summary; indent of its text, right of the lines' names
SUMMARY_COLUMNS = 80
SUMMARY_INDENT = 10
COMMAND = re.compile(r"\btuner [a-z]")  # a command to type, unlike the version text "tuner 0.1.0"
ORIGIN_TEXTS = {  # origin -> text of a count
    GIVEN: "{} of --seeds",
    SHIPPED: "{} of shipped results",
    SPACE_FILE: "{} of the search-space file",
    SEED: "{} of the cost model",
}


def table_lines(
    header: Row,
    rows: Sequence[Row],
    columns: int | None = None,
    spared: Sequence[str] = (),
    below: Sequence[str] = (),
) -> list[str]:
    """Returns the lines of a text table, fitted to ``columns`` characters where that is possible.

    Long cells are wrapped; before text gets narrower than 24 characters, columns of ``spared`` are left out,
    in that order. Columns of numbers are right-aligned and never wrapped. ``below``: a text for each row, in
    lines of its own below the row.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    kept = list(range(len(header)))
    left_out = list[str]()
    cells = [header, *rows]
    for name in filter(header.__contains__, spared):
        if columns is None or _total(_least(cells, TEXT_COLUMNS)) <= columns:
            break
        kept.remove(header.index(name))
        left_out.append(name)
        cells = [_of_columns(row, kept) for row in (header, *rows)]
    widths = _widths(cells, columns)
    is_right = [_is_number_column(cells, column) for column in range(len(kept))]
    lines = []
    for row, text in zip(cells, itertools.chain(("",), below, itertools.repeat("")), strict=False):
        parts = textwrap.wrap(printable(text), (columns or sys.maxsize) - len(BELOW), break_on_hyphens=False)
        lines += [*_lines(row, widths, is_right), *(f"{BELOW}{part}" for part in parts)]
    if left_out:
        lines.append(f"(columns hidden: {', '.join(left_out)}; widen the terminal, or --json)")
    return lines


def varying_columns(
    header: Row, rows: Sequence[Row], names: Sequence[str]
) -> tuple[Row, list[Row], list[str]]:
    """Returns (header, rows, lines) without those columns of ``names`` that are equal in all rows.

    ``lines`` has one line that states their values, to print below the table; it is [] if there are none. A
    table of one row keeps all columns.
    """
    kept = []
    shared = []
    for index, name in enumerate(header):
        column = {row[index] for row in rows}
        if name in names and len(rows) > 1 and len(column) == 1:
            shared.append(f"{name} {rows[0][index]}")
        else:
            kept.append(index)
    lines = [f"in every row: {', '.join(shared)}"] if shared else []
    return _of_columns(header, kept), [_of_columns(row, kept) for row in rows], lines


def _of_columns(row: Row, columns: Iterable[int]) -> Row:
    return tuple(row[column] for column in columns)


def _widths(cells: Sequence[Row], columns: int | None) -> list[int]:
    widths = _least(cells, None)
    texts = _least(cells, TEXT_COLUMNS)
    broken = _least(cells, WORD_COLUMNS)
    words = [max(map(len, " ".join(column).split()), default=0) for column in zip(*cells, strict=True)]
    # wrap text at TEXT_COLUMNS, then down to its longest word, then within words
    for least in (texts, [*map(min, texts, words)], broken):
        while columns is not None and _total(widths) > columns:
            widest = max(
                range(len(widths)), key=lambda column: (widths[column] > least[column], widths[column])
            )
            if widths[widest] <= least[widest]:
                break
            widths[widest] -= 1
    return widths


def _least(cells: Sequence[Row], limit: int | None) -> list[int]:
    """Returns the least width of each column: numbers are never broken, text is wrapped at ``limit``."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        width if limit is None or _is_number_column(cells, column) else min(width, limit)
        for column, width in enumerate(widths)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _lines(row: Row, widths: Sequence[int], is_right: Sequence[bool]) -> list[str]:
    """Returns a row as lines: each cell is wrapped at the width of its column and padded to it."""
    columns = []
    for cell, width in zip(row, widths, strict=True):
        whole = len(cell) <= width
        columns.append([cell] if whole else textwrap.wrap(cell, width, break_on_hyphens=False))
    lines = []
    for texts in itertools.zip_longest(*columns, fillvalue=""):
        padded = []
        for text, width, right in zip(texts, widths, is_right, strict=True):
            padded.append(text.rjust(width) if right else text.ljust(width))
        lines.append(GAP.join(padded).rstrip())
    return lines


def _is_number_column(cells: Sequence[Row], column: int) -> bool:
    below = [row[column] for row in cells[1:]]
    return bool(below) and all(cell.replace(".", "").isdigit() or cell == "-" for cell in below)


def bound_text(measurement: Measurement) -> str:
    """Returns the lower bound of an early-stopped measurement's time, its fastest sample: '> 12 ms'."""
    return f"> {seconds_text(measurement.least_s)}"


def early_stopped_text(measurement: Measurement) -> str:
    """Returns an early-stopped measurement's bound and samples: '> 12 ms, early-stopped after 3 samples'."""
    samples = count_text(len(measurement.samples_s), "sample")
    return f"{bound_text(measurement)}, early-stopped after {samples}"


def trial_time_text(trial: StoredTrial) -> str:
    """Returns the time that counts for a trial, such as '1.2 ms'; a lower bound if early-stopped; or '-'."""
    if trial.early_stopped is not None:
        return early_stopped_text(trial.early_stopped)
    if trial.best_s is None:
        return "-"
    return seconds_text(trial.best_s)


def gflop_per_s(problem: Problem, median_s: float | None) -> float | None:
    """Returns a kernel's speed in 1e9 flop per second; None if its time ``median_s`` is None or 0."""
    if median_s:
        return problem.flop / median_s / 1e9
    return None


def speed_text(gflop_per_s: float | None) -> str:
    """Returns a speed with its unit; '-' for None (not timed)."""
    if gflop_per_s is None:
        return "-"
    return f"{gflop_per_s:.4g} GFLOP/s"


def problem_text(problem: Problem) -> str:
    """Returns a problem without default values: 'matmul 64x64x64 f16 -> f16 nt'; a fusion with its hash."""
    options = [problem.operation, problem.shape, problem.types]
    if problem.output:
        options.append(f"-> {problem.output}")
    options += [option for option in (problem.layout, problem.epilogue) if option not in ("nn", "none")]
    if isinstance(problem, FusedProblem):
        options.append(f"fusion {text_hash(problem.text)}")
    return " ".join((*options, *problem.memory_options))


def knobs_text(knobs: Sequence[tuple[str, Value]]) -> str:
    """Returns the (name, value) pairs of knobs as one line: 'tile_m=4 tile_n=16'."""
    return " ".join(f"{name}={value}" for name, value in knobs)


def knobs_line(knobs: Sequence[tuple[str, Value]]) -> str:
    """Returns the line 'knobs     tile_m=4 tile_n=16' of a summary; 'none' in place of no knobs."""
    return f"knobs     {knobs_text(knobs) or 'none'}"


def one_line(text: str) -> str:
    """Returns a text as one line, control characters escaped, cut after LINE_LIMIT (2000) characters."""
    plain = printable(" ".join(text.split()))
    if len(plain) <= LINE_LIMIT:
        return plain
    return f"{plain[:LINE_LIMIT]}..."


def feasible_text(feasible: int, cartesian: int) -> str:
    """Returns how many combinations of knobs are feasible: '1,004 of 60,000 combinations are feasible'."""
    if cartesian == 1:
        return f"{feasible} of 1 combination is feasible"
    return f"{feasible:,} of {cartesian:,} combinations are feasible"


def initial_configurations_text(points: tuple[InitialConfiguration, ...]) -> str:
    """Returns text on how many of a run's initial configurations came from each origin."""
    counts = Counter(point.origin for point in points)
    others = ", then ".join(
        text.format(counts[origin]) for origin, text in ORIGIN_TEXTS.items() if counts[origin]
    )
    sources = tuple(dict.fromkeys(point.source for point in points if point.origin == WARM_START))
    if not sources:
        return others
    warm = f"warm start from {', '.join(sources)}: {count_text(counts[WARM_START], 'configuration')}"
    if others:
        return f"{warm}, interleaved with {others}"
    return warm


def wrapped(lines: Iterable[str], columns: int | None = SUMMARY_COLUMNS) -> list[str]:
    """Returns lines of a summary wrapped at ``columns`` characters (None: not at all).

    Continued lines are indented; lines with a command to type are not wrapped.
    """
    lines = map(printable, lines)
    if columns is None:
        return [*lines]
    wrapper = textwrap.TextWrapper(columns, break_long_words=False, break_on_hyphens=False)
    wrapper.subsequent_indent = " " * SUMMARY_INDENT
    parts = []
    for line in lines:
        if COMMAND.search(line):
            parts.append(line)
        else:
            parts += wrapper.wrap(line) or [""]
    return parts
