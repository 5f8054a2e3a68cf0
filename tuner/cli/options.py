"""Flags that several commands share, and the words in them read into values."""

import functools
import json
import re
import shlex
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from tuner.core.errors import UsageError
from tuner.core.problem import BATCH_MATMUL, MATMUL, Problem, dtype_name, narrow_output, parse_sizes

if TYPE_CHECKING:
    from tuner.core.candidate import Candidate
    from tuner.db.store import Store
    from tuner.tuning.composition import Composition
    from tuner.tuning.run_limit import RunLimit
    from tuner.tuning.run_request import RunRequest

P = ParamSpec("P")
R = TypeVar("R")
PROBLEM_OPTIONS = ("operation", "shape", "dtype", "layout", "epilogue", "output_dtype")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def seed_option(help_: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Adds --seed N; the command is refused with a negative one, of which numpy makes no generator."""

    def required(_context: click.Context, _parameter: click.Parameter, seed: int) -> int:
        if seed < 0:
            raise UsageError(f"seed: found {seed}, allowed 0 or more")
        return seed

    return click.option("--seed", type=int, default=0, show_default=True, callback=required, help=help_)


def database_option(function: Callable[P, R]) -> Callable[P, R]:
    """Adds --db URL, which is added to the advice of the command's errors as well."""

    @functools.wraps(function)
    def command(*arguments: P.args, **words: P.kwargs) -> R:
        from tuner.run_history.which_database import naming_database

        with naming_database(words["database"]):  # type: ignore[arg-type]  # as the option says
            return function(*arguments, **words)

    option = click.option(
        "--db",
        "database",
        metavar="URL",
        help="Results database: a file, sqlite:///FILE or postgresql://... "
        "Default: TUNER_DB of the environment, else SQLite in the user's data directory.",
    )
    return option(command)


def problem_options(function: Callable[P, R]) -> Callable[P, R]:
    """Adds --dtype, --layout, --epilogue and --output-dtype with their defaults."""
    for option in (
        click.option(
            "--output-dtype",
            default="",
            metavar="DTYPE",
            help="Type of C: f16 of f16 inputs, bf16 of bf16, either of e4m3 and e5m2. Default: that of the "
            "sums, f32, f64 or i32.",
        ),
        click.option("--epilogue", default="none", show_default=True, help="none or bias_relu."),
        click.option("--layout", default="nn", show_default=True, help="nn, nt, tn: t is stored transposed."),
        click.option(
            "--dtype",
            default="f32",
            show_default=True,
            help="f32, f64, bf16, i8; on GPUs also f16, tf32, e4m3, e5m2.",
        ),
    ):
        function = option(function)
    return function


def composition_of(context: click.Context) -> "Composition":
    """Returns the parts that a test gave, else the real ones."""
    from tuner.tuning.composition import Composition
    from tuner.tuning.parts.real import real_composition

    given = context.find_object(Composition)
    return real_composition() if given is None else given


def open_store(database: str | None) -> "Store":
    """Opens the database named, or the default one; creates its file. Raises UsageError when it cannot."""
    from tuner.run_history.opened_store import open_or_create

    return open_or_create(database)


def open_known_store(database: str | None) -> "Store":
    """Opens a database for questions: the one named has to exist, the default one may be empty.

    Raises UsageError when it cannot.
    """
    from tuner.run_history.opened_store import open_known

    return open_known(database)


def open_existing_store(database: str | None) -> "Store":
    """Opens a database that has to exist, named or not. Raises UsageError when it cannot."""
    from tuner.run_history.opened_store import open_existing

    return open_existing(database)


def target_options(function: Callable[P, R]) -> Callable[P, R]:
    """Adds --target and --chip."""
    for option in (
        click.option(
            "--chip", default="", metavar="CHIP", help="Of a GPU target: sm_90 (default), sm_80, ..."
        ),
        click.option(
            "--target",
            default="auto",
            show_default=True,
            help="auto, one of 'tuner targets', or replay:FILE.",
        ),
    ):
        function = option(function)
    return function


def popped_problem(context: click.Context, words: dict[str, Any], sizes: str) -> Problem:
    """Takes the words of a problem out of the others. Raises UsageError, which names sizes for example."""
    if words["operation"] is None or words["shape"] is None:
        name, batch = context.info_name, words["operation"] == BATCH_MATMUL
        example = f"tuner {name} {BATCH_MATMUL if batch else MATMUL} {'8x' * batch}{sizes}"
        line = f"{name}: the operation and the shape are missing"
        raise UsageError(line, f"{example}{typed_options(context)}")
    return taken_problem(words)


def taken_problem(words: dict[str, Any]) -> Problem:
    """Takes the words of a problem, which are all there, out of the others. Raises UsageError."""
    return problem_of(*(words.pop(name) for name in PROBLEM_OPTIONS))


def typed_options(context: click.Context, but: Collection[str] = ()) -> str:
    """Returns the options of this command line as they were typed, for advice, to which --db is added."""
    typed = []
    for option in context.command.params:
        name = option.name or ""
        is_typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if isinstance(option, click.Option) and is_typed and name not in ("database", "debug", *but):
            value = context.params[name]
            values = value if option.multiple else [value]
            typed += [[option.opts[0], *([] if option.is_flag else [str(each)])] for each in values]
    return "".join(f" {shlex.join(words)}" for words in typed)


def problem_of(
    operation: str, shape: str, dtype: str, layout: str, epilogue: str, output_dtype: str = ""
) -> Problem:
    """Reads a problem from the command line's words. Raises UsageError."""
    word = dtype_name(dtype)
    output = narrow_output(word, dtype_name(output_dtype))
    batch, sizes = parse_sizes(operation, shape)
    return Problem(operation, sizes, word, layout, epilogue, output, batch)


def run_request(problem: Problem, budget: str | None = None, **words: Any) -> "RunRequest":
    """Returns what the flags ask of a run; ``words`` are named as the request's fields. Raises UsageError."""
    from tuner.core.moments import parse_seconds
    from tuner.tuning.run_request import RunRequest

    return RunRequest(problem, budget_s=None if budget is None else parse_seconds(budget), **words)


def run_limit(trials: int | None, budget: str | None) -> "RunLimit | None":
    """Returns the limit that flags ask of a stored run; None where they ask none. Raises UsageError."""
    from tuner.core.moments import parse_seconds
    from tuner.tuning.run_limit import RunLimit

    return RunLimit.of(trials, None if budget is None else parse_seconds(budget))


def parse_candidate(text: str) -> "Candidate":
    """Reads ``strategy(knob=value, ...)``; values of digits are numbers. Raises UsageError."""
    match = re.fullmatch(r"\s*([\w.-]+)\s*\((.*)\)\s*", text)
    pairs = [pair.partition("=") for pair in match[2].split(",") if pair.strip()] if match else []
    if match is None or any(not equals or not name.strip() for name, equals, _ in pairs):
        raise UsageError(f"candidate: found {text!r}, allowed 'STRATEGY(KNOB=VALUE, ...)'")
    values = {name.strip(): value.strip() for name, _, value in pairs}
    from tuner.core.candidate import Candidate

    numbers = {name: int(v) if re.fullmatch(r"-?[0-9]{1,18}", v) else v for name, v in values.items()}
    return Candidate.of(match[1], numbers)


def parse_number(word: str, noun: str = "trial") -> int:
    """Reads the number of a trial or a run. Raises UsageError."""
    if not word.isascii() or not word.isdigit() or len(word) > 18:
        from tuner.tuning.advice import ASKING

        raise UsageError(f"ID: found {word!r}, allowed a number such as 42", ASKING[noun])
    return int(word)


def parse_share(text: str) -> float:
    """Reads ``5%`` or ``0.05``. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(%?)", text)
    if match is None:
        raise UsageError(f"share: found {text!r}, allowed a percentage such as 5%")
    return float(match[1]) / (100 if match[2] else 1)


def print_found(as_json: bool, document: Any, *lines: str) -> None:
    """Prints what was found: as one JSON document for programs, or as lines for people."""
    if as_json:
        print_json(document)
    else:
        print("\n".join(lines))


def print_json(document: Any) -> None:
    """Prints one JSON document."""
    print(json.dumps(document, indent=2, allow_nan=False))
