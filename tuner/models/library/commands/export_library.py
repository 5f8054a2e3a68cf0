"""``tuner export`` of several problems: libraries of their best trials, merged libraries."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.analysis.ratios import ratio_document
from tuner.cli.forms import ProblemOptions, read_options
from tuner.cli.options import (
    OF_WEIGHTS,
    backends_of,
    is_typed,
    note_unknown_problems,
    open_known_store,
    print_json,
)
from tuner.core.candidate import AUTO, TargetName
from tuner.core.errors import UsageError
from tuner.core.queries import TaskQuery
from tuner.core.serialization import count_text, encode
from tuner.core.text_files import read_text
from tuner.models.library.entries import gpu_entries, library_entries
from tuner.models.library.format_names import library_formats
from tuner.models.library.formats import library_format
from tuner.models.library.library import LibraryText, for_version, merged, suitable
from tuner.results.output.files import require_folder, write_atomically, write_folder
from tuner.results.output.json_documents import problem_document
from tuner.results.queries import trial_query
from tuner.results.tuned_range import range_of
from tuner.runtime.extensions import failing_in
from tuner.targets.backends import named_target

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.models.library.entries import LibraryEntries
    from tuner.models.library.formats import ExportFormat

FROM_TYPED = (
    *("operation", "shape", "dtype", "math", "layout", "epilogue", "align", "cache"),
    *("target", "machine", "threads"),
)


def export_library(
    context: click.Context,
    form: str,
    runs: tuple[int, ...],
    campaign: int | None,
    version: str | None,
    folder: Path,
    database: str | None,
    *,
    stock_only: bool,
    prefix: str | None,
    as_json: bool,
) -> None:
    """Writes the best trial of each problem that fits the options into ``folder``, in the format ``form``.

    An option that was not typed does not narrow the problems, except --align, --cache and --threads (1); with
    --run and --campaign these do not narrow either. Prints the files and notes. Raises UsageError without a
    folder, and where nothing fits.
    """
    written_as = library_format(form)
    if prefix is not None and not written_as.takes_prefix:
        raise UsageError(f"--prefix cannot be combined with --format {form}: it begins names of C")
    require_folder(folder)  # entries may take minutes
    with open_known_store(database) as store:
        row_range = None
        if campaign is not None:
            stored = store.campaign(campaign)
            runs += tuple(run.id for run in stored.runs)
            row_range = range_of(stored)  # its entries then serve each m of the range, tuned or not
        note_unknown_problems(store)
        found = _library_entries(context, store, written_as, runs, stock_only=stock_only)
        if row_range is not None:
            found = found.of_range(row_range)
    with failing_in(library_formats().get(form), f"format {form!r}"):
        files = tuple(written_as.files(found.entries, prefix))
        if version is not None:
            files = tuple(for_version(version, file) for file in files)
        contents = {file.name: file.content for file in files}
    paths = write_folder(folder, contents)
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    is_on_gpu = bool(found.entries[0].machine.chip)  # all entries are, or none
    noted = "left out, or not by the fastest script"
    if is_on_gpu:  # their notes name trials that were verified but not timed
        noted = "not timed"
    see_notes = f"; {len(found.notes)} {noted}, see the notes" if found.notes else ""
    print(f"exported {count_text(len(found.entries), 'problem')}{see_notes}", file=sys.stderr)
    if as_json:
        print_json(_document(form, paths, found))


def _library_entries(
    context: click.Context,
    store: "Store",
    written_as: "ExportFormat",
    runs: tuple[int, ...],
    *,
    stock_only: bool,
) -> "LibraryEntries":
    backends = backends_of(context)
    task = _task(context, bool(runs))
    if task.target is not None and written_as.takes_gpu_entries:
        named_target(task.target, backends)  # refuses one that is not there
    if written_as.takes_gpu_entries and _is_on_gpu(store, task, runs):
        return gpu_entries(store, task, runs)
    if written_as.is_stock:
        return suitable(library_entries(store, backends, task, runs, stock_only=True))
    packs_weights = written_as.packs_weights
    return library_entries(store, backends, task, runs, stock_only=stock_only, packs_weights=packs_weights)


def _is_on_gpu(store: "Store", task: TaskQuery, runs: tuple[int, ...]) -> bool:
    if task.target is not None:
        return not TargetName.parse(task.target).is_on_cpu
    return bool(runs) and not store.run(runs[0]).settings.target.is_on_cpu


def _task(context: click.Context, has_runs: bool) -> TaskQuery:
    params = context.params
    typed = {
        name: params[name] for name in FROM_TYPED if is_typed(context, name) and params[name] is not None
    }
    if typed.get("target") == AUTO:
        del typed["target"]
    if is_typed(context, "output_dtype"):
        typed["output"] = params["output_dtype"]
    if not has_runs:  # the defaults of these narrow the results as well
        typed = {"align": params["align"], "cache": params["cache"], "threads": 1} | typed
    if any(is_typed(context, name) for name in OF_WEIGHTS):
        return _task_of_weights(context, typed)
    return trial_query(**typed).task


def _task_of_weights(context: click.Context, typed: dict[str, Any]) -> TaskQuery:
    """Returns the query of one problem by quantized weights; columns of the database lack these options."""
    params = context.params
    if params["operation"] is None or params["shape"] is None:
        line = "options of weights need the operation and the shape with a format of several problems"
        raise UsageError(line, f"matmul 1x4096x4096 --weights {params['weights'] or 'i4'}, or --run N")
    narrower = {name: typed[name] for name in ("target", "machine", "threads") if name in typed}
    return TaskQuery.of(read_options(ProblemOptions, context).problem, **narrower)


def _document(form: str, paths: tuple[Path, ...], found: "LibraryEntries") -> dict[str, Any]:
    return {
        "format": form,
        "files": list(map(str, paths)),
        "entries": [
            {
                "problem": problem_document(entry.problem),
                "trial": entry.trial,
                "strategy": entry.candidate.strategy,
                "knobs": dict(entry.candidate.choices),
                "threads": entry.threads,
                "median_s": entry.median_s,
                "baseline": entry.baseline,
                "reliability": entry.reliability.text,
                "baseline_s": entry.baseline_s,
                **ratio_document(entry.compared),
            }
            for entry in found.entries
        ],
        "notes": list(found.notes),
    }


def export_merged(libraries: tuple[Path, ...], output: Path, *, as_json: bool) -> None:
    """Writes one library with the entries of several libraries of one machine.

    Where two have a schedule for the same contraction, both are timed interleaved, and the faster one stays.
    """
    whole = merged(tuple(LibraryText(str(path), read_text(path, "MLIR text")) for path in libraries))
    write_atomically(output, whole.text.encode())
    for duel in whole.duels:
        print(duel.line, file=sys.stderr)
    print(f"wrote {output}: {whole.entries} entries", file=sys.stderr)
    if as_json:
        duels = list(map(encode, whole.duels))
        print_json({"files": [str(output)], "entries": whole.entries, "compared": duels})
