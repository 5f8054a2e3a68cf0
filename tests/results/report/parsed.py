"""HTML read back: what is to be seen, and which elements with which attributes."""

import html.parser
from dataclasses import dataclass, field

from tuner.results.report.content import Report
from tuner.results.report.page import page_html

VOID = {"meta", "br"}
NEVER_SEEN = {"style", "script"}


@dataclass
class Parsed:
    text: str = ""  # as a browser shows it: one blank between words
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def of(self, tag: str, class_: str = "") -> list[dict[str, str]]:
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and class_ in ("", *attributes.get("class", "").split())
        ]

    def names(self) -> set[str]:
        return {attributes["id"] for _, attributes in self.elements if "id" in attributes}


class _Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parsed = Parsed()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parsed.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in NEVER_SEEN:
            self.parsed.text += data


def parsed(text: str) -> Parsed:
    """Reads a text; an element that is never closed is an error."""
    reader = _Reader()
    reader.feed(text)
    assert reader.open == []
    reader.parsed.text = " ".join(reader.parsed.text.split())
    return reader.parsed


def page(of: Report) -> Parsed:
    return parsed(page_html(of))
