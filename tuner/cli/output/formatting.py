"""Values -> short text for people."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from tuner.core.candidate import Value
from tuner.core.problem import Problem
from tuner.core.runs import SEED, SPACE_FILE, WARM_START, FirstPoint

LINE_LIMIT = 2000  # characters of a message
SUMMARY_COLUMNS, SUMMARY_INDENT = 80, 10  # of a summary, and of its text behind the names of lines
COMMAND = "tuner "
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds_text(seconds: float) -> str:
    """Returns a time with four significant digits in a unit that suits it."""
    scale, unit = next((pair for pair in UNITS if seconds >= pair[0]), (1e-9, "ns"))
    return f"{seconds / scale:.4g} {unit}"


def interval_text(interval_s: tuple[float, float]) -> str:
    """Returns both ends of an interval."""
    return f"{seconds_text(interval_s[0])} .. {seconds_text(interval_s[1])}"


def speed_text(gflop_per_s: float | None) -> str:
    """Returns a speed; '-' for what was not timed."""
    return "-" if gflop_per_s is None else f"{gflop_per_s:.4g} GFLOP/s"


def problem_words(problem: Problem) -> str:
    """Returns a problem by the words that are not the usual ones: 'matmul 64x64x64 f16 -> f16 nt'."""
    words = [problem.operation, problem.shape, problem.dtype]
    words += [f"-> {problem.output}"] * bool(problem.output)
    words += [word for word in (problem.layout, problem.epilogue) if word not in ("nn", "none")]
    return " ".join(words)


def knobs_text(knobs: Sequence[tuple[str, Value]]) -> str:
    """Returns ``name=value`` for every knob."""
    return " ".join(f"{name}={value}" for name, value in knobs)


def knobs_line(knobs: Sequence[tuple[str, Value]]) -> str:
    """Returns the line of a summary that tells the knobs."""
    return f"knobs     {knobs_text(knobs) or 'none'}"


def one_line(text: str) -> str:
    """Returns a text as one line that moves no terminal: what prints, and of long ones the beginning."""
    line = " ".join(text.split())
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return plain if len(plain) <= LINE_LIMIT else f"{plain[:LINE_LIMIT]}..."


def count_text(count: int, noun: str) -> str:
    """Returns a count with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def table_text(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns columns wide enough for their text, the last one unpadded; numbers to the right."""
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    is_right = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(header))]
    return "\n".join(_line(row, widths, is_right) for row in cells)


def varying_columns(
    header: tuple[str, ...], rows: Sequence[tuple[str, ...]], names: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[str, ...]], list[str]]:
    """Returns header and rows without those named columns that say the same everywhere, and a line of these.

    One row says nothing of others: it stays whole.
    """
    is_shared = [
        name in names and len(rows) > 1 and len(set(column)) == 1
        for name, column in zip(header, zip(*rows, strict=True), strict=True)
    ]
    kept = [number for number, shared in enumerate(is_shared) if not shared]
    words = [f"{header[number]} {rows[0][number]}" for number, shared in enumerate(is_shared) if shared]
    return (
        tuple(header[number] for number in kept),
        [tuple(row[number] for number in kept) for row in rows],
        [f"all of {', '.join(words)}"] if words else [],
    )


def _line(row: tuple[str, ...], widths: list[int], is_right: list[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(row, widths, is_right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _is_number(cell: str) -> bool:
    return cell.replace(".", "").isdigit() or cell == "-"


WORDS = {SPACE_FILE: "{} of the space file", SEED: "{} seed configurations"}


def first_words(points: tuple[FirstPoint, ...]) -> str:
    """Returns where the first points come from: 'warm start from 8x8x8 (run 3): 2 points, by turns ...'."""
    counts = Counter(point.origin for point in points)
    others = ", then ".join(text.format(counts[origin]) for origin, text in WORDS.items() if counts[origin])
    sources = tuple(dict.fromkeys(point.source for point in points if point.origin == WARM_START))
    if not sources:
        return others
    warm = f"warm start from {', '.join(sources)}: {count_text(counts[WARM_START], 'point')}"
    return f"{warm}, by turns with {others}" if others else warm


def wrapped(lines: Iterable[str]) -> list[str]:
    """Breaks lines of a summary at SUMMARY_COLUMNS, below their text; what people type stays on one line."""
    found: list[str] = []
    for line in lines:
        if COMMAND in line:
            found.append(line)
        else:
            indent = " " * SUMMARY_INDENT
            found += textwrap.wrap(
                line,
                SUMMARY_COLUMNS,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return found
