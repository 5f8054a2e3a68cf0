"""``tuner completion``: the script with which a shell completes commands, options and arguments."""

import click

from tuner.cli.main import COMPLETION_VARIABLE
from tuner.cli.options import json_option, print_json

# Shell -> its configuration file, and the command to put there.
PLACES = {
    "bash": '~/.bashrc: eval "$(tuner completion bash)"',
    "zsh": '~/.zshrc, after compinit: eval "$(tuner completion zsh)"',
    "fish": "~/.config/fish/config.fish: tuner completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(tuple(PLACES)))
@json_option
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Prints the script with which a shell completes tuner's commands, options and their values.

    Put one line into the shell's configuration file: eval "$(tuner completion bash)" for bash, the same with
    zsh after compinit, and for fish: tuner completion fish | source

    Example: tuner completion bash
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click supports these shells
    root = context.find_root()
    complete = made(root.command, {}, "tuner", COMPLETION_VARIABLE)
    text = complete.source_template % complete.source_vars()  # source() would run bash for its version
    print_json({"shell": shell, "line": PLACES[shell], "script": text}) if as_json else print(text, end="")
