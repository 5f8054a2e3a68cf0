"""The group of all commands, its help texts, and how errors are reported: one line and an exit code.

``Commands`` is the click group; its table of ``Entry`` says where each command is imported from. ``main``
runs a command line.
"""

import contextlib
import difflib
import importlib
import itertools
import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TextIO, cast, final

import click

from tuner.cli.completion import COMPLETION_VARIABLE, offer_completions
from tuner.core.errors import TunerError, UsageError, defect_line, error_lines, install_module, unknown_value
from tuner.core.passwords import without_secrets
from tuner.core.problem import OPERATIONS
from tuner.core.serialization import printable_lines
from tuner.results.database_name import VARIABLE
from tuner.results.output.formatting import one_line, wrapped
from tuner.runtime.extensions import extension_in, extensions
from tuner.version import __version__

EXAMPLE: Final = "Example: "
NEXT_EXAMPLE: Final = re.compile(r", (or|then in CI:) (?=tuner )")
PART: Final = re.compile(r"-\S+(?: (?:'[^']*'|[^-\s]\S*))?|'[^']*'|\S+")  # an option with value; an argument
CONTINUATION: Final = "    "  # indent of a command's continued lines
BEGAN_S = "tuner.began_s"  # key of a context's meta: when the command began, by the monotonic clock
DONE = 0
FAILED = 1  # the work failed: no candidate worked, a check failed
MISUSED = 2  # the user's arguments or files are wrong
UNDECIDED = 3  # the work was done, but the result is inconclusive: a check on a busy machine
HELP_COLUMNS = 80  # the usual width of a terminal
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
CommandTable = Mapping[
    str, Mapping[str, str]
]  # section of the help -> entry point of a command -> its summary
# The order of commands in a section of the help where several tables have commands for it; others come last.
ORDER: Final = ("export", "check", "apply", "run", "lower", "ptx", "bundle", "measure", "fleet")
SIZES = re.compile(r"(?<!\S)\d+(?: \d+){1,3}(?!\S)")  # typed with spaces
SHAPE = re.compile(r"\d+(?:x\d+)+")
SYNONYMS: Final = {  # what other tools call a command -> how it is typed here
    "compare": "tuner diff A B",
    "list": "tuner history",
    "ls": "tuner history",
    "runs": "tuner history --runs",
    "why": "tuner explain ID",
}
TYPO = 0.8  # similarity above which an unknown option is taken for a misspelt one
USUAL_COLUMNS = 80  # for a terminal that reports no width


@final
class HelpFormatter(click.HelpFormatter):
    """A click help formatter that prints each example after 'Example: ' on a separate line to copy."""

    def write_text(self, text: str) -> None:
        before, has_examples, examples = text.partition(EXAMPLE)
        super().write_text(before.rstrip())
        if has_examples:
            self.write_paragraph()
            indent = " " * self.current_indent
            lines = example_lines(examples, self.width - len(indent))
            self.write("".join(f"{indent}{line}\n" for line in lines))


@final
class HelpContext(click.Context):
    """A click context that formats help texts by ``HelpFormatter``; every command of tuner has one."""

    formatter_class = HelpFormatter


def example_lines(examples: str, columns: int) -> list[str]:
    """Returns the examples of a help text as lines up to ``columns`` wide: a title, then the commands."""
    first, *others = NEXT_EXAMPLE.split(" ".join(examples.split()))
    commands = [first, *others[1::2]]
    if len(commands) == 1 and len(EXAMPLE) + len(first) <= columns:
        return [f"{EXAMPLE}{first}"]
    title = "Example:" if len(commands) == 1 else "Examples:"
    return [title, *(f"  {line}" for command in commands for line in _broken(command, columns - 2))]


def _broken(command: str, columns: int) -> list[str]:
    lines = [""]  # broken between arguments, but not between an option and its value
    for part in PART.findall(command):
        longer = f"{lines[-1]} {part}" if lines[-1].strip() else f"{lines[-1]}{part}"
        if len(longer) + len(" \\") <= columns:
            lines[-1] = longer
        else:
            lines[-1] += " \\"
            lines.append(f"{CONTINUATION}{part}")
    return lines


@dataclass(frozen=True)
class Entry:
    """A command in the table of commands; it is imported when it is run, not to list all commands."""

    name: str
    entry_point: str  # "module:function"
    summary: str  # the first paragraph of the command's help


Sections = tuple[tuple[str, tuple[Entry, ...]], ...]  # title of a section of the help, its commands


def sections_of(*tables: CommandTable) -> Sections:
    """Returns the sections of the help, title -> commands, from several tables of commands.

    The sections of the first table come first, then those that the other tables add.
    """
    entries: dict[str, list[Entry]] = {}
    for table in tables:
        for title, commands in table.items():
            entries.setdefault(title, []).extend(_entry(*pair) for pair in commands.items())
    return tuple((title, tuple(sorted(listed, key=_rank))) for title, listed in entries.items())


def _entry(entry_point: str, summary: str) -> Entry:
    _, _, function = entry_point.partition(":")
    return Entry(function.replace("_", "-"), entry_point, summary)


def _rank(entry: Entry) -> int:
    if entry.name in ORDER:
        return ORDER.index(entry.name)
    return len(ORDER)


@final
class PrintableStream:
    """A text stream that passes text to the wrapped stream, with control characters as visible escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(printable_lines(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Commands(click.Group):
    """A click group that reports an error in one line and a hint in a second one.

    A traceback is printed only with --debug.
    """

    context_class = HelpContext
    program = "tuner"  # what a usage begins with
    table: CommandTable = MappingProxyType({})
    has_extensions = False  # extensions add commands to this group

    def add_command(self, command: click.Command, name: str | None = None) -> None:
        """Adds a command, with tuner's help format and shell completion, and --debug unless it is a group."""
        command.context_class = HelpContext
        if not isinstance(command, click.Group):
            help_ = "Show the traceback of an error."  # ``main`` below reads the flag
            command.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, help=help_))
        offer_completions(command)
        super().add_command(command, name)

    def set_table(self, table: CommandTable, *, has_extensions: bool) -> None:
        """Sets the commands of the group by entry point; each is imported when it is run or completed.

        ``has_extensions``: extensions add commands, too.
        """
        self.table = table
        self.has_extensions = has_extensions

    @property
    def sections(self) -> Sections:
        """Returns all sections of the help; reads the tables of extensions, and imports no command."""
        tables: list[CommandTable] = []
        if self.has_extensions:
            tables = [extension.load() for extension in extensions("commands").values()]
        return sections_of(self.table, *tables)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands, sorted; imports none."""
        return sorted({*self.commands, *(entry.name for entry in self._entries())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command with a name, imported if necessary; None for an unknown name."""
        entry = None
        if cmd_name not in self.commands:
            entry = next((entry for entry in self._entries() if entry.name == cmd_name), None)
        if entry is not None:
            module, _, function = entry.entry_point.partition(":")
            self.add_command(getattr(importlib.import_module(module), function), cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns (name, command, other arguments) for the command with which ``args`` begin.

        Raises UsageError for an unknown name, and if an option stands where the value of another one is
        missing.
        """
        if not ctx.resilient_parsing and not args[0].startswith("-") and not self.get_command(ctx, args[0]):
            hint = SYNONYMS.get(args[0]) or unknown_value("command", args[0], self.list_commands(ctx)).hint
            raise UsageError(f"there is no command {args[0]!r}", hint or f"{ctx.command_path} --help")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _require_values(command, rest, f"{ctx.command_path} {name} --help")
        return name, command, rest

    def all_commands(self) -> dict[str, click.Command]:
        """Returns name -> command of all commands, in the order of the help; imports them."""
        context = click.Context(self)
        listed = (entry.name for _title, section in self.sections for entry in section)
        names = dict.fromkeys((*listed, *self.commands))
        return {name: command for name in names if (command := self.get_command(context, name))}

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the group's commands to the help, by section, with their whole summaries.

        Imports no command.
        """
        entries = {entry.name for entry in self._entries()}
        # of a command that is not in the table: the first paragraph of its help, for the formatter to wrap
        summaries = {name: (command.help or "").split("\n\n")[0] for name, command in self.commands.items()}
        others = [(name, " ".join(text.split())) for name, text in summaries.items() if name not in entries]
        titled = [
            (title, [(entry.name, entry.summary) for entry in section]) for title, section in self.sections
        ]
        for title, lines in (*titled, ("Commands", others)):
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)

    def _entries(self) -> Iterator[Entry]:
        built_in = [entry for _title, section in sections_of(self.table) for entry in section]
        yield from built_in  # first: for one of these the tables of extensions are not read
        added = (entry for _title, section in self.sections for entry in section)
        yield from (entry for entry in added if entry not in built_in)

    def main(self, args: Sequence[str] | None = None, **options: Any) -> NoReturn:  # type: ignore[override]
        """Runs the command in ``args`` (None: ``sys.argv``) and exits the process with its exit code.

        Codes: 0 done, 1 the work failed, 2 wrong arguments, 3 undecided, 130 interrupted. ``began_s`` among
        the options: when the process began, by the monotonic clock; budgets count from there.
        """
        arguments = list(sys.argv[1:] if args is None else args)
        began_s = options.get("began_s", time.monotonic())
        try:
            instruction = os.environ.get(COMPLETION_VARIABLE)  # click's, such as "bash_complete"
            if instruction:
                from click.shell_completion import shell_complete  # not at start-up

                code: int = shell_complete(self, {}, "tuner", COMPLETION_VARIABLE, instruction)
            else:
                code = _run(self, arguments, options.get("obj"), began_s)
        except Exception as error:  # noqa: BLE001 - the last frame: users get a line, --debug the rest
            if "--debug" in arguments:
                print(_without_secrets(traceback.format_exc(), arguments), end="", file=sys.stderr)
            plain = _of_extension(_sizes_as_option(error, arguments))
            code = _reported(_with_hint(self, plain, arguments), arguments)
        except KeyboardInterrupt:
            code = INTERRUPTED
        sys.exit(code)


def _require_values(command: click.Command, arguments: Sequence[str], hint: str) -> None:
    # click takes the next option for the value, and complains about what follows; --name=--value still works
    options = {name: param for param in command.params for name in (*param.opts, *param.secondary_opts)}
    words = iter(arguments)
    for name in words:
        option = options.get(name)
        if name == "--":
            return
        if isinstance(option, click.Option) and not option.is_flag and not option.count:
            for value in itertools.islice(words, option.nargs):
                if value.startswith("-") and value.partition("=")[0] in options:
                    raise UsageError(f"{name} needs a value, found the option {value}", hint)


def _run(group: Commands, arguments: list[str], obj: object, began_s: float) -> int:
    try:  # click's ``main`` would turn a closed pipe into exit code 1
        with printable_stdout(), group.make_context(group.program, arguments, obj=obj) as context:
            context.meta[BEGAN_S] = began_s
            group.invoke(context)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    finally:
        print(end="", flush=True)  # a full disk or a closed pipe raises here, not when the interpreter ends
    return DONE


def _sizes_as_option(error: Exception, arguments: Sequence[str]) -> Exception:
    # click takes a shape with a negative size first, such as -5x512x512, for an unknown option
    if not isinstance(error, click.NoSuchOption):
        return error
    shapes = (word for word in arguments if re.fullmatch(r"-[0-9]+(x-?[0-9]+)+", word.lower()))
    shape = next((shape for shape in shapes if shape.startswith(error.option_name)), None)
    line = f"shape: found {shape!r}, allowed sizes of 1 or more, such as 8x8x8"
    if shape is None:
        return error
    return UsageError(line)


def _with_hint(group: Commands, error: Exception, arguments: Sequence[str]) -> Exception:
    """Returns ``error`` as a UsageError with a hint on what to type; unchanged if no hint is known.

    A hint is known for some errors of click: an unknown option, a further or a missing argument.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return error
    assert isinstance(error, click.UsageError)
    line = error.message
    hint = ""
    if isinstance(error, click.NoSuchOption):
        line = f"No such option '{error.option_name}'."
        hint = _option_hint(group, error, arguments)
    elif "unexpected extra argument" in line:
        hint = _arguments_hint(context.command, arguments) or _first_example(context.command)
    elif isinstance(error, click.MissingParameter):
        line = error.format_message()
        hint = _first_example(context.command)
    if hint:
        return UsageError(line.rstrip("."), hint)
    return error


def _option_hint(group: Commands, error: click.NoSuchOption, arguments: Sequence[str]) -> str:
    name = error.option_name
    similar = difflib.get_close_matches(name, error.possibilities or (), 1, TYPO)
    if similar:
        return f"did you mean {similar[0]}?"
    if not _is_in_a_source(name):
        return ""
    try:
        having = [words for words, command in _commands(group) if name in _flags(command)]
    except TunerError:  # the commands of an extension cannot be listed, which is not what was asked
        return ""
    typed = [words for words in having if words.removeprefix("tuner ") in arguments]  # the option before it
    return "".join(f"{words} has {name}" for words in (typed or having)[:1])


def _is_in_a_source(flag: str) -> bool:
    """Returns whether the text of a file that declares options has ``flag``: importing all takes seconds."""
    package = Path(__file__).parents[1]
    for file in itertools.chain(package.glob("cli/**/*.py"), package.glob("*/commands/*.py")):
        if f'"{flag}"' in file.read_text("utf-8"):
            return True
    return False


def _commands(group: click.Group, words: str = "tuner") -> Iterator[tuple[str, click.Command]]:
    """Yields what is typed for a command, such as "tuner db info", and the command, which it imports.

    In the order of the help. ``words``: what is typed for ``group``.
    """
    sections = group.sections if isinstance(group, Commands) else ()
    entries = (entry.name for _title, section in sections for entry in section)
    for name in dict.fromkeys((*entries, *group.commands)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{words} {name}")
        elif command is not None:
            yield f"{words} {name}", command


def _flags(command: click.Command) -> set[str]:
    return {flag for param in command.params if isinstance(param, click.Option) for flag in param.opts}


def _arguments_hint(command: click.Command, arguments: Sequence[str]) -> str:
    """Returns a corrected command line: sizes joined to a shape, arguments as options.

    "" if there is none.
    """
    if any(param.name == "shape" for param in command.params if isinstance(param, click.Argument)):
        typed = shlex.join(arguments)
        joined = SIZES.sub(lambda sizes: sizes[0].replace(" ", "x"), typed)
        if joined != typed:
            return f"tuner {joined}"
        return ""
    flags = _flags(command)
    words = list[str]()
    for word in arguments:
        if SHAPE.fullmatch(word):
            flag = "--shape"
        elif word in OPERATIONS:
            flag = "--op"
        else:
            flag = ""
        is_value = bool(words) and words[-1].startswith("-")
        words += [flag, word] if flag in flags and not is_value else [word]
    if len(words) > len(arguments):
        return f"tuner {shlex.join(words)}"
    return ""


def _first_example(command: click.Command) -> str:
    _, _, examples = (command.help or "").partition(EXAMPLE)
    return NEXT_EXAMPLE.split(" ".join(examples.split()))[0]


def _without_secrets(text: str, arguments: Sequence[str]) -> str:
    return without_secrets(text, *arguments, os.environ.get(VARIABLE, ""))


def _reported(error: Exception, arguments: Sequence[str]) -> int:
    hint = error.hint if isinstance(error, TunerError) else ""
    match error:
        case BrokenPipeError():
            _forget_stdout()
            return DONE  # the reader of the pipe has closed it
        case click.exceptions.NoArgsIsHelpError():
            print(error.ctx.get_help() if error.ctx else error.format_message(), file=sys.stderr)
            return MISUSED
        case click.exceptions.Abort():
            return INTERRUPTED
        case click.ClickException():
            line = error.format_message()
            code = MISUSED
        case UsageError():
            line = error.message
            code = MISUSED
        case TunerError():
            line = error.message
            code = FAILED
        case OSError():
            _forget_stdout()
            line = f"{error.filename or 'system'}: {error.strerror or error}"
            code = FAILED
        case MemoryError():
            line = defect_line(error)
            hint = "try a smaller problem, or fewer --workers"
            code = FAILED
        case ModuleNotFoundError() if error.name:
            line = f"missing dependency {error.name!r}"
            hint = install_module(error.name)
            code = FAILED
        case _:
            line = f"defect: {defect_line(error)}"
            hint = "--debug shows where"
            code = FAILED
    line, hint = (one_line(_without_secrets(text, arguments)) for text in (line, hint))
    lines = error_lines(line, hint).splitlines()
    print("\n".join(wrapped(lines, columns_of(sys.stderr))), file=sys.stderr)
    return code


def _of_extension(error: Exception) -> Exception:
    """Returns an error that names the extension (a distribution) whose code raised ``error`` by mistake.

    ``error`` itself if it is meant for users, or was not raised by an extension.
    """
    if isinstance(error, TunerError | click.ClickException | click.exceptions.Abort | BrokenPipeError):
        return error
    with contextlib.suppress(TunerError):  # tuner's own entry points are not found
        extension = extension_in(error)
        if extension is not None:
            return TunerError(f"{extension.distribution}: {defect_line(error)}", extension.defect_hint)
    return error


def _forget_stdout() -> None:
    with contextlib.suppress(OSError):  # stdout may have no file descriptor
        # else the interpreter's last flush would fail too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_version(context: click.Context, _parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        print("\n".join(version_lines()))
        context.exit()


def version_lines() -> tuple[str, ...]:
    """Returns the lines that ``tuner --version`` prints: tuner, compiler, hashes of what generates code."""
    from tuner.mlir.fingerprint import llvm_version, sources_sha256  # not at start-up
    from tuner.targets.registry import TARGETS  # not at start-up

    compiling = [target for target in TARGETS.values() if target.sources]
    hashes = (f"{target.name} {sources_sha256(target.sources)[:12]}" for target in compiling)
    return (f"tuner {__version__}", f"compiler: {llvm_version()}", f"code: {', '.join(hashes)}")


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_COLUMNS}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and what makes code.",
)
def main() -> None:
    """Autotunes MLIR transform-dialect strategies: tries, verifies, times, remembers.

    Example: tuner tune matmul 512x512x512 --budget 60s
    """


@contextlib.contextmanager
def printable_stdout() -> Iterator[None]:
    """Context manager: escapes control characters that are written to stdout inside the block."""
    stream = sys.stdout
    sys.stdout = cast(TextIO, PrintableStream(stream))
    try:
        yield
    finally:
        sys.stdout = stream


def screen_columns() -> int | None:
    """Returns the width of stdout's terminal in characters; None if stdout is a file or a pipe."""
    return columns_of(sys.stdout)


def columns_of(stream: TextIO) -> int | None:
    """Returns the width of a stream's terminal in characters (80 if unknown); None for a file or a pipe."""
    if not stream.isatty():
        return None
    return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
