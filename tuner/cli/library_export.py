"""``tuner export`` in a format of several problems: a folder of files for the best trial of each."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tuner.cli.options import composition_of, open_known_store, print_json
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.library.formats import FORMATS, STOCK_FORMATS, Writer

if TYPE_CHECKING:
    from tuner.core.runs import TaskQuery
    from tuner.db.store import Store
    from tuner.library.entries import LibraryEntries

GPU_FORMATS = ("c",)  # others have schedules for CPUs alone
WITH_DEFAULTS = ("align", "cache")  # options whose defaults narrow the results as well
FROM_TYPED = ("operation", "shape", "dtype", "layout", "epilogue", "target", "machine", "threads")


def export_library(
    context: click.Context,
    form: str,
    runs: tuple[int, ...],
    group: int | None,
    version: str | None,
    folder: Path | None,
    database: str | None,
    *,
    stock_only: bool,
    prefix: str | None,
    as_json: bool,
) -> None:
    """Writes the best trial of each problem that fits the options into a folder; prints what was written.

    An option that was not typed does not narrow the problems, except --align and --cache, and --threads,
    which is 1 then; with --run and --group these do not narrow either. Raises UsageError where nothing can be
    exported.
    """
    from tuner.library.mlir_versions import for_version
    from tuner.output.folder_write import require_folder, write_folder

    if prefix is not None and form != "c":
        raise UsageError(f"--prefix cannot be combined with --format {form}: it begins names of C")
    if folder is None:
        raise UsageError(f"--format {form}: writes several files into a folder", "-o DIR")
    require_folder(folder)  # entries may take minutes
    with open_known_store(database) as store:
        if group is not None:
            runs += tuple(run.id for run in store.group(group).runs)
        task = _task(context, bool(runs))
        if form in GPU_FORMATS and _is_on_gpu(store, task, runs):
            found = _gpu_entries(store, task, runs)
        else:
            found = _cpu_entries(context, store, task, runs, form, stock_only=stock_only)
    files = _writer(form, prefix)(found.entries)
    if version is not None:
        files = tuple(for_version(version, file) for file in files)
    paths = write_folder(folder, {file.name: file.content for file in files})
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    noted = "not timed" if found.entries[0].machine.chip else "left out, or not by the fastest script"
    print(_count_text(len(found.entries), len(found.notes), noted), file=sys.stderr)
    if as_json:
        print_json(_document(form, paths, found))


def _is_on_gpu(store: "Store", task: "TaskQuery", runs: tuple[int, ...]) -> bool:
    """Returns whether the target, or that of the first run where none is given, is a GPU or a simulator."""
    if task.target is not None:
        return not TargetName.parse(task.target).is_on_cpu
    return bool(runs) and not store.run(runs[0]).settings.target.is_on_cpu


def _cpu_entries(
    context: click.Context,
    store: "Store",
    task: "TaskQuery",
    runs: tuple[int, ...],
    form: str,
    *,
    stock_only: bool,
) -> "LibraryEntries":
    from tuner.library.entries import library_entries

    composition = composition_of(context)
    if form not in STOCK_FORMATS:
        return library_entries(store, composition, task, runs, stock_only=stock_only)
    from tuner.library.library_format import suitable

    return suitable(library_entries(store, composition, task, runs, stock_only=True))


def _gpu_entries(store: "Store", task: "TaskQuery", runs: tuple[int, ...]) -> "LibraryEntries":
    from tuner.library.gpu_entries import gpu_entries

    return gpu_entries(store, task, runs)


def _writer(form: str, prefix: str | None) -> Writer:
    """Returns the writer of a format; ``prefix``: of names of C, None for the default."""
    if prefix is None:
        return FORMATS[form]()
    from tuner.library.c.writer import c_files

    return partial(c_files, prefix=prefix)


def _task(context: click.Context, has_runs: bool) -> "TaskQuery":
    """Returns the conditions that the options of the command set on problems, threads and machine."""
    from tuner.run_history.past_runs import asked_query

    typed = {name: context.params[name] for name in FROM_TYPED if _is_typed(context, name)}
    if _is_typed(context, "output_dtype"):
        typed["output"] = context.params["output_dtype"]
    for name in WITH_DEFAULTS:
        if _is_typed(context, name) or not has_runs:
            typed[name] = context.params[name]
    if not has_runs:
        typed.setdefault("threads", 1)
    return asked_query(**typed).task


def _is_typed(context: click.Context, name: str) -> bool:
    return (
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name] is not None
    )


def _count_text(entries: int, notes: int, noted: str) -> str:
    """Returns the last line of the export: how many problems the library has."""
    problems = f"{entries} problem{'s' * (entries != 1)}"
    return f"exported {problems}" + f"; {notes} {noted}, see the notes" * bool(notes)


def _document(form: str, paths: tuple[Path, ...], found: "LibraryEntries") -> dict[str, Any]:
    from tuner.analysis.comparison import ratio_document
    from tuner.output.json_documents import problem_document

    return {
        "format": form,
        "files": [str(path) for path in paths],
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
