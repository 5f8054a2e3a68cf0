"""Elements of HTML and SVG as text: whatever is no element itself is escaped."""

import html
from collections.abc import Iterable

from tuner.core.printable import printable_lines

VOID = frozenset({"meta", "br"})  # HTML that has no end
CLOSED = frozenset({"circle", "line", "path", "polyline", "rect"})  # SVG that holds nothing

Attribute = str | float | bool | None  # None and False: left out, True: without a value


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def element(tag: str, /, *children: str | None, **attributes: Attribute) -> Markup:
    """Returns ``<tag attributes>children</tag>``.

    Attributes are named as in HTML, ``_`` for ``-``; one at the end keeps off Python's words: ``class_``.
    """
    start = tag + "".join(_attribute(key, value) for key, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{start}>")
    if tag in CLOSED:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{joined(children)}</{tag}>")


def joined(children: Iterable[str | None]) -> Markup:
    """Returns elements and texts one after the other."""
    return Markup("".join(_escaped(child) for child in children if child is not None))


def number(value: float) -> str:
    """Returns a coordinate: a tenth of a unit is finer than a screen shows."""
    return f"{round(value, 1):.10g}"


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{_escaped(value if isinstance(value, str) else number(value))}"'


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(printable_lines(child))
