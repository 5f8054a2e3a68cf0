"""Rows of text in columns: whole for a file or a pipe, or as wide as a terminal is."""

import textwrap
from collections.abc import Sequence

from tuner.core.printable import printable

GAP = "  "  # between columns
TEXT_COLUMNS = 24  # a column of words is made no narrower while another column can be spared
WORD_COLUMNS = 6  # the narrowest of all: words are broken

Row = tuple[str, ...]


def table_lines(
    header: Row, rows: Sequence[Row], columns: int | None = None, spared: Sequence[str] = ()
) -> list[str]:
    """Returns the lines of a table, numbers to the right, in at most so many columns; None is any number.

    What does not fit loses its ``spared`` columns, the first of them first, and a line below tells that;
    then long cells go on in the next line.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    kept, left_out = _without_spared(header, rows, columns, spared)
    cells = [tuple(row[column] for column in kept) for row in (header, *rows)]
    widths = _widths(cells, columns)
    is_right = [_is_number_column(cells, column) for column in range(len(kept))]
    lines = [line for row in cells for line in _lines(row, widths, is_right)]
    if left_out:
        lines.append(f"not shown for want of width: {', '.join(left_out)} (--json tells all)")
    return lines


def varying_columns(
    header: Row, rows: Sequence[Row], names: Sequence[str]
) -> tuple[Row, list[Row], list[str]]:
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


def _without_spared(
    header: Row, rows: Sequence[Row], columns: int | None, spared: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Returns the columns that are shown, and the names of those left out."""
    kept, left_out = list(range(len(header))), list[str]()
    for name in (each for each in spared if each in header):
        cells = [tuple(row[column] for column in kept) for row in (header, *rows)]
        if columns is None or _total(_least(cells, TEXT_COLUMNS)) <= columns:
            break
        kept.remove(header.index(name))
        left_out.append(name)
    return kept, left_out


def _widths(cells: Sequence[Row], columns: int | None) -> list[int]:
    """Returns the width of each column: that of its longest cell, or less where words can be wrapped."""
    widths = _least(cells, None)
    for limit in (TEXT_COLUMNS, WORD_COLUMNS):
        least = _least(cells, limit)
        while columns is not None and _total(widths) > columns:
            widest = max(
                range(len(widths)), key=lambda column: (widths[column] > least[column], widths[column])
            )
            if widths[widest] <= least[widest]:
                break
            widths[widest] -= 1
    return widths


def _least(cells: Sequence[Row], limit: int | None) -> list[int]:
    """Returns how narrow each column may be: a number is never broken, words are at ``limit``."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        width if limit is None or _is_number_column(cells, column) else min(width, limit)
        for column, width in enumerate(widths)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _lines(row: Row, widths: Sequence[int], is_right: Sequence[bool]) -> list[str]:
    """Returns a row, whose longest cell says how many lines it takes."""
    wrapped = [_cell_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(map(len, wrapped))):
        texts = (cell[number] if number < len(cell) else "" for cell in wrapped)
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, is_right, strict=True)
        )
        lines.append(GAP.join(padded).rstrip())
    return lines


def _cell_lines(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_on_hyphens=False)


def _is_number_column(cells: Sequence[Row], column: int) -> bool:
    """Tells whether all below the header are numbers."""
    return len(cells) > 1 and all(_is_number(row[column]) for row in cells[1:])


def _is_number(cell: str) -> bool:
    return cell.replace(".", "").isdigit() or cell == "-"
