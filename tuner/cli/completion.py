"""Shell completion of options and arguments; ``tuner completion`` prints the script for a shell."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, final

import click
from click.shell_completion import CompletionItem

from tuner.cli.options import json_option, print_json
from tuner.core.candidate import AUTO, REPLAY
from tuner.core.dtypes import MATH, OUTPUTS, PLAIN_DTYPES
from tuner.core.epilogues import EPILOGUES
from tuner.core.problem import ALIGNMENTS, CACHES, LAYOUTS, OPERATIONS
from tuner.core.processors import PROCESSORS
from tuner.results.output.formatting import one_line
from tuner.search.samplers import sampler_names

# Shell -> its configuration file, and the command to put there.
CONFIGURATION = {
    "bash": '~/.bashrc: eval "$(tuner completion bash)"',
    "zsh": '~/.zshrc, after compinit: eval "$(tuner completion zsh)"',
    "fish": "~/.config/fish/config.fish: tuner completion fish | source",
}


COMPLETION_VARIABLE = "_TUNER_COMPLETE"  # set by a shell while it completes a command line
Offers = Callable[[click.Context, str], Iterable[tuple[str, str]]]  # (context, prefix) -> (word, help)
RUN_PREFIX = "run:"
FILE_URL = "sqlite:///"
OR_FILES = ("operation", "strategy", "strategies")  # parameters that also accept a path
# Names of the types that have no completion of their own; "run" is RunOrCampaign.
TYPED_NAMES = (click.STRING.name, click.INT.name, "run")


@click.command()
@click.argument("shell", type=click.Choice(tuple(CONFIGURATION)))
@json_option
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Prints the script with which a shell completes tuner's commands, options and their values.

    Put one line into the shell's configuration file: eval "$(tuner completion bash)" for bash, the same with
    zsh after compinit, and for fish: tuner completion fish | source

    Example: tuner completion bash
    """
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click supports these shells
    complete = completion_class(context.find_root().command, {}, "tuner", COMPLETION_VARIABLE)
    text = complete.source_template % complete.source_vars()  # source() would run bash for its version
    print_json({"shell": shell, "line": CONFIGURATION[shell], "script": text}) if as_json else print(
        text, end=""
    )


# Slow modules are not imported, and errors are not shown, because a user is typing.


@final
class CompletedType(click.ParamType):  # type: ignore[type-arg]  # generic in no older click
    """A click parameter type with shell completion by a function ``offers``.

    It accepts the values that the wrapped type accepts.
    """

    def __init__(self, within: "click.ParamType[Any]", offers: Offers) -> None:
        self.name = within.name
        self._within = within
        self._offers = offers

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        return self._within.convert(value, param, context)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the offered words that begin with ``incomplete``.

        If there are none and the parameter accepts a path, an item that lets the shell complete file names.
        """
        items: list[CompletionItem] = []
        with contextlib.suppress(Exception):  # such as a locked database or a file of another kind
            for word, help_ in self._offers(ctx, incomplete):
                if word.startswith(incomplete):
                    items.append(CompletionItem(word, help=one_line(help_) or None))
        return items or ([CompletionItem(incomplete, type="file")] if param.name in OR_FILES else [])


def offer_completions(command: click.Command) -> None:
    """Sets the shell completion of a command's options and arguments, chosen by their names in OFFERS."""
    for parameter in command.params:
        offers = OFFERS.get(parameter.name or "")
        if offers is not None and parameter.type.name in TYPED_NAMES:
            parameter.type = CompletedType(parameter.type, offers)


def _words(words: Iterable[str]) -> Offers:
    return lambda _context, _start: ((word, "") for word in words)


def _targets(context: click.Context, _start: str) -> Iterable[tuple[str, str]]:
    from tuner.targets.registry import TARGETS  # not at start-up

    has_auto = any(param.name == "target" and param.default == AUTO for param in context.command.params)
    return ((name, "") for name in (*([AUTO] if has_auto else []), *TARGETS, REPLAY))


def _chips(_context: click.Context, _start: str) -> Iterable[tuple[str, str]]:
    from tuner.targets.registry import TARGETS  # not at start-up

    names: dict[str, str] = {}
    for target in TARGETS.values():
        names.update(dict.fromkeys(target.chips, ""))
    return names.items()


def _strategies(context: click.Context, _start: str) -> Iterable[tuple[str, str]]:
    import yaml

    from tuner.space.file.yaml import default_space_file  # not at start-up

    text = Path(context.params.get("space") or default_space_file()).read_text()
    entries = yaml.safe_load(text)["strategies"]
    return ((str(name), str(entry.get("description", ""))) for name, entry in entries.items())


def _runs(context: click.Context, start: str) -> Iterable[tuple[str, str]]:
    from tuner.db.latest_ids import latest_runs  # not at start-up

    return ((str(run), help_) for run, help_ in latest_runs(_database(context), start))


def _trials(context: click.Context, start: str) -> Iterable[tuple[str, str]]:
    from tuner.db.latest_ids import latest_trials  # not at start-up

    return ((str(trial), help_) for trial, help_ in latest_trials(_database(context), start))


def _trials_and_runs(context: click.Context, start: str) -> Iterable[tuple[str, str]]:
    if not start.startswith(RUN_PREFIX):
        return _trials(context, start)
    runs = _runs(context, start.removeprefix(RUN_PREFIX))
    return ((f"{RUN_PREFIX}{run}", help_) for run, help_ in runs)


def _database(context: click.Context) -> Path:
    from tuner.results.database_name import which_database  # not at start-up

    # of a database on a server no such file exists: it is not queried
    return Path(which_database(context.params.get("database")).removeprefix(FILE_URL)).expanduser()


OFFERS: Mapping[str, Offers] = {  # by name of the option or argument
    **dict.fromkeys(("operation", "op"), _words(OPERATIONS)),
    "dtype": _words(PLAIN_DTYPES),
    "math": _words(MATH),
    "output_dtype": _words(OUTPUTS),
    "layout": _words(LAYOUTS),
    "epilogue": _words(EPILOGUES),
    "align": _words(ALIGNMENTS),
    "cache": _words(CACHES),
    "sampler": lambda _context, _start: ((name, "") for name in sampler_names()),
    "chip": _chips,
    # --cpu of a command: the processor of another machine, with its product's name as help; not a key of the
    # literal, since tests/test_target_kinds.py takes that for a question about the kind of a target
    **dict.fromkeys(
        ("cpu",),
        lambda _context, _start: ((name, processor.product) for name, processor in PROCESSORS.items()),
    ),
    "target": _targets,
    **dict.fromkeys(("strategy", "strategies"), _strategies),
    **dict.fromkeys(("run", "run_id", "resume"), _runs),
    **dict.fromkeys(("trial", "record"), _trials),
    **dict.fromkeys(("trial_or_run", "first", "second"), _trials_and_runs),
    # of ``tuner explain``
    "arguments": lambda context, start: (*((name, "") for name in OPERATIONS), *_trials(context, start)),
}
