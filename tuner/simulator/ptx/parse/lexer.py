"""PTX text -> tokens with line numbers and positions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tuner.simulator.ptx.defects import Defect, SimulationError

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


@dataclass(frozen=True, slots=True)
class Token:
    """A token of PTX text: a word, a number, a string or a punctuation mark."""

    kind: str  # "word", "number", "float", "text", "mark", "end"
    text: str
    line: int
    start: int  # offset in the source, in characters
    end: int


def tokens_of(source: str, name: str) -> list[Token]:
    """Returns the tokens of PTX text without comments, and a token of kind "end" as the last one.

    ``name`` is the file's, for messages. Raises SimulationError for an invalid character.
    """
    return list(_tokens(source, name))


def _tokens(source: str, name: str) -> Iterator[Token]:
    position, line = 0, 1
    while position < len(source):
        match = TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise syntax_error(name, line, f"found {source[position]!r}, allowed PTX")
        if match.lastgroup != "space":
            yield Token(match.lastgroup, match[0], line, position, match.end())
        line += match[0].count("\n")
        position = match.end()
    yield Token("end", "", line, position, position)


def syntax_error(name: str, line: int, reason: str) -> SimulationError:
    """Returns, without raising, the SimulationError for text that is not PTX.

    ``name`` is the file's; ``reason`` says what was found and what is allowed.
    """
    return SimulationError(Defect.SYNTAX, line, f"{name}:{line}: {reason}")
