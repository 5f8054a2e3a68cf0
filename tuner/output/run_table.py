"""Runs as a table for people."""

from typing import TYPE_CHECKING

from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import table_lines, varying_columns
from tuner.output.formatting import problem_text, wrapped
from tuner.output.json_documents import gflop_per_s

if TYPE_CHECKING:
    from tuner.tuning.tuned_run import TunedRun

HEADER = ("run", "begun", "problem", "target", "status", "trials", "failed", "best", "reliability", "GFLOP/s")
MAY_BE_SHARED = ("problem", "target")  # columns of HEADER
SPARED = ("failed", "GFLOP/s", "begun", "trials")  # columns that a narrow terminal loses first


def runs_table(runs: "tuple[TunedRun, ...]", columns: int | None = None) -> list[str]:
    """Returns a table of one or more runs, one per line.

    A problem or target that is equal in all of several runs is stated once below. ``columns``: the width of
    the terminal in characters; None without a limit.
    """
    header, rows, shared = varying_columns(HEADER, [_row(tuned) for tuned in runs], MAY_BE_SHARED)
    return [*table_lines(header, rows, columns, SPARED), *wrapped(shared, columns)]


def _row(tuned: "TunedRun") -> tuple[str, ...]:
    run = tuned.run
    best_s = None if tuned.selected is None else tuned.selected.measurement.median_s
    speed = gflop_per_s(run.settings.problem, best_s)
    return (
        str(run.id),
        f"{run.created:%Y-%m-%d}",
        problem_text(run.settings.problem),
        run.settings.target.text,
        run.status,
        str(tuned.counts.proposed),
        str(tuned.counts.failed),
        "-" if best_s is None else seconds_text(best_s),
        "-" if tuned.selected is None else tuned.selected.best.reliability.word,
        "-" if speed is None else f"{speed:.1f}",
    )
