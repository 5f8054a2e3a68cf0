"""Reads MLIR text token by token: values, types, symbols, brackets; skips white space and comments."""

import re
from dataclasses import dataclass, field

from tuner.core.errors import CandidateError, Stage

SKIPPED = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')  # strings and comments
SPACE = re.compile(r"(?:\s|//[^\n]*)*")
RESULT = re.compile(r"%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*=")  # the beginning of an operation
VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
SIMPLE_TYPE = re.compile(r"[!\w][\w.$]*")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@dataclass
class TextCursor:
    """A position in MLIR text, which advances past what is read; errors name line and column."""

    text: str
    at: int
    end: int = field(init=False)  # of what was read, without the white space after it

    def __post_init__(self) -> None:
        """Begins at the end of the operation's name."""
        self.end = self.at

    def skip(self) -> None:
        """Advances past white space and comments."""
        match = SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def sees(self, word: str) -> bool:
        """Skips white space and comments; returns whether the text then continues with ``word``."""
        self.skip()
        return self.text.startswith(word, self.at)

    def takes(self, word: str) -> bool:
        """Advances past ``word`` if the text continues with it, after white space; returns whether it did."""
        is_next = self.sees(word)
        if is_next:
            self.at = self.end = self.at + len(word)
        return is_next

    def require(self, word: str) -> None:
        """Advances past ``word``. Raises CandidateError(BIND) if the text does not continue with it."""
        if not self.takes(word):
            raise self.error(f"{word!r}")

    def matched(self, pattern: re.Pattern[str], what: str) -> str:
        """Reads the text that matches ``pattern`` here, after white space, and returns it.

        Raises CandidateError(BIND), with ``what`` as what is allowed, if nothing matches.
        """
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.error(what)
        self.at = self.end = match.end()
        return match[0]

    def values(self) -> list[str]:
        """Reads comma-separated SSA values such as ``%a, %b#1``; returns a list, [] if none follows."""
        found: list[str] = []
        while self.sees("%") and RESULT.match(self.text, self.at) is None:
            found.append(self.matched(VALUE, "a value"))
            if not self.takes(","):
                break
        return found

    def enclosed(self, opening: str) -> str:
        """Reads from the bracket ``opening`` to its closing bracket; returns the text between them.

        Raises CandidateError(BIND) if the text does not continue with ``opening``, or if the closing bracket
        is missing.
        """
        self.require(opening)
        start, waiting = self.at, [CLOSING[opening]]
        while waiting:
            if self.at >= len(self.text):
                raise self.error(f"{waiting[-1]!r}")
            skipped = SKIPPED.match(self.text, self.at)
            if skipped is not None:
                self.at = skipped.end()
                continue
            letter = self.text[self.at]
            is_arrow = letter == ">" and self.text[self.at - 1] == "-"
            if letter == waiting[-1] and not is_arrow:
                waiting.pop()
            elif letter in CLOSING:
                waiting.append(CLOSING[letter])
            self.at += 1
        self.end = self.at
        return self.text[start : self.at - 1]

    def type(self) -> str:
        """Reads and returns an MLIR type, such as ``memref<4xf32>``.

        Raises CandidateError(BIND) if none follows.
        """
        kind = self.matched(SIMPLE_TYPE, "a type")
        return f"{kind}<{self.enclosed('<')}>" if self.sees("<") else kind

    def types(self) -> list[str]:
        """Reads and returns comma-separated MLIR types, with or without parentheses around them.

        Raises CandidateError(BIND) if no type follows, except between parentheses.
        """
        if self.takes("("):
            found = [] if self.sees(")") else self._listed()
            self.require(")")
            return found
        return self._listed()

    def error(self, allowed: str) -> CandidateError:
        """Returns, does not raise, the CandidateError(BIND) for unexpected text at this position.

        The message names line, column, the next word, and what is ``allowed``.
        """
        self.skip()
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        words = self.text[self.at :].split(maxsplit=1)
        found = repr(words[0]) if words else "the end"
        return CandidateError(
            Stage.BIND, f"payload: line {line}:{column}: GPUX: found {found}, allowed {allowed}"
        )

    def _listed(self) -> list[str]:
        found = [self.type()]
        while self.takes(","):
            found.append(self.type())
        return found
