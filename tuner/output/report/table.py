"""Tables that become cards where the screen is narrow: each cell knows its column."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.output.report.element import Markup, element


@dataclass(frozen=True)
class Head:
    """The head of a column."""

    name: str
    is_number: bool = False


def table(columns: Sequence[Head], rows: Sequence[Sequence[str]], caption: str | None = None) -> Markup:
    """Draws a table of which the first column names the rows."""
    heads = (element("th", each.name, scope="col", class_=_class(each)) for each in columns)
    return element(
        "div",
        element(
            "table",
            None if caption is None else element("caption", caption),
            element("thead", element("tr", *heads)),
            element("tbody", *(_row(columns, row) for row in rows)),
            class_="cards",
        ),
        class_="wide",
    )


def _row(columns: Sequence[Head], row: Sequence[str]) -> Markup:
    name, *cells = row
    drawn = (
        element("td", cell, class_=_class(column), data_label=column.name)
        for column, cell in zip(columns[1:], cells, strict=True)
    )
    return element("tr", element("th", name, scope="row"), *drawn)


def _class(column: Head) -> str | None:
    return "number" if column.is_number else None
