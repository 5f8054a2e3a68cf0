"""Help whose examples can be copied: each on a line of its own, a long one continued by a backslash."""

import re
from typing import Final, final

import click

EXAMPLE: Final = "Example: "
NEXT_EXAMPLE: Final = re.compile(r", (or|then in CI:) (?=tuner )")
PART: Final = re.compile(r"-\S+(?: (?:'[^']*'|[^-\s]\S*))?|'[^']*'|\S+")  # a flag with its value, or a word
CONTINUATION: Final = "    "  # of a command, before its further lines


@final
class HelpFormatter(click.HelpFormatter):
    """Writes help; what stands behind 'Example: ' is not broken as a text is."""

    def write_text(self, text: str) -> None:
        """Writes paragraphs, and below them the examples."""
        before, found, examples = text.partition(EXAMPLE)
        super().write_text(before.rstrip())
        if found:
            self.write_paragraph()
            indent = " " * self.current_indent
            self.write(
                "".join(f"{indent}{line}\n" for line in example_lines(examples, self.width - len(indent)))
            )


@final
class HelpContext(click.Context):
    """The context of every command."""

    formatter_class = HelpFormatter


def example_lines(examples: str, columns: int) -> list[str]:
    """Returns 'tuner show 42, or tuner show run:3' as lines to copy, with a title."""
    first, *others = NEXT_EXAMPLE.split(" ".join(examples.split()))
    commands = [first, *others[1::2]]
    if len(commands) == 1 and len(EXAMPLE) + len(first) <= columns:
        return [f"{EXAMPLE}{first}"]
    title = "Example:" if len(commands) == 1 else "Examples:"
    return [title, *(f"  {line}" for command in commands for line in _broken(command, columns - 2))]


def _broken(command: str, columns: int) -> list[str]:
    """Breaks a command between its words, never a flag from its value."""
    lines = [""]
    for part in PART.findall(command):
        longer = f"{lines[-1]} {part}" if lines[-1].strip() else f"{lines[-1]}{part}"
        if len(longer) + len(" \\") <= columns:
            lines[-1] = longer
        else:
            lines[-1] += " \\"
            lines.append(f"{CONTINUATION}{part}")
    return lines
