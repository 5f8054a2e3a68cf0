"""The result of a group of runs: a table of its problems, and the JSON document."""

from tuner.core.runs import StoredTrial
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import Row, table_lines
from tuner.output.formatting import count_text, knobs_text, speed_text
from tuner.output.json_documents import Document, gflop_per_s, tune_document
from tuner.tuning.many_shapes.tuned_group import TunedGroup
from tuner.tuning.tuned_run import TunedRun

HEADER: Row = (
    *("run", "name", "problem", "count", "trials", "time", "reliability", "share", "GFLOP/s"),
    "strategy and knobs",
)
SPARED = ("name", "share", "GFLOP/s", "trials")  # columns that a narrow terminal loses first


def group_lines(tuned: TunedGroup, columns: int | None = None, database_text: str = "") -> list[str]:
    """Returns the result of a group as lines: a table with a row per problem, totals, commands to type.

    ``columns``: width of the terminal; None without a limit. ``database_text``: the ``--db`` option of the
    commands, with a leading space; "" for the default database.
    """
    total_s = tuned.total_s
    doubt = "" if tuned.reliability.is_reliable else f" ({tuned.reliability.text})"
    counted = zip(tuned.runs, tuned.counts, strict=True)
    rows = [_row(each, count, total_s, is_whole=not doubt) for each, count in counted]
    calls = sum(tuned.counts)
    spent = f"{count_text(tuned.trials, 'trial')} in {tuned.group.seconds:.0f} s"
    total = "unknown: a problem has no time" if total_s is None else seconds_text(total_s)
    return [
        *table_lines(HEADER, rows, columns, SPARED),
        f"group     {tuned.group.id}: {count_text(len(tuned.runs), 'problem')}, {spent}",
        f"total     {total}{doubt} for {count_text(calls, 'call')}, each problem as often as it occurs",
        f"next      tuner history --run {tuned.runs[0].run.id}{database_text}",
    ]


def group_document(tuned: TunedGroup) -> Document:
    """Returns the JSON document of ``tuner tune --shapes FILE --json``: one entry per problem, and totals."""
    problems = [
        {
            "name": "" if each.run.group is None else each.run.group.name,
            "count": count,
            **tune_document(each.run, each.counts, each.selected, each.seconds),
        }
        for each, count in zip(tuned.runs, tuned.counts, strict=True)
    ]
    group = tuned.group
    return {
        "group": group.id,
        "status": group.status,
        "source": group.settings.source,
        "trials": tuned.trials,
        "columns": len(group.settings.columns),
        "total_s": tuned.total_s,
        "reliability": tuned.reliability.text,
        "seconds": group.seconds,
        "problems": problems,
    }


def _row(each: TunedRun, count: int, total_s: float | None, *, is_whole: bool) -> Row:
    place, best, problem = each.run.group, each.best, each.run.settings.problem
    name = "" if place is None else place.name
    start = (str(each.run.id), name, problem.key, str(count), str(each.counts.proposed))
    if best is None or best.best_s is None:
        return (*start, "-", "-", "-", "-", "no candidate worked" if not each.has_worked else "no time")
    share = "-" if total_s is None or not is_whole else f"{count * best.best_s / total_s:.0%}"
    speed = speed_text(gflop_per_s(problem, best.best_s)).removesuffix(" GFLOP/s")
    return (*start, seconds_text(best.best_s), best.reliability.word, share, speed, _candidate_text(best))


def _candidate_text(best: StoredTrial) -> str:
    return f"{best.strategy} {knobs_text(best.record.candidate.choices)}"
