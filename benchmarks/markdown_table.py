"""Writes a table of Markdown."""

from collections.abc import Iterable


def markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Returns a table with a head; a row has as many cells as the head."""
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(
        f"| {' | '.join(cells)} |".replace("| ---", "|---").replace("--- |", "---|") for cells in lines
    )
