"""PTX text -> tokens with line numbers, and the cursor with which the parser reads them."""

import re
import struct
from dataclasses import dataclass

from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError
from tuner.gpu.ptxsim.ptx.syntax_tree import Immediate

TOKEN = re.compile(
    r"""
      (?P<space>   \s+ | //[^\n]* | /\*.*?\*/ )
    | (?P<text>    "[^"\n]*" )
    | (?P<float>   0[fF][0-9a-fA-F]{8} | 0[dD][0-9a-fA-F]{16} )
    | (?P<number>  0[xX][0-9a-fA-F]+U? | 0[bB][01]+U? | \d+\.\d+ | \d+U? )
    | (?P<word>    [A-Za-z_$%.](?:[\w$.]|::)* )
    | (?P<mark>    [-+!@|<>=\[\]{}(),;:*] )
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSING = {"{": "}", "(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token of PTX text: a word, a number, a string or a punctuation mark."""

    kind: str  # "word", "number", "float", "text", "mark", "end"
    text: str
    line: int
    start: int  # offset in the source, in characters
    end: int


def tokens_of(source: str, name: str) -> list[Token]:
    """Returns the tokens of PTX text, one of kind "end" last; ``name``: of the file, for messages.

    Raises SimulationError for a character that begins no token.
    """
    tokens = []
    position = 0
    line = 1
    while position < len(source):
        match = TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise syntax_error(name, line, f"found {source[position]!r}, allowed PTX")
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup, match[0], line, position, match.end()))
        line += match[0].count("\n")
        position = match.end()
    return [*tokens, Token("end", "", line, position, position)]


def syntax_error(name: str, line: int, reason: str) -> SimulationError:
    """Returns the SimulationError for text of the file ``name`` that is not PTX; does not raise it."""
    return SimulationError(Defect.SYNTAX, line, f"{name}:{line}: {reason}")


class Cursor:
    """A position in the tokens of a PTX file; its methods consume tokens, or look ahead."""

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self._tokens = tokens_of(source, name)
        self._index = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    def ahead(self, distance: int = 1) -> Token:
        return self._tokens[min(self._index + distance, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind == "end":
            raise self.wrong("more text")
        self._index += 1
        return token

    def accept(self, text: str) -> bool:
        if self.token.kind == "end" or self.token.text != text:
            return False
        self._index += 1
        return True

    def expect(self, text: str) -> Token:
        if self.token.text != text:
            raise self.wrong(repr(text))
        return self.take()

    def word(self, allowed: str) -> str:
        if self.token.kind != "word":
            raise self.wrong(allowed)
        return self.take().text

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if self.token.kind != "number" or "." in self.token.text:
            raise self.wrong("a whole number")
        return sign * self._whole()

    def immediate(self) -> Immediate:
        """Consumes a number; a minus sign may precede it, except 0f... and 0d... (PTX ISA, "Constants").

        Raises SimulationError for another token.
        """
        sign = -1 if self.accept("-") else 1
        if self.token.kind not in (("number", "float") if sign > 0 else ("number",)):
            raise self.wrong("a number" if sign > 0 else "a decimal number after the minus sign")
        if self.token.kind == "number" and "." not in self.token.text:
            return Immediate(sign * self._whole())
        token = self.take()
        if token.kind == "float":
            return Immediate(int(token.text[2:], 16), token.text[1] in "fF", token.text[1] in "dD")
        return Immediate(int.from_bytes(struct.pack("<d", sign * float(token.text)), "little"), is_f64=True)

    def _whole(self) -> int:
        digits = self.token.text.rstrip("U")
        if re.fullmatch(r"0[0-7]+", digits):
            digits = f"0o{digits[1:]}"
        try:
            number = int(digits, 0)
        except ValueError:  # digits that are not of its base
            raise self.wrong("a whole number") from None
        self.take()
        return number

    def skip_brackets(self) -> None:
        """Consumes the bracket that is the next token, and all up to the one that closes it."""
        if self.token.text not in CLOSING:
            raise self.wrong("a bracket")
        opening = self.take()
        closing = CLOSING[opening.text]
        while self.token.text != closing:
            if self.token.kind == "end":
                raise syntax_error(self.name, opening.line, f"found no {closing!r} for this {opening.text!r}")
            if self.token.kind == "mark" and self.token.text in CLOSING:
                self.skip_brackets()
            else:
                self.take()
        self.take()

    def skip_statement(self) -> None:
        while not self.accept(";"):
            self.take()

    def position(self) -> int:
        """Returns the index of the next token, for ``back_to``."""
        return self._index

    def back_to(self, position: int) -> None:
        """Makes the token at index ``position`` the next one again."""
        self._index = position

    def text_from(self, token: Token) -> str:
        text = self.source[token.start : self._tokens[self._index - 1].end]
        return " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).split())

    def wrong(self, allowed: str) -> SimulationError:
        """Returns the SimulationError for the next token, in place of which ``allowed`` is expected."""
        found = repr(self.token.text) if self.token.kind != "end" else "the end of the text"
        return syntax_error(self.name, self.token.line, f"found {found}, allowed {allowed}")
