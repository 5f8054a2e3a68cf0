"""``tuner export``, of one problem; of several by ``export_library``."""

import contextlib
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, read_options
from tuner.cli.main import screen_columns
from tuner.cli.options import (
    OF_ONE_PROBLEM,
    backends_of,
    database_option,
    json_option,
    open_known_store,
    print_json,
    problem_options,
)
from tuner.cli.session import settings_given
from tuner.core.candidate import AUTO
from tuner.core.errors import UsageError
from tuner.core.requests import RunRequest
from tuner.core.trials import StoredTrial
from tuner.library.commands.export_library import export_library, export_merged, export_runs_as_t4
from tuner.library.commands.export_program import best_of_program, is_program
from tuner.library.formats import DATA_FORMATS, TRIAL_FORMATS, library_formats
from tuner.library.library import VERSIONS
from tuner.results.best_trials import best_known, best_stock
from tuner.results.exported_trial import exported, exported_files, require_bound, source_file, stock_file
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import wrapped
from tuner.results.output.json_documents import trial_document
from tuner.results.output.run_result import best_text, stock_text
from tuner.space.scripts.header import (
    custom_ops,
    is_exported,
    provenance_file,
    provenance_text,
    run_command,
    script_with_header,
)

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.results.best_trials import BestStock
    from tuner.targets.backends import Backends


MLIR_OPT_NAMES = ("mlir-opt", "mlir-opt-23", "mlir-opt-22")  # of LLVM, of Debian's packages
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
    help="Of several problems, and of t4: only results of this run; repeatable.",
)
@click.option("--campaign", type=int, help="Of several problems, and of t4: only results of this campaign.")
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
    "t4: its result as autotuners share it; library, c, iree, lighthouse: a library of all that fit.",
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
    the default), provenance and t4 are printed as they are, the text of other formats as a field of a
    document; with --json and FILE the document names the files written.

    A format of several problems writes the best trial of each problem that fits the options that were
    typed, or of the runs of --run or --campaign, into a folder: tuner export --format library -o DIR. Format
    t4 with --run or --campaign writes all trials of each run, a file per run. Where two libraries of --merge
    have a schedule for the same contraction, both are timed interleaved here, and the faster one stays.

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
        export_library(
            *(context, form, runs, campaign, version, output, database),
            stock_only=is_stock,
            prefix=prefix,
            as_json=as_json,
        )
        return
    if form == "t4" and (runs or campaign is not None):
        export_runs_as_t4(context, runs, campaign, output, database, as_json=as_json)
        return
    _refuse_options_of_libraries(runs, campaign, version, prefix)
    if trial is not None and operation is not None:
        both = f"--trial {trial} cannot be combined with {operation}"
        raise UsageError(f"export: {both}: give one of them")
    if output is not None and not output.name:
        raise UsageError(f"{output}: is a folder, not a file to write")
    backends = backends_of(context)
    with open_known_store(database) as store:
        problem = read_options(ProblemOptions, context)
        query = (target or AUTO, threads, machine)
        stored = store.trial(trial) if trial is not None else _best(store, backends, problem, *query)
        stock = _stock(store, stored, form, output, is_asked=is_stock)
        if stock is not None and is_stock:
            stored = stock.trial
        other = None if stock is None or is_stock else stock.trial
        _write(backends, store, stored, form, output, as_json, other, constants=constants)
        _note_stock(stock, stored, form, output)
        if trial is None and not is_stock:
            _note(best_text(stored, store.run(stored.run)))
        _print_commands(stored, form, output, has_stock=other is not None)


def _export_unstored(
    context: click.Context,
    merge: tuple[Path, ...],
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Writes what no database is read for: merged libraries, or the script of a problem without a search."""
    if not merge:
        _export_untuned(context, output, as_json=as_json)
        return
    _refuse_options_with_merge(context)
    export_merged(merge, output, as_json=as_json)


def _export_untuned(context: click.Context, output: Path | None, *, as_json: bool) -> None:
    """Writes or prints the script that a problem has without a search; nothing is timed or stored."""
    from tuner.tuning.request import run_settings  # not at start-up
    from tuner.tuning.untuned import untuned_choice  # loads the strategies

    others = settings_given(context, context.params.keys() - {*OF_UNTUNED, "operation", "shape"})
    if others:
        raise UsageError(f"--untuned cannot be combined with {others[0]}")
    options = read_options(ProblemOptions, context)
    if options.shape is None:
        raise UsageError("export: the problem is missing", "give matmul 512x512x512")
    params = context.params
    request = RunRequest(options.problem, target=params["target"] or AUTO, threads=params["threads"] or 1)
    backends = backends_of(context)
    choice = untuned_choice(run_settings(request, backends), backends, is_stock=params["is_stock"])
    script = choice.script.text
    ops = custom_ops(choice.script.text)
    file = Path("best.mlir") if output is None else output
    text = script_with_header(script, choice.provenance, ops, file.name, source_file(file).name)
    if output is not None:
        source = backends.target(choice.settings.target).source(request.problem, script)
        files = {
            source_file(output): source,
            provenance_file(output): provenance_text(choice.provenance),
            output: text,
        }
        _require_replaceable(output)
        for path, body in files.items():
            write_atomically(path, body.encode())
            print(f"wrote {path}", file=sys.stderr)
    if as_json:
        print_json(choice.document | ({"text": text} if output is None else {"file": str(output)}))
    elif output is None:
        print(text, end="")
    _note(choice.text)
    if output is not None:
        command = _run_command(output, is_stock=not ops)
        print(f"run {output.name} by:\n  {command}", file=sys.stderr)


def _refuse_options_with_merge(context: click.Context) -> None:
    given = [context.params["operation"]] if context.params["operation"] else []
    given += settings_given(context, context.params.keys() - {"merge", "output", "as_json", "debug"})
    if given:
        raise UsageError(
            f"--merge cannot be combined with {given[0]}", "--merge LIBRARY --merge LIBRARY -o FILE"
        )


def _print_commands(trial: StoredTrial, form: str, script: Path | None, *, has_stock: bool) -> None:
    """Prints on stderr the commands that run a written script, and the stock one next to it."""
    if form != "script" or script is None or not script.is_file():
        return
    is_portable = not custom_ops(trial.script_text)
    for file, is_stock in ((script, is_portable), *([(stock_file(script), True)] if has_stock else [])):
        print(f"run {file.name} by:\n  {_run_command(file, is_stock=is_stock)}", file=sys.stderr)


def _run_command(script: Path, *, is_stock: bool) -> str:
    mlir_opt = next(filter(shutil.which, MLIR_OPT_NAMES), MLIR_OPT_NAMES[0])
    paths = (shlex.quote(str(path)) for path in (script, source_file(script)))
    return run_command(*paths, is_stock=is_stock, mlir_opt=mlir_opt)


def _note_stock(stock: "BestStock | None", trial: StoredTrial, form: str, output: Path | None) -> None:
    if stock is not None:
        _note(stock_text(stock))
    elif form == "script" and output is not None and custom_ops(trial.script_text):
        why = "every timed script of the problem calls ops of tuner"
        _note(f"no {stock_file(output).name}: {why}")


def _note(text: str) -> None:
    print("\n".join(wrapped([f"note: {text}"], screen_columns())), file=sys.stderr)


def _best(
    store: "Store",
    backends: "Backends",
    options: ProblemOptions,
    target: str,
    threads: int | None,
    machine: str | None,
) -> StoredTrial:
    if options.shape is None and options.operation is not None and is_program(options.operation):
        return best_of_program(store, backends, options.operation, target, threads, machine)
    if options.shape is None:
        hint = "give matmul 512x512x512, PROGRAM.mlir, or --trial ID"
        raise UsageError("export: the problem is missing", hint)
    return best_known(store, backends, options.problem, target, threads, machine).best


def _stock(
    store: "Store", trial: StoredTrial, form: str, output: Path | None, *, is_asked: bool
) -> "BestStock | None":
    """Returns the best trial that stock mlir-opt runs, if asked or if a script to write calls tuner's ops.

    Raises UsageError where it was asked for and there is none.
    """
    if not is_asked and (form != "script" or output is None or not custom_ops(trial.script_text)):
        return None
    try:
        return best_stock(store, trial)
    except UsageError:  # all scripts of the problem call tuner's ops, or no other is timed
        if is_asked:
            raise
        return None


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


def _write(
    backends: "Backends",
    store: "Store",
    trial: StoredTrial,
    form: str,
    output: Path | None,
    as_json: bool,
    stock: StoredTrial | None = None,
    *,
    constants: bool,
) -> None:
    """Writes or prints a trial in a form; the script of ``stock`` goes next to it, as FILE.stock.mlir."""
    if form == "json":
        require_bound(trial)
        content = (json.dumps(trial_document(trial), indent=2, allow_nan=False) + "\n").encode()
    else:
        content = exported(backends, store, trial, form, output, constants=constants)
    files: dict[Path, bytes] = {}
    if output is None:
        _print(content, trial.id, form, as_json)
    elif form == "script" and (output.is_file() or not output.exists()):
        files = exported_files(backends, store, trial, output, constants=constants)
        if stock is not None:
            files |= exported_files(backends, store, stock, stock_file(output), constants=constants)
    else:
        files[output] = content
    if form == "script" and output is not None:
        _require_replaceable(output)
    for path, body in files.items():
        verb = "replaced" if form != "script" and path.is_file() else "wrote"
        write_atomically(path, body)
        print(f"{verb} {path}", file=sys.stderr)
    if output is not None and output.is_file():
        _clear_earlier(output, trial.id, has_stock=stock is not None)
    if form == "cubin" and trial.record.status == "verified":
        print(f"note: trial {trial.id}: its PTX is verified; this machine code never ran", file=sys.stderr)
    if as_json and files:
        print_json({"trial": trial.id, "format": form, "files": list(map(str, files))})


def _require_replaceable(output: Path) -> None:
    """Raises UsageError for a file with other content than an exported script, such as a payload."""
    if not output.is_file() or not output.stat().st_size:
        return
    if not is_exported(output.read_text(errors="replace")):
        raise UsageError(
            f"{output}: exists, and is not a script that tuner exported", "-o another file, or remove it"
        )


def _clear_earlier(output: Path, trial: int, *, has_stock: bool) -> None:
    """Removes the stock script of an earlier export next to ``output``; names another trial's JSON."""
    stock = stock_file(output)
    document = output.with_suffix(".json")
    if not has_stock and stock.is_file() and is_exported(stock.read_text(errors="replace")):
        for path in (source_file(stock), provenance_file(stock), stock):
            path.unlink(missing_ok=True)
        print(f"removed {stock} and the files of it, of an earlier export", file=sys.stderr)
    with contextlib.suppress(OSError, ValueError, AttributeError):
        earlier = json.loads(document.read_text()).get("trial", trial)
        if document != output and earlier != trial:
            print(f"note: {document} is of an earlier export: trial {earlier}, not {trial}", file=sys.stderr)


def _print(content: bytes, trial: int, form: str, as_json: bool) -> None:
    if form == "cubin":
        if as_json:
            raise UsageError("cubin: machine code cannot be printed as JSON", "-o FILE")
        if sys.stdout.isatty():
            raise UsageError("cubin: refusing to write machine code to a terminal", "-o FILE")
        sys.stdout.buffer.write(content)
    elif as_json and form not in DATA_FORMATS:
        print_json({"trial": trial, "format": form, "text": content.decode()})
    else:
        print(content.decode(), end="")
