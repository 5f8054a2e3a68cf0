"""The command line, from click's own commands."""

import inspect
import re
from collections.abc import Iterator
from typing import Final

import click

from docs.generators.markdown import fenced, table
from tuner.cli import main
from tuner.cli.main import EXAMPLE, NEXT_EXAMPLE, Commands

MARKUP: Final = re.compile(r"[\[<*_`]")
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def commands() -> str:
    """Returns a section for each command, groups before their commands."""
    return "\n".join(_section(names, command) for names, command in all_commands())


def all_commands(
    group: Commands = main, names: tuple[str, ...] = ("tuner",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yields each command with the words that name it, in the order of the names."""
    yield names, group
    for name, command in sorted(group.all_commands().items()):
        if isinstance(command, Commands):
            yield from all_commands(command, (*names, name))
        else:
            yield (*names, name), command


def _section(names: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(names))
    about, _, examples = inspect.cleandoc(command.help or "").partition(EXAMPLE)
    first, *others = NEXT_EXAMPLE.split(" ".join(examples.split()))
    records = [each.get_help_record(context) for each in command.params if isinstance(each, click.Option)]
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [
        f"## {context.command_path}\n",
        fenced("text", usage),
        f"{_escaped(about.strip())}\n",
        fenced("sh", "\n".join([first, *others[1::2]])),
        table(("option", "meaning"), [(f"`{found[0]}`", _escaped(found[1])) for found in records if found]),
    ]
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Returns the text of a help as Markdown: options as code, and nothing else that is markup."""
    return OPTION.sub(r"`\g<0>`", MARKUP.sub(r"\\\g<0>", text))
