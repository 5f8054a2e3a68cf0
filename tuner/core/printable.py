"""Texts of others, such as names in a merged database, as characters that move no terminal."""

import re
from typing import Final

# Controls but line ends and tabs, what separates lines elsewhere, and what turns the direction of writing
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable_lines(text: str) -> str:
    r"""Returns a text of several lines with \u001b, which JSON reads as well, in place of each control."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    r"""Returns a text as part of one line, with \n and \x1b in place of what does not print."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
