"""The work of ``tuner export`` of one problem: the script of a trial, or of no search, is written."""

import contextlib
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import screen_columns
from tuner.cli.options import backends_of, print_json
from tuner.core.candidate import AUTO
from tuner.core.errors import UsageError
from tuner.core.requests import RunRequest
from tuner.core.trials import StoredTrial
from tuner.models.library.format_names import DATA_FORMATS
from tuner.results.best_trials import best_stock
from tuner.results.exported_trial import exported, exported_files, require_bound, stock_file
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
    source_file,
)
from tuner.tuning.request import run_settings
from tuner.tuning.untuned import untuned_choice

if TYPE_CHECKING:
    from tuner.core.problem import Problem
    from tuner.db.store import Store
    from tuner.results.best_trials import BestStock
    from tuner.targets.backends import Backends


MLIR_OPT_NAMES = ("mlir-opt", "mlir-opt-23", "mlir-opt-22")  # of LLVM, of Debian's packages


def export_stored(
    context: click.Context,
    store: "Store",
    stored: StoredTrial,
    form: str,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Writes or prints a trial, or with --stock the best one of its problem that stock mlir-opt runs.

    ``form``: the format, one of TRIAL_FORMATS. ``output``: the file to write; None: print.
    """
    params = context.params
    is_stock = params["is_stock"]
    backends = backends_of(context)
    stock = _stock(store, stored, form, output, is_asked=is_stock)
    stock_trial: StoredTrial | None = None  # whose script goes next to that of ``stored``
    if stock is not None and is_stock:
        stored = stock.trial
    elif stock is not None:
        stock_trial = stock.trial
    _write(backends, store, stored, form, output, as_json, stock_trial, constants=params["constants"])
    _note_stock(stock, stored, form, output)
    if params["trial"] is None and not is_stock:
        _note(best_text(stored, store.run(stored.run)))
    _print_commands(stored, form, output, has_stock=stock_trial is not None)


def export_untuned(context: click.Context, problem: "Problem", output: Path | None, *, as_json: bool) -> None:
    """Writes or prints the script to use for a problem without a search; nothing is timed or stored."""
    params = context.params
    request = RunRequest(problem, target=params["target"] or AUTO, threads=params["threads"] or 1)
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


def _print_commands(trial: StoredTrial, form: str, script: Path | None, *, has_stock: bool) -> None:
    """Prints on stderr the commands that run a written script, and the stock script next to it.

    ``has_stock``: there is a stock script.
    """
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


def _stock(
    store: "Store", trial: StoredTrial, form: str, output: Path | None, *, is_asked: bool
) -> "BestStock | None":
    """Returns the best trial that stock mlir-opt runs, if it is to be written next to ``trial``; else None.

    It is if the user asks for it, or if a script is written that calls ops of tuner. Raises UsageError if it
    is asked for and there is none.
    """
    if not is_asked and (form != "script" or output is None or not custom_ops(trial.script_text)):
        return None
    try:
        return best_stock(store, trial)
    except UsageError:  # all scripts of the problem call tuner's ops, or no other is timed
        if is_asked:
            raise
        return None


def _write(
    backends: "Backends",
    store: "Store",
    trial: StoredTrial,
    form: str,
    output: Path | None,
    as_json: bool,
    stock_trial: StoredTrial | None,
    *,
    constants: bool,
) -> None:
    """Writes or prints a trial in the format ``form``.

    ``stock_trial``, if given, is written next to it, to FILE.stock.mlir.
    """
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
        if stock_trial is not None:
            files |= exported_files(backends, store, stock_trial, stock_file(output), constants=constants)
    else:
        files[output] = content
    if form == "script" and output is not None:
        _require_replaceable(output)
    for path, body in files.items():
        verb = "replaced" if form != "script" and path.is_file() else "wrote"
        write_atomically(path, body)
        print(f"{verb} {path}", file=sys.stderr)
    if output is not None and output.is_file():
        _clear_earlier(output, trial.id, has_stock=stock_trial is not None)
    if form == "cubin" and trial.record.status == "verified":
        print(f"note: trial {trial.id}: its PTX is verified; this machine code never ran", file=sys.stderr)
    if as_json and files:
        print_json({"trial": trial.id, "format": form, "files": list(map(str, files))})


def _require_replaceable(output: Path) -> None:
    """Raises UsageError for a file that is neither empty nor an exported script, such as a payload."""
    if not output.is_file() or not output.stat().st_size:
        return
    if not is_exported(output.read_text(errors="replace")):
        raise UsageError(
            f"{output}: exists, and is not a script that tuner exported", "-o another file, or remove it"
        )


def _clear_earlier(output: Path, trial: int, *, has_stock: bool) -> None:
    """Removes an earlier export's stock script next to ``output``, unless a stock script was written now.

    Prints a note if the JSON file next to ``output`` is of another trial.
    """
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
