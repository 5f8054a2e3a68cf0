"""Tables of text: unwrapped for a file or a pipe, or fitted to the width of a terminal."""

import textwrap
from collections.abc import Sequence

from tuner.core.printable import printable

GAP = "  "  # between columns
TEXT_COLUMNS = 24  # a text column is made no narrower while another column can be left out
WORD_COLUMNS = 6  # the least width of a text column: words are broken

Row = tuple[str, ...]


def table_lines(
    header: Row, rows: Sequence[Row], columns: int | None = None, spared: Sequence[str] = ()
) -> list[str]:
    """Returns the lines of a text table, fitted to ``columns`` characters where that is possible.

    ``columns`` None: any width. In a table that is too wide, long cells are wrapped. Where that would make a
    column of text narrower than 24 characters, columns among ``spared`` are first left out, in the order
    given, which a line below the table states; then text is wrapped at as few as 6 characters. A column of
    numbers only ("-" counts as one) is right-aligned and never wrapped.
    """
    rows = [tuple(map(printable, row)) for row in rows]
    kept, left_out = _without_spared(header, rows, columns, spared)
    cells = [tuple(row[column] for column in kept) for row in (header, *rows)]
    widths = _widths(cells, columns)
    is_right = [_is_number_column(cells, column) for column in range(len(kept))]
    lines = [line for row in cells for line in _lines(row, widths, is_right)]
    if left_out:
        lines.append(f"not shown for want of width: {', '.join(left_out)} (--json prints all)")
    return lines


def varying_columns(
    header: Row, rows: Sequence[Row], names: Sequence[str]
) -> tuple[Row, list[Row], list[str]]:
    """Returns (header, rows, lines) without those columns among ``names`` that are constant over all rows.

    ``lines`` has one line with the names and values of the left-out columns, or none. A table of one row
    keeps all its columns. Raises ValueError for a table without rows.
    """
    is_shared = [
        name in names and len(rows) > 1 and len(set(column)) == 1
        for name, column in zip(header, zip(*rows, strict=True), strict=True)
    ]
    kept = [number for number, shared in enumerate(is_shared) if not shared]
    options = [f"{header[number]} {rows[0][number]}" for number, shared in enumerate(is_shared) if shared]
    return (
        tuple(header[number] for number in kept),
        [tuple(row[number] for number in kept) for row in rows],
        [f"in every row: {', '.join(options)}"] if options else [],
    )


def _without_spared(
    header: Row, rows: Sequence[Row], columns: int | None, spared: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Returns the indices of the columns that are shown, and the names of the columns left out."""
    kept, left_out = list(range(len(header))), list[str]()
    for name in (each for each in spared if each in header):
        cells = [tuple(row[column] for column in kept) for row in (header, *rows)]
        if columns is None or _total(_least(cells, TEXT_COLUMNS)) <= columns:
            break
        kept.remove(header.index(name))
        left_out.append(name)
    return kept, left_out


def _widths(cells: Sequence[Row], columns: int | None) -> list[int]:
    """Returns the width of each column: the length of its longest cell, or less where cells are wrapped."""
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
    """Returns the least width of each column: numbers are never broken, text is wrapped at ``limit``."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        width if limit is None or _is_number_column(cells, column) else min(width, limit)
        for column, width in enumerate(widths)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _lines(row: Row, widths: Sequence[int], is_right: Sequence[bool]) -> list[str]:
    """Returns the lines of one row; the cell with the most wrapped lines determines how many."""
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
    """Returns whether every cell of a column below the header is a number."""
    return len(cells) > 1 and all(_is_number(row[column]) for row in cells[1:])


def _is_number(cell: str) -> bool:
    return cell.replace(".", "").isdigit() or cell == "-"
