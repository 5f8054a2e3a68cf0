"""``tuner export --format t4`` of several problems: a folder with a T4 file of all trials of each run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import open_known_store, print_json
from tuner.cli.run_session import settings_given
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.core.runs import Run

SUFFIX = ".t4.json.gz"
OF_RUNS = ("runs", "group", "form", "output", "database", "as_json", "debug")  # options that runs have


def export_runs_as_t4(
    context: click.Context,
    runs: tuple[int, ...],
    group: int | None,
    folder: Path | None,
    database: str | None,
    *,
    as_json: bool,
) -> None:
    """Writes all trials of each run into a folder, a T4 file per run, since T4 has one problem per file.

    The runs are ``runs`` and those of ``group``. Prints what was written, and which runs have no trials.
    Raises UsageError without a folder, for options that narrow the trials, for replays, and where no run has
    trials.
    """
    from tuner.core.runs import TrialQuery
    from tuner.output.folder_write import require_folder, write_folder
    from tuner.space.recorded.t4_writing import Recording, t4_bytes

    _require_runs_only(context)
    if folder is None:
        raise UsageError("--format t4: writes a file per run into a folder", "-o DIR")
    require_folder(folder)
    files: dict[str, bytes] = {}
    written: list[Run] = []
    with open_known_store(database) as store:
        if group is not None:
            runs += tuple(run.id for run in store.group(group).runs)
        for run in (store.run(number) for number in dict.fromkeys(runs)):
            trials = store.trials(TrialQuery(run=run.id, sort="number"))
            if not trials:
                print(f"note: run {run.id}: has no trials: {run.settings.problem.key}", file=sys.stderr)
                continue
            files[t4_name(run)] = t4_bytes(Recording((run,), trials), is_compressed=True)
            written.append(run)
    if not files:
        raise UsageError("t4: found no trials")
    paths = write_folder(folder, files)
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)
    if as_json:
        listed = [{"run": run.id, "file": str(path)} for run, path in zip(written, paths, strict=True)]
        print_json({"format": "t4", "files": [str(path) for path in paths], "runs": listed})


def t4_name(run: "Run") -> str:
    """Returns the name of a run's file: ``matmul_64x96x33_f32_nn_none_run3.t4.json.gz``."""
    problem = run.settings.problem.key.replace("->", "_to_").replace("=", "_")
    return f"{problem.replace(' ', '_')}_run{run.id}{SUFFIX}"


def _require_runs_only(context: click.Context) -> None:
    """Raises UsageError for options of one problem: all trials of a run are written."""
    operation = context.params["operation"]
    names = [name for name in context.params if name not in OF_RUNS]
    found = [*([] if operation is None else [operation]), *settings_given(context, names)]
    if found:
        option = "--group" if context.params["group"] is not None else "--run"
        raise UsageError(f"{option} cannot be combined with {', '.join(found)}: all trials are written")
