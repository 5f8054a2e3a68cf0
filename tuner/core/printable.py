"""Untrusted texts, such as names in a merged database, without control characters that act on a terminal."""

import re
from typing import Final

# Control characters but newline and tab, Unicode line separators, and marks that change the writing direction
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable_lines(text: str) -> str:
    r"""Returns a text of several lines in which control characters are escaped: \u001b, as in JSON.

    Newlines and tabs stay. So the text cannot act on a terminal.
    """
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    r"""Returns a text fit for one line: unprintable characters become escapes such as \n and \x1b."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
