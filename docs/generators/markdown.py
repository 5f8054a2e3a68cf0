"""Markdown that several generators write."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; its cells are one line each."""
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(map(_cell, cells))} |\n" for cells in lines)


def fenced(language: str, text: str) -> str:
    """Returns a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def as_markdown(docstring: str) -> str:
    """Returns a docstring whose ``names`` are written as Markdown writes them: `names`."""
    return docstring.replace("``", "`")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
