"""``tuner gate``: fails in CI if kernels have become slower."""

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    open_known_store,
    parse_number,
    parse_share,
    print_found,
    seed_option,
)
from tuner.cli.screen import screen_columns
from tuner.core.errors import TunerError, UsageError
from tuner.core.version import __version__
from tuner.output.atomic_write import write_atomically
from tuner.output.formatting import count_text

if TYPE_CHECKING:
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store
    from tuner.regression.gate_file import GateEntry, GateFile
    from tuner.tuning.composition import Composition

BEST = "best"


@click.command()
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The kernels to watch, with their code, which is run: use no untrusted file.",
)
@click.option(
    "--record",
    "recorded",
    multiple=True,
    metavar="ID",
    help="Put this trial into the file as it is compiled today, or 'best': all best trials of this machine.",
)
@click.option(
    "--max-slowdown", default="2%", show_default=True, metavar="SHARE", help="A slowdown of so much passes."
)
@click.option(
    "--summary", type=click.Path(path_type=Path), metavar="FILE", help="Write the Markdown to this file too."
)
@seed_option("Of the random inputs.")
@database_option
@json_option
@click.pass_context
def gate(
    context: click.Context,
    baseline: Path,
    recorded: tuple[str, ...],
    max_slowdown: str,
    summary: Path | None,
    seed: int,
    database: str | None,
    as_json: bool,
) -> None:
    """Compiles recorded kernels again and times them interleaved with their recorded code, for CI.

    With --record it writes kernels into the file instead. Prints Markdown, on a terminal a table. Exits with
    1 where code is shown to be slower by more than --max-slowdown and the noise, is wrong, or cannot be
    compared; a kernel whose times are too noisy to decide passes, with a note.

    Example: tuner gate --baseline gate.json --record best, then in CI: tuner gate --baseline gate.json
    """
    composition = composition_of(context)
    if recorded:
        _record(composition, baseline, recorded, database, as_json)
        return
    from tuner.analysis.paired_slowdown import SlowdownLimits
    from tuner.cli.gate_summary import gate_document, gate_line, gate_markdown, gate_table
    from tuner.regression.gate import check_entry
    from tuner.regression.gate_file import read_gate_file

    limits = SlowdownLimits(tolerated=parse_share(max_slowdown))
    results = []
    for entry in read_gate_file(baseline).entries:
        results.append(check_entry(composition, entry, limits, seed))
        print(gate_line(results[-1]), file=sys.stderr)
    found = tuple(results)
    if summary is not None and summary != Path():  # empty where a variable of CI is not set
        write_atomically(summary, f"{gate_markdown(found)}\n".encode())
    columns = screen_columns()
    lines = (gate_markdown(found),) if columns is None else gate_table(found, columns)
    print_found(as_json, gate_document(found), *lines)
    context.exit(DONE if all(result.status.passes for result in found) else FAILED)


def _record(
    composition: "Composition", file: Path, arguments: tuple[str, ...], database: str | None, as_json: bool
) -> None:
    """Writes trials to the baseline file; a trial replaces an earlier entry of the same problem."""
    from tuner.regression.gate_file import gate_file_bytes

    with open_known_store(database) as store:
        found = _entries(composition, store, arguments)
    entries = tuple(found.values())
    content = _earlier(file).with_entries(entries)
    write_atomically(file, gate_file_bytes(content))
    for trial, entry in found.items():
        print(f"recorded {entry.key}: trial {trial}", file=sys.stderr)
    print_found(
        as_json,
        {"file": str(file), "recorded": len(entries), "entries": len(content.entries)},
        f"recorded {count_text(len(entries), 'kernel')}; {file} has {len(content.entries)}",
    )


def _entries(
    composition: "Composition", store: "Store", arguments: tuple[str, ...]
) -> "dict[int, GateEntry]":
    """Returns the entry of each trial, by its id; skips a best trial that no longer compiles, with a note."""
    from tuner.regression.gate import recorded_entry

    named = {text for text in arguments if text != BEST}
    entries = {}
    for trial in _trials(composition, store, arguments):
        try:
            entries[trial.id] = recorded_entry(composition, store, trial)
        except TunerError as error:
            if str(trial.id) in named:
                raise
            print(f"note: skipped {error}", file=sys.stderr)
    return entries


def _trials(composition: "Composition", store: "Store", arguments: tuple[str, ...]) -> "list[StoredTrial]":
    from tuner.core.runs import TaskQuery, TrialQuery
    from tuner.run_history.best_known import best_trials_here
    from tuner.tuning.advice import tune_command

    trials: list[StoredTrial] = []
    for text in arguments:
        found = (
            best_trials_here(store, composition, TrialQuery())
            if text == BEST
            else (store.trial(parse_number(text)),)
        )
        if not found:
            line = "record: nothing was timed on this machine"
            raise UsageError(line, tune_command(TaskQuery()))
        trials += found
    return list({trial.id: trial for trial in trials}.values())


def _earlier(file: Path) -> "GateFile":
    from tuner.regression.gate_file import GateFile, read_gate_file

    now = datetime.datetime.now(datetime.UTC)
    return read_gate_file(file) if file.exists() else GateFile(now, __version__, ())
