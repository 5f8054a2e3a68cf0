"""``tuner export``, of one problem; of several by ``export_library``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, read_options
from tuner.cli.options import (
    OF_ONE_PROBLEM,
    backends_of,
    database_option,
    json_option,
    open_known_store,
    problem_options,
)
from tuner.cli.session import settings_given
from tuner.core.candidate import AUTO
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery
from tuner.models.library.commands.export_program import best_of_program, is_program
from tuner.models.library.format_names import TRIAL_FORMATS, VERSIONS, library_formats
from tuner.results.best_trials import best_known

if TYPE_CHECKING:
    from tuner.core.trials import StoredTrial
    from tuner.db.store import Store


EXPORT_FORMATS = (*TRIAL_FORMATS, *library_formats())
OF_UNTUNED = (*OF_ONE_PROBLEM, "target", "threads", "is_stock", "untuned", "output", "as_json", "debug")


@click.command()
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="[Bx]MxNxK")
@problem_options
@click.option("--trial", type=int, help="Export this trial instead of the best for a shape.")
@click.option(
    "--run",
    "runs",
    type=int,
    multiple=True,
    help="Of several problems: only results of this run; repeatable.",
)
@click.option("--campaign", type=int, help="Of several problems: only results of this campaign.")
@click.option("--target", help="Only results of this target.")
@click.option("--machine", help="Only results of this class of machine. Default: this one.")
@click.option("--threads", type=int, help="Only results with so many threads.")
@click.option(
    "--stock",
    "is_stock",
    is_flag=True,
    help="The best script that stock mlir-opt runs, and how much slower it is by the stored times.",
)
@click.option(
    "--untuned",
    is_flag=True,
    help="The script to use without a search: by the results that tuner ships, or by a model.",
)
@click.option(
    "--constants",
    is_flag=True,
    help="Of a script: sizes as constants in place of knobs, for tools without the extension transform.tune.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(EXPORT_FORMATS),
    metavar="FORMAT",
    help="script: the bound transform script (default); provenance: its problem and time; "
    "source: the payload before it; payload: after it; "
    "ptx, cubin: what a GPU target made of it; json: the trial (default with --json); "
    "library, c, iree: a library of all that fit.",
)
@click.option(
    "--for",
    "version",
    type=click.Choice(VERSIONS),
    help="Of several problems: write MLIR with the dialect names of this version. Default: those of mlir-23.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file; of several problems: into this folder.",
)
@click.option(
    "--prefix", help="Of format c: what the names of functions and files begin with; tuner unless given."
)
@click.option(
    "--merge",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="LIBRARY",
    help="Write one library with the entries of these of format library, of one machine; repeatable.",
)
@database_option
@json_option
@click.pass_context
def export(
    context: click.Context,
    /,
    merge: tuple[Path, ...],
    trial: int | None,
    runs: tuple[int, ...],
    campaign: int | None,
    target: str | None,
    machine: str | None,
    threads: int | None,
    is_stock: bool,
    untuned: bool,
    constants: bool,
    form: str | None,
    prefix: str | None,
    version: str | None,
    output: Path | None,
    database: str | None,
    as_json: bool,
    operation: str | None,
    **_options: Any,
) -> None:
    """Writes the best transform script of a problem, or that of a trial, or what --format names.

    Next to a script written to FILE its payload is written, FILE with .source before the suffix, and its
    provenance, FILE with .provenance.json for the suffix, which tuner check and --strategy read; a script
    that is printed has none: --format provenance. Where the script calls transform ops of tuner, the best
    one that stock mlir-opt runs is written as well: FILE with .stock before the suffix, and how much slower
    it is. A script replaces one that tuner exported, and no other file. With --json the formats json (then
    the default) and provenance are printed as they are, the text of other formats as a field of a
    document; with --json and FILE the document names the files written.

    A format of several problems writes the best trial of each problem that fits the options that were
    typed, or of the runs of --run or --campaign, into a folder: tuner export --format library -o DIR.
    Where two libraries of --merge have a schedule for the same contraction, both are timed interleaved here,
    and the faster one stays.

    OPERATION may be a program: the file that was tuned, if it was tuned for one problem.

    Example: tuner export matmul 512x512x512 -o best.mlir
    """
    if merge or untuned:
        _export_unstored(context, merge, output, as_json=as_json)
        return
    form = form or ("json" if as_json else "script")
    if constants and form != "script":
        raise UsageError(f"--constants cannot be combined with --format {form}", "--format script")
    if form not in TRIAL_FORMATS:
        if trial is not None:
            raise UsageError(f"--trial cannot be combined with --format {form}", "--run N")
        if output is None:
            raise UsageError(f"--format {form}: writes several files into a folder", "-o DIR")
        from tuner.models.library.commands.export_library import (
            export_library,  # loads MLIR: the options are right
        )

        export_library(
            *(context, form, runs, campaign, version, output, database),
            stock_only=is_stock,
            prefix=prefix,
            as_json=as_json,
        )
        return
    _refuse_options_of_libraries(runs, campaign, version, prefix)
    if trial is not None and operation is not None:
        both = f"--trial {trial} cannot be combined with {operation}"
        raise UsageError(f"export: {both}: give one of them")
    if output is not None and not output.name:
        raise UsageError(f"{output}: is a folder, not a file to write")
    query = (target or AUTO, threads, machine)
    problem = None if trial is not None else _typed_problem(context)
    with open_known_store(database, _tune_command(operation, problem)) as store:
        stored = _best(context, store, problem, *query) if trial is None else store.trial(trial)
        from tuner.models.library.commands.exported import (
            export_stored,  # not before it is found: takes long to load
        )

        export_stored(context, store, stored, form, output, as_json=as_json)


def _export_unstored(
    context: click.Context,
    merge: tuple[Path, ...],
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Writes what no database is read for: merged libraries, or the script of a problem without a search."""
    if merge:
        _refuse_options_with_merge(context)
        if output is None:
            raise UsageError("--merge: writes a library", "-o FILE")
        from tuner.models.library.commands.export_library import (
            export_merged,  # loads MLIR: the options are right
        )

        export_merged(merge, output, as_json=as_json)
        return
    others = settings_given(context, context.params.keys() - {*OF_UNTUNED, "operation", "shape"})
    if others:
        raise UsageError(f"--untuned cannot be combined with {others[0]}")
    options = read_options(ProblemOptions, context)
    if options.shape is None:
        raise UsageError("export: the problem is missing", "give matmul 512x512x512")
    problem = options.problem
    from tuner.models.library.commands.exported import (
        export_untuned,  # loads the strategies: the options are right
    )

    export_untuned(context, problem, output, as_json=as_json)


def _refuse_options_with_merge(context: click.Context) -> None:
    given = [context.params["operation"]] if context.params["operation"] else []
    given += settings_given(context, context.params.keys() - {"merge", "output", "as_json", "debug"})
    if given:
        raise UsageError(
            f"--merge cannot be combined with {given[0]}", "--merge LIBRARY --merge LIBRARY -o FILE"
        )


def _refuse_options_of_libraries(
    runs: tuple[int, ...], campaign: int | None, version: str | None, prefix: str | None
) -> None:
    if prefix is not None:
        raise UsageError("--prefix needs --format c")
    if version is not None:
        raise UsageError("--for needs a format of several problems", "--format library")
    if runs or campaign is not None:
        option = "--run" if runs else "--campaign"
        raise UsageError(f"{option} needs a format of several problems", "--trial ID exports one trial")


def _typed_problem(context: click.Context) -> Problem | None:
    """Returns the problem that was typed; None for a program. Raises UsageError where there is neither."""
    options = read_options(ProblemOptions, context)
    if options.shape is not None:
        return options.problem
    if is_program(options.operation):
        return None
    hint = "give matmul 512x512x512, PROGRAM.mlir, or --trial ID"
    raise UsageError("export: the problem is missing", hint)


def _tune_command(operation: str | None, problem: Problem | None) -> str:
    """Returns the command that tunes the problem to export, for a hint; "" if a trial's id was given."""
    if problem is not None:
        return tune_command(TaskQuery.of(problem))
    if operation is None:
        return ""
    return f"tuner tune {shlex.quote(operation)}"


def _best(
    context: click.Context,
    store: "Store",
    problem: Problem | None,
    target: str,
    threads: int | None,
    machine: str | None,
) -> "StoredTrial":
    """Returns the best trial of ``problem``.

    For None, of the only problem of the program on the command line.
    """
    backends = backends_of(context)
    if problem is None:
        return best_of_program(store, backends, context.params["operation"], target, threads, machine)
    return best_known(store, backends, problem, target, threads, machine).best
