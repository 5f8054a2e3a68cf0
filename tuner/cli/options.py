"""Options that several commands share, such as --db and those of a fleet, and the parsing of their values.

Functions named ``..._option`` are decorators of a command. ``open_store`` and its relatives open the database
that --db names; ``RemoteRunners`` is the port by which a fleet does a run's work.
"""

import functools
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import click
from click.core import ParameterSource

from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.dtypes import (
    CPU_DTYPES,
    IEEE,
    MATH,
    MODES,
    PLAIN_DTYPES,
    TILE_DTYPES,
    dtype_name,
    require_plain_dtype,
)
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import UsageError
from tuner.core.problem import (
    LAYOUTS,
    NUMPY_ALIGNMENT,
    SCALES,
    WARM,
)
from tuner.core.serialization import count_text, parse_seconds
from tuner.runtime.extensions import load

if TYPE_CHECKING:
    from tuner.core.requests import FleetRequest
    from tuner.db.store import Store
    from tuner.targets.backends import Backends
    from tuner.tuning.request import RunLimit


P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
EPILOGUE = "NAME"  # stands for the name of an epilogue in a help text
EPILOGUE_HELP = f"What follows the product: {', '.join(EPILOGUES)}."
OF_WEIGHTS = ("weights", "constant", "group_size", "scale_dtype", "zero_points", "activations", "scales")
PROBLEM_OPTIONS = (
    *("operation", "shape", "dtype", "math", "layout", "epilogue", "output_dtype", "align", "cache"),
    *OF_WEIGHTS,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
OTHER_DTYPES = tuple(dtype for dtype in PLAIN_DTYPES if dtype not in CPU_DTYPES)
DTYPE_HELP = f"{', '.join(CPU_DTYPES)}; on GPUs also {', '.join(OTHER_DTYPES)}."
MODE = f"[{'|'.join(MATH)}]"
TILE_MODES = tuple(MODES[dtype] for dtype in TILE_DTYPES)
GPU_MODES = tuple(math for math in MATH if math not in (IEEE, *TILE_MODES))
MATH_HELP = (
    f"How f32 is multiplied; on GPUs also {', '.join(GPU_MODES)}, by AMX and wgmma {', '.join(TILE_MODES)}."
)
EXPORTED = "tuner export matmul 512x512x512 -o best.mlir"  # makes a script, and its payload
SUFFIX = ".mlir"  # of a file with a payload
# options whose values a payload determines
OF_ONE_PROBLEM = ("dtype", "math", "layout", "epilogue", "output_dtype", "align", "cache", *OF_WEIGHTS)
MODEL_FUNCTION = re.compile(r"(.+\.py):([A-Za-z_]\w*)")  # model.py:function
EXPORTED_MODEL = ".pt2"  # ends the name of a file that torch.export.save has written
CAMPAIGN_PREFIX = "campaign:"  # before the number of a campaign where that of a run may stand
space_option = click.option(
    "--space", type=click.Path(path_type=Path), help="Search-space file. Default: the one shipped."
)
library_option = click.option(
    "--library",
    "libraries",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A script whose sequences the script uses, as mlir-opt's preloaded libraries; may be repeated.",
)


def shown_choices(values: Collection[str]) -> str:
    """Returns the values of an option as its help shows them: [nn|nt|tn]."""
    return f"[{'|'.join(values)}]"


LAYOUT = shown_choices(LAYOUTS)


def combined(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Returns a decorator that adds several click options to a command; the help lists them in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


fleet_options = combined(
    click.option("--fleet", "has_fleet", is_flag=True, help="Nodes of tuner fleet compile and measure."),
    click.option(
        "--on",
        metavar="A,B",
        help="With --fleet: classes of machines; all measure what the first one's run proposes.",
    ),
    click.option("--machine", "fleet_machine", help="With --fleet: class of machine to measure on."),
    click.option("--devices", type=int, help="With --fleet: devices of the run. Default: 1."),
    click.option("--priority", type=int, help="With --fleet: larger goes first. Default: 0."),
)


class RemoteRunners(Protocol):
    """A port: lets other machines do a run's work; the entry point ``fleet`` of ``tuner.runners``."""

    def require_server(self, url: str) -> None:
        """Raises UsageError if the database ``url`` is not on a server, or if a package for it is missing."""

    def pending_limit(self, devices: int) -> int:
        """Returns how many trials of a run may be pending at once if it measures on ``devices`` devices."""

    def fleet_backends(self, backends: "Backends", fleet: "FleetRequest") -> "Backends":
        """Returns backends for a run: other machines of the fleet compile and measure its candidates."""

    def target_on(self, fleet: "FleetRequest", machine: str, target: str) -> TargetName:
        """Returns the target of the machines of one class in a fleet, such as cuda:sm_90.

        ``machine``: the name of the class, or a part of it; ``target``: the target asked for, without a chip,
        such as "cuda", or "auto". Raises UsageError if no machine, or several classes, match.
        """


def remote_runners() -> RemoteRunners:
    """Imports and returns the extension by which a fleet does a run's work.

    Raises UsageError if it is not installed.
    """
    runners: RemoteRunners = load("runners", "fleet")
    return runners


def seed_option(help_: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a click decorator that adds the option --seed N; ``help_``: its help text.

    The option raises UsageError for N < 0.
    """

    def required(_context: click.Context, _parameter: click.Parameter, seed: int) -> int:
        if seed < 0:
            raise UsageError(f"seed: found {seed}, allowed 0 or more")
        return seed

    return click.option("--seed", type=int, default=0, show_default=True, callback=required, help=help_)


def database_option(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: adds --db URL to a click command, and the same --db to commands in hints of its errors."""

    @functools.wraps(function)
    def command(*arguments: P.args, **options: P.kwargs) -> R:
        from tuner.results.database_name import naming_database  # not at start-up

        with naming_database(options["database"]):  # type: ignore[arg-type]  # str | None, by the option below
            return function(*arguments, **options)

    option = click.option(
        "--db",
        "database",
        metavar="URL",
        help="Results database: a file, sqlite:///FILE or postgresql://... "
        "Default: TUNER_DB of the environment, else SQLite in the user's data directory.",
    )
    return option(command)


def dtype_option(help_: str, default: str | None = None) -> Callable[[F], F]:
    """Returns a click decorator that adds --dtype DTYPE, which raises UsageError for an unknown type.

    ``help_``: its help text; ``default``: the type where none is typed.
    """

    def required(_context: click.Context, _parameter: click.Parameter, dtype: str | None) -> str | None:
        if dtype is not None:
            require_plain_dtype(dtype_name(dtype))
        return dtype

    has_default = default is not None
    return click.option(
        "--dtype", default=default, show_default=has_default, metavar="DTYPE", callback=required, help=help_
    )


def math_option(help_: str, default: str | None = None) -> Callable[[F], F]:
    """Returns a click decorator that adds --math MODE, how f32 is multiplied.

    ``help_``: its help text; ``default``: the mode where none is typed.
    """
    return click.option("--math", default=default, show_default=default is not None, metavar=MODE, help=help_)


problem_options = combined(
    dtype_option(DTYPE_HELP, default="f32"),
    math_option(MATH_HELP, default=IEEE),
    click.option(
        "--layout", default="nn", show_default=True, metavar=LAYOUT, help="Of A, then of B: t is transposed."
    ),
    click.option("--epilogue", default="none", show_default=True, metavar=EPILOGUE, help=EPILOGUE_HELP),
    click.option(
        "--output-dtype",
        default="",
        metavar="DTYPE",
        help="Type of C: f16 of f16 inputs, bf16 of bf16, either of e4m3 and e5m2. Default: that of the "
        "sums, f32, f64 or i32.",
    ),
    click.option(
        "--align",
        default=NUMPY_ALIGNMENT,
        show_default=True,
        metavar="BYTES",
        help="Addresses of A, B and C on a CPU are multiples of 16 (numpy), 64 (PyTorch), or any.",
    ),
    click.option(
        "--cache",
        default=WARM,
        show_default=True,
        metavar="STATE",
        help="What a CPU's caches hold at a call: warm, weights-cold (all but B) or cold (nothing).",
    ),
    click.option(
        "--weights",
        default="",
        metavar="[i4|i8]",
        help="B is quantized, n x k integers, packed ahead; --dtype is that of A. CPU only.",
    ),
    click.option(
        "--constant",
        default="",
        metavar="b",
        help="b: B is constant, as the weights of a model are: packed ahead, not at each call. CPU only.",
    ),
    click.option(
        "--group-size",
        default="128",
        show_default=True,
        metavar="N",
        help="Of quantized weights: elements of K with one scale; 32, 64, ..., or channel: all of K.",
    ),
    click.option(
        "--scale-dtype",
        default="f16",
        show_default=True,
        metavar="[f16|bf16|f32]",
        help="Of quantized weights: type of the scales.",
    ),
    click.option("--zero-points", is_flag=True, help="Of quantized weights: each group has a zero point."),
    click.option(
        "--activations",
        default="",
        metavar="i8",
        help="With quantized weights A is quantized at each call: i8 (by group), i8-group, i8-row. "
        "Default: it is not.",
    ),
    click.option(
        "--scales",
        default="",
        metavar=SCALES,
        help="Of fp8 with layout nt: f32 scales of A per row and 128 of K, of B per 128 x 128; sm_90a.",
    ),
)


def backends_of(context: click.Context) -> "Backends":
    """Returns the backends (compiler, targets, recordings) of a command; tests set the context's object."""
    from tuner.targets.backends import Backends  # not at start-up: with the records of runs
    from tuner.targets.registry import real_backends  # not at start-up

    backends = context.find_object(Backends)  # type: ignore[type-abstract]  # of any implementation
    if backends is None:
        return real_backends()
    return backends


def open_store(database: str | None) -> "Store":
    """Opens a results database for writing; a missing file is created. None: the default database."""
    from tuner.results.database import open_or_create  # not at start-up

    return open_or_create(database)


def open_known_store(database: str | None, hint: str = "") -> "Store":
    """Opens a results database for queries.

    None: the default database, which is empty if its file is missing. Raises UsageError if a named file is
    missing, with ``hint``, else with a command that creates one.
    """
    from tuner.results.database import open_known  # not at start-up

    return open_known(database, hint)


def note_unknown_problems(store: "Store") -> None:
    """Prints on stderr, per problem that this version does not know, how many runs are left out."""
    for key, runs in store.unknown_problems():
        print(
            f"note: {count_text(runs, 'run')} of {key} left out: this version does not know that problem",
            file=sys.stderr,
        )


def open_existing_store(database: str | None) -> "Store":
    """Opens a results database. None: the default one. Raises UsageError if its file is missing."""
    from tuner.results.database import open_existing  # not at start-up

    return open_existing(database)


target_options = combined(
    click.option(
        "--target",
        default="auto",
        show_default=True,
        help="auto, one of 'tuner targets', or replay:FILE.",
    ),
    click.option("--chip", default="", metavar="CHIP", help="Of a GPU target: sm_90 (default), sm_80, ..."),
    click.option(
        "--cpu",
        default="",
        metavar="NAME",
        help="Another processor, as --target cpu:NAME: sapphirerapids, neoverse-v2, ...",
    ),
)


def is_typed(context: click.Context, name: str) -> bool:
    """Returns whether the user gave the parameter with this name on the command line."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def typed_options(context: click.Context, but: Collection[str] = ()) -> str:
    """Returns the options that the user typed as text for a hint, such as " --dtype f16"; "" without any.

    Without --db and --debug, and without the parameters named in ``but``.
    """
    typed = []
    for option in context.command.params:
        name = option.name or ""
        is_left_out = name in ("database", "debug", *but)
        if isinstance(option, click.Option) and not is_left_out and is_typed(context, name):
            for value in context.params[name] if option.multiple else [context.params[name]]:
                typed.append(option.opts[0])
                if not option.is_flag:
                    typed.append(str(value))
    return f" {shlex.join(typed)}" if typed else ""


def run_limit(trials: int | None, budget: str | None) -> "RunLimit | None":
    """Returns the new limit of a resumed run from --trials and --budget ("60s"); None if neither is given."""
    from tuner.tuning.request import RunLimit  # not at start-up

    return RunLimit.of(trials, None if budget is None else parse_seconds(budget))


def parse_candidate(text: str) -> "Candidate":
    """Returns the candidate of a text ``strategy(knob=value, ...)``; whole numbers become integers.

    Raises UsageError for text of another form.
    """
    wrong = UsageError(f"candidate: found {text!r}, allowed 'STRATEGY(KNOB=VALUE, ...)'")
    match = re.fullmatch(r"\s*([\w.-]+)\s*\((.*)\)\s*", text)
    if match is None:
        raise wrong
    values: dict[str, Value] = {}
    for pair in filter(str.strip, match[2].split(",")):
        name, equals, value = map(str.strip, pair.partition("="))
        if not name or not equals:
            raise wrong
        values[name] = int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value
    return Candidate.of(match[1], values)


def parse_number(word: str, noun: str = "trial") -> int:
    """Returns the number that the ID of a trial, a run or a campaign stands for.

    ``noun``: "trial", "run" or "campaign", for the message. Raises UsageError for text that is not a number.
    """
    if not word.isascii() or not word.isdigit() or len(word) > 18:
        line = f"ID: found {word!r}, allowed the number of a {noun}, such as 42"
        from tuner.core.queries import ASKING  # not at start-up: with the records of runs

        raise UsageError(line, ASKING.get(noun, ""))
    return int(word)


def parse_share(text: str, name: str = "max-slowdown") -> float:
    """Returns the fraction that ``5%`` or ``0.05`` stands for.

    Raises UsageError, beginning with the option's ``name``, for other text.
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(%?)", text)
    if match is None:
        raise UsageError(f"{name}: found {text!r}, allowed a percentage such as 5%")
    return float(match[1]) / (100 if match[2] else 1)


def print_found(as_json: bool, document: Any, *lines: str) -> None:
    """Prints a result on stdout: as one JSON document with ``as_json``, else as lines for people."""
    if as_json:
        print_json(document)
    else:
        print("\n".join(lines))


def print_json(document: Any) -> None:
    """Prints one JSON document on stdout. Raises ValueError for NaN and infinity."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_json_list(documents: Iterable[Any]) -> None:
    """Prints one JSON list on stdout, each document when it is taken from ``documents``.

    Raises ValueError for NaN and infinity.
    """
    before = "[\n"
    for document in documents:
        print(before + textwrap.indent(json.dumps(document, indent=2, allow_nan=False), "  "), end="")
        before = ",\n"
    print("[]" if before == "[\n" else "\n]")


def is_model(name: str) -> bool:
    """Returns whether a payload's name is that of a model: ``model.py:function`` or ``model.pt2``."""
    return MODEL_FUNCTION.fullmatch(name) is not None or name.endswith(EXPORTED_MODEL)


def is_payload(operation: object) -> bool:
    """Returns whether the argument OPERATION is a file: .mlir, a PyTorch model, or any text with a slash."""
    if not isinstance(operation, str):
        return False
    return operation.endswith(SUFFIX) or "/" in operation or is_model(operation)


class CampaignNumber(int):
    """The id of a campaign, typed as ``campaign:3``; an int, as the ids of runs are."""


class RunOrCampaign(click.ParamType[int]):
    """A click type: the number of a run, or ``campaign:N``, which becomes a CampaignNumber."""

    name = "run"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | CampaignNumber:
        text = str(value)
        if text.startswith(CAMPAIGN_PREFIX):
            digits: Any = text.removeprefix(CAMPAIGN_PREFIX)
            return CampaignNumber(click.INT.convert(digits, param, ctx))
        number: int = click.INT.convert(value, param, ctx)
        return number
