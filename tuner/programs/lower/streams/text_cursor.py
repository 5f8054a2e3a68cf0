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
    """A position in the text, which advances past what is read. Errors name line and column."""

    text: str
    at: int
    end: int = field(init=False)  # of what was read, without the white space after it

    def __post_init__(self) -> None:
        """Begins at the end of the operation's name."""
        self.end = self.at

    def skip(self) -> None:
        """Skips white space and comments."""
        match = SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def sees(self, word: str) -> bool:
        """Returns whether ``word`` comes next."""
        self.skip()
        return self.text.startswith(word, self.at)

    def takes(self, word: str) -> bool:
        """Advances past ``word`` if it comes next; returns whether it did."""
        is_next = self.sees(word)
        if is_next:
            self.at = self.end = self.at + len(word)
        return is_next

    def require(self, word: str) -> None:
        """Advances past ``word``. Raises CandidateError(BIND) if another word comes next."""
        if not self.takes(word):
            raise self.error(f"{word!r}")

    def matched(self, pattern: re.Pattern[str], what: str) -> str:
        """Returns the match of ``pattern`` at this position. Raises CandidateError(BIND) if there is none."""
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.error(what)
        self.at = self.end = match.end()
        return match[0]

    def values(self) -> list[str]:
        """Returns comma-separated values; [] if no value comes next."""
        found: list[str] = []
        while self.sees("%") and RESULT.match(self.text, self.at) is None:
            found.append(self.matched(VALUE, "a value"))
            if not self.takes(","):
                break
        return found

    def enclosed(self, opening: str) -> str:
        """Returns the text between the opening bracket, which must come next, and its closing bracket."""
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
        """Returns the type that comes next."""
        kind = self.matched(SIMPLE_TYPE, "a type")
        return f"{kind}<{self.enclosed('<')}>" if self.sees("<") else kind

    def types(self) -> list[str]:
        """Returns comma-separated types, with or without parentheses."""
        if self.takes("("):
            found = [] if self.sees(")") else self._listed()
            self.require(")")
            return found
        return self._listed()

    def error(self, allowed: str) -> CandidateError:
        """Returns the error for unexpected text at this position."""
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
