"""What the runner programs need of LLVM's FileCheck: CHECK, CHECK-NEXT, CHECK-SAME, ``{{regex}}``."""

import re
from dataclasses import dataclass

DIRECTIVE = re.compile(r"//\s*CHECK(-NEXT|-SAME)?:(.*)")


@dataclass(frozen=True)
class Directive:
    """One expected piece of the output."""

    kind: str  # "", "-NEXT", "-SAME"
    pattern: str

    @classmethod
    def of(cls, match: re.Match[str]) -> "Directive":
        """Reads what stands behind the colon: literal but for ``{{...}}``, runs of blanks are one."""
        parts = re.split(r"\{\{(.*?)\}\}", " ".join(match[2].split()))
        return cls(
            match[1] or "",
            "".join(part if number % 2 else re.escape(part) for number, part in enumerate(parts)),
        )


def directives(source: str) -> list[Directive]:
    """Returns what a program's comments expect, in order."""
    return [Directive.of(match) for match in DIRECTIVE.finditer(source)]


def require(source: str, output: str) -> None:
    """Raises AssertionError for the first directive that the output does not meet."""
    expected = directives(source)
    assert expected, "found no CHECK"
    lines = [" ".join(line.split()) for line in output.splitlines()]
    line, column = -1, 0
    for directive in expected:
        line, column = _met(directive, lines, line, column)


def _met(directive: Directive, lines: list[str], line: int, column: int) -> tuple[int, int]:
    """Returns where a directive is met: the line, and the column behind it."""
    ranges = {"": range(line + (line < 0), len(lines)), "-NEXT": range(line + 1, line + 2), "-SAME": [line]}
    for number in ranges[directive.kind]:
        start = column if number == line else 0
        if number < len(lines) and (match := re.compile(directive.pattern).search(lines[number], start)):
            return number, match.end()
    found = "\n".join(lines[max(line, 0) :])
    raise AssertionError(f"CHECK{directive.kind}: {directive.pattern!r} is not in\n{found}")
