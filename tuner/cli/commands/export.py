"""``tuner export``: writes the best script or code for a problem as self-contained files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    open_known_store,
    print_json,
    problem_options,
    taken_problem,
)
from tuner.core.errors import UsageError
from tuner.library.formats import FORMATS as LIBRARY_FORMATS
from tuner.library.mlir_versions import VERSIONS

if TYPE_CHECKING:
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store
    from tuner.tuning.composition import Composition

FORMATS = ("script", "source", "payload", "ptx", "cubin", "json", "t4", *LIBRARY_FORMATS)
DATA_FORMATS = ("json", "t4")  # documents about a trial; the other formats are made from its script


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
@click.option("--group", type=int, help="Of several problems, and of t4: only results of this group.")
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
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="script: the bound transform script (default); source: the payload before it; payload: after it; "
    "ptx, cubin: what a GPU target made of it; json: the trial (default with --json); "
    "t4: its result as autotuners share it; library: one transform module of all problems that fit.",
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
@database_option
@json_option
@click.pass_context
def export(
    context: click.Context,
    /,
    trial: int | None,
    runs: tuple[int, ...],
    group: int | None,
    target: str | None,
    machine: str | None,
    threads: int | None,
    is_stock: bool,
    form: str | None,
    prefix: str | None,
    version: str | None,
    output: Path | None,
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Writes the best transform script of a problem, or that of a trial, or what --format names.

    The payload of a script written to FILE is written next to it: FILE with .source before the suffix. With
    --json the formats json (then the default) and t4 are printed as they are, the text of other formats as a
    field of a document; with --json and FILE the document names the files written.

    A format of several problems writes the best trial of each problem that fits the options that were
    typed, or of the runs of --run or --group, into a folder: tuner export --format library -o DIR. Format t4
    with --run or --group writes all trials of each run, a file per run.

    Example: tuner export matmul 512x512x512 -o best.mlir
    """
    from tuner.output.result import best_text
    from tuner.run_history.best_known import best_known
    from tuner.tuning.target_choice import AUTO

    if form is not None and form in LIBRARY_FORMATS:
        from tuner.cli.library_export import export_library

        if trial is not None:
            raise UsageError(f"--trial cannot be combined with --format {form}", "--run N")
        export_library(
            context,
            form,
            runs,
            group,
            version,
            output,
            database,
            stock_only=is_stock,
            prefix=prefix,
            as_json=as_json,
        )
        return
    if form == "t4" and (runs or group is not None):
        from tuner.cli.t4_export import export_runs_as_t4

        export_runs_as_t4(context, runs, group, output, database, as_json=as_json)
        return
    _refuse_options_of_libraries(runs, group, version, prefix)
    if trial is not None and arguments["operation"] is not None:
        found = f"--trial {trial} cannot be combined with {arguments['operation']}"
        raise UsageError(f"export: {found}: give one of them")
    if output is not None and not output.name:
        raise UsageError(f"{output}: is a folder, not a file to write")
    composition = composition_of(context)
    with open_known_store(database) as store:
        if trial is not None:
            stored = store.trial(trial)
        elif arguments["shape"] is not None:
            problem = taken_problem(arguments)
            stored = best_known(store, composition, problem, target or AUTO, threads, machine).best
        else:
            raise UsageError("export: the problem is missing", "give matmul 512x512x512, or --trial ID")
        form = form or ("json" if as_json else "script")
        if is_stock:
            _write_stock(composition, store, stored, form, output, as_json)
        else:
            _write(composition, store, stored, form, output, as_json)
            if trial is None:
                print(f"note: {best_text(stored, store.run(stored.run))}", file=sys.stderr)


def _refuse_options_of_libraries(
    runs: tuple[int, ...], group: int | None, version: str | None, prefix: str | None
) -> None:
    """Raises UsageError for options that a format of one problem does not take."""
    if prefix is not None:
        raise UsageError("--prefix needs --format c")
    if version is not None:
        raise UsageError("--for needs a format of several problems", "--format library")
    if runs or group is not None:
        option = "--run" if runs else "--group"
        raise UsageError(f"{option} needs a format of several problems", "--trial ID exports one trial")


def _write_stock(
    composition: "Composition",
    store: "Store",
    winner: "StoredTrial",
    form: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Writes the best script that stock mlir-opt runs, and prints how much slower than the winner it is."""
    from tuner.output.result import stock_text
    from tuner.run_history.best_stock import best_stock

    found = best_stock(store, winner)
    _write(composition, store, found.trial, form, output, as_json)
    print(f"note: {stock_text(found)}", file=sys.stderr)


def _write(
    composition: "Composition",
    store: "Store",
    trial: "StoredTrial",
    form: str,
    output: Path | None,
    as_json: bool,
) -> None:
    from tuner.run_history.exported import source_file, source_of

    content = _content(composition, store, trial, form, output)
    if output is None:
        _print(content, trial.id, form, as_json)
        _report_machine_code(trial, form)
        return
    files = [output]
    if form == "script" and (output.is_file() or not output.exists()):
        files.insert(0, source_file(output))
        _put(files[0], source_of(composition, trial).encode())
    _put(output, content)
    _report_machine_code(trial, form)
    if as_json:
        print_json({"trial": trial.id, "format": form, "files": [str(path) for path in files]})


def _content(
    composition: "Composition", store: "Store", trial: "StoredTrial", form: str, output: Path | None
) -> bytes:
    from tuner.run_history.exported import exported, require_bound

    if form == "json":
        import json

        from tuner.output.json_documents import trial_document

        require_bound(trial)
        return (json.dumps(trial_document(trial), indent=2, allow_nan=False) + "\n").encode()
    return exported(composition, store, trial, form, output)


def _report_machine_code(trial: "StoredTrial", form: str) -> None:
    """Prints a note for a cubin of which only the PTX is verified, because its machine code never ran."""
    if form == "cubin" and trial.record.status == "verified":
        print(f"note: trial {trial.id}: its PTX is verified; this machine code never ran", file=sys.stderr)


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


def _put(output: Path, content: bytes) -> None:
    from tuner.output.atomic_write import write_atomically

    write_atomically(output, content)
    print(f"wrote {output}", file=sys.stderr)
