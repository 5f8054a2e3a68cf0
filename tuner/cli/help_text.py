"""Formats help texts: each example on its own line to copy, a long example continued by a backslash."""

import re
from typing import Final, final

import click

EXAMPLE: Final = "Example: "
NEXT_EXAMPLE: Final = re.compile(r", (or|then in CI:) (?=tuner )")
PART: Final = re.compile(r"-\S+(?: (?:'[^']*'|[^-\s]\S*))?|'[^']*'|\S+")  # an option with value; an argument
CONTINUATION: Final = "    "  # indent of a command's continued lines


@final
class HelpFormatter(click.HelpFormatter):
    """A click help formatter that prints each example after 'Example: ' on a separate line to copy."""

    def write_text(self, text: str) -> None:
        """Writes a help text: wrapped paragraphs, then each example after 'Example: ' on its line."""
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
    """A click context that sets the formatter of help texts; every command of tuner has one."""

    formatter_class = HelpFormatter


def example_lines(examples: str, columns: int) -> list[str]:
    """Returns the examples of a help text as lines up to ``columns`` wide: a title, then the commands.

    ``examples`` is a text such as 'tuner show 42, or tuner show run:3'. A long command is continued by a
    backslash; a single short one stands next to the title.
    """
    first, *others = NEXT_EXAMPLE.split(" ".join(examples.split()))
    commands = [first, *others[1::2]]
    if len(commands) == 1 and len(EXAMPLE) + len(first) <= columns:
        return [f"{EXAMPLE}{first}"]
    title = "Example:" if len(commands) == 1 else "Examples:"
    return [title, *(f"  {line}" for command in commands for line in _broken(command, columns - 2))]


def _broken(command: str, columns: int) -> list[str]:
    """Wraps a command between its arguments, but not between an option and its value."""
    lines = [""]
    for part in PART.findall(command):
        longer = f"{lines[-1]} {part}" if lines[-1].strip() else f"{lines[-1]}{part}"
        if len(longer) + len(" \\") <= columns:
            lines[-1] = longer
        else:
            lines[-1] += " \\"
            lines.append(f"{CONTINUATION}{part}")
    return lines
