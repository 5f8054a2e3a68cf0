"""The command line, from click's own commands."""

import inspect
from collections.abc import Iterator

import click

from docs.generators.markdown import fenced, table
from tuner.cli import main
from tuner.cli.help_text import EXAMPLE, NEXT_EXAMPLE


def commands() -> str:
    """Returns a section for each command, groups before their commands."""
    return "\n".join(_section(names, command) for names, command in all_commands())


def all_commands(
    group: click.Group = main, names: tuple[str, ...] = ("tuner",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yields each command with the words that name it, in the order of the names."""
    yield names, group
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from all_commands(command, (*names, name))
        else:
            yield (*names, name), command


def _section(names: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(names))
    about, _, examples = inspect.cleandoc(command.help or "").partition(EXAMPLE)
    first, *others = NEXT_EXAMPLE.split(" ".join(examples.split()))
    records = [found for each in command.params if (found := each.get_help_record(context))]
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [
        f"## {context.command_path}\n",
        fenced("text", usage),
        f"{about.strip()}\n",
        fenced("sh", "\n".join([first, *others[1::2]])),
        table(("option", "meaning"), [(f"`{option}`", _escaped(meaning)) for option, meaning in records]),
    ]
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Returns the text of a help without what Markdown would take for markup."""
    return text.replace("[", "\\[").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
