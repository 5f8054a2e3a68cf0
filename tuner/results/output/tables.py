"""Tables of runs, trials and compiler passes for people, and the facts about one run as lines.

``runs_table`` and ``history_table`` list runs and trials; values that all rows share are stated once below
the table. ``run_lines`` has the facts about one run.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from tuner.core.candidate import Value
from tuner.core.errors import Failure
from tuner.core.round_quality import StoredRound
from tuner.core.runs import JUDGED, RemoteMeasurement
from tuner.core.serialization import count_text, seconds_text, utc_text
from tuner.core.trials import StoredTrial
from tuner.results.output.formatting import (
    Row,
    bound_text,
    gflop_per_s,
    initial_configurations_text,
    knobs_text,
    one_line,
    problem_text,
    table_lines,
    varying_columns,
    wrapped,
)
from tuner.results.output.run_result import counts_text, idle_text, result_lines, why_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tuner.analysis.coverage import UntriedValues
    from tuner.core.records import PassSeconds
    from tuner.tuning.tuned_run import TunedRun


RUNS_HEADER = (
    *("run", "begun", "problem", "target", "status", "trials", "failed", "best", "reliability"),
    "GFLOP/s",
)
RUNS_MAY_BE_SHARED = ("problem", "target")  # columns of RUNS_HEADER
RUNS_SPARED = ("failed", "GFLOP/s", "begun", "trials")  # columns that a narrow terminal loses first
Choices = tuple[tuple[str, Value], ...]
STRATEGY = "strategy"
HISTORY_HEADER = (
    *("trial", "run", "problem", "target", "threads", "status", "time", "reliability", "GFLOP/s"),
    STRATEGY,
)
MAY_BE_SHARED = ("run", "problem", "target", "threads")  # columns of HISTORY_HEADER
VALUES_SHOWN = 8  # of a knob that no trial has
SPARED = ("GFLOP/s", "threads", "run", "target")  # columns that a narrow terminal loses first
REASON_LIMIT = 60  # characters of a failure in a table
BEST_MARK = "best: the trial that its run selected"
STOPPED_MARK = "> TIME: timing it ended early, as even its fastest sample took that long"


def runs_table(runs: "tuple[TunedRun, ...]", columns: int | None = None) -> list[str]:
    """Returns a table with one line per run; a problem or target that all runs share is stated once below.

    ``columns``: width to fit, None: any width.
    """
    header, rows, shared = varying_columns(RUNS_HEADER, list(map(_row, runs)), RUNS_MAY_BE_SHARED)
    return [*table_lines(header, rows, columns, RUNS_SPARED), *wrapped(shared, columns)]


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


def history_table(
    trials: tuple[StoredTrial, ...], columns: int | None = None, best: Collection[int] = (), why: str = ""
) -> list[str]:
    """Returns a table with a line per trial; if the terminal is too narrow, knobs are on a line below each.

    ``best``: ids of trials to mark as best; ``why``: the line to print below in place of the mark's legend.
    """
    same = _knobs_of_all_trials(trials)
    header, *rows = _with_machines(trials, [HISTORY_HEADER, *(_history_row(trial, best) for trial in trials)])
    table, shared = _fitted(header, rows, [_details(trial, same) for trial in trials], columns)
    below = [f"{strategy} everywhere: {knobs_text(knobs)}" for strategy, knobs in same.items() if knobs]
    marks = []
    if not why and any(trial.id in best for trial in trials):
        marks.append(BEST_MARK)
    if any(trial.early_stopped is not None for trial in trials):
        marks.append(STOPPED_MARK)
    if marks:
        below.append("; ".join(marks))
    if why:
        below.append(why)
    return [*table, *wrapped([*shared, *below], columns)]


def _knobs_of_all_trials(trials: Iterable[StoredTrial]) -> dict[str, Choices]:
    """Returns strategy -> the knobs that have one value in all of its trials, if it has several trials."""
    choices: dict[str, list[Choices]] = {}
    for trial in trials:
        choices.setdefault(trial.strategy, []).append(trial.record.candidate.choices)
    same: dict[str, Choices] = {}
    for strategy, every in choices.items():
        if len(every) > 1:
            same[strategy] = tuple(knob for knob in every[0] if all(knob in knobs for knobs in every))
    return same


def _with_machines(trials: Iterable[StoredTrial], rows: list[Row]) -> list[Row]:
    """Returns the rows, the header first, with a column of machines if the trials are of several."""
    machines = [trial.machine.name for trial in trials]
    if len(set(machines)) <= 1:
        return rows
    position = rows[0].index("target") + 1
    cells = zip(("machine", *machines), rows, strict=True)
    return [(*row[:position], name, *row[position:]) for name, row in cells]


def _fitted(
    header: Row, rows: list[Row], details: list[str], columns: int | None
) -> tuple[list[str], list[str]]:
    """Returns (lines of a table, text that all its rows share), fitted to ``columns``.

    ``details`` end the rows, or are lines below them where the terminal is too narrow.
    """
    wide = [(*row[:-1], f"{row[-1]} {detail}".rstrip()) for row, detail in zip(rows, details, strict=True)]
    wide_header, wide, shared = varying_columns(
        (*header[:-1], f"{header[-1]} and knobs"), wide, MAY_BE_SHARED
    )
    table = table_lines(wide_header, wide)
    if columns is None or max(map(len, table)) <= columns:
        return table, shared
    header, rows, shared = varying_columns(header, rows, (*MAY_BE_SHARED, STRATEGY))
    if header[-1] == STRATEGY:
        details = [f"{row[-1]} {detail}".rstrip() for row, detail in zip(rows, details, strict=True)]
        header = header[:-1]
        rows = [row[:-1] for row in rows]
    return table_lines(header, rows, columns, SPARED, details), shared


def pass_lines(passes: "Sequence[PassSeconds]", columns: int | None = None) -> list[str]:
    """Returns a table of the time that each compiler pass took, in the given order, and of their sum.

    ``columns``: width to fit, None: any width.
    """
    total_s = sum(pass_.seconds for pass_ in passes)
    rows = [(pass_.name, f"{pass_.seconds * 1e3:.1f}", str(pass_.runs)) for pass_ in passes]
    rows.append(("all", f"{total_s * 1e3:.1f}", "-"))
    return table_lines(("pass", "ms", "runs"), rows, columns)


def run_lines(tuned: "TunedRun", database_text: str = "") -> list[str]:
    """Returns the main facts about one run, with its result, as lines for ``tuner show run:ID``.

    ``database_text``: the option --db for printed commands, or "".
    """
    run = tuned.run
    settings = tuned.run.settings
    budget = [count_text(settings.trials, "trial")] if settings.trials is not None else []
    budget += [f"{settings.budget_s:g} s"] if settings.budget_s is not None else []
    workers = count_text(settings.workers, "worker")
    load = "" if run.load_average is None else f", load {run.load_average:.2f}"
    search = f"{settings.sampler}, seed {settings.seed}, budget {' or '.join(budget)}, {workers}"
    if settings.sampler == JUDGED:
        search = "none: its scripts were given to tuner judge"
    lines = [
        f"run       {run.id}: {run.status}, {utc_text(run.created)}, tuner {run.tuner_version}",
        f"problem   {settings.problem.key}",
        f"target    {settings.target}, {count_text(settings.threads, 'thread')} on {run.machine.name}{load}",
        f"search    {search}",
        f"compiler  {run.compiler.mlir}",
        *([f"initial   {initial_configurations_text(settings.first)}"] if settings.first else []),
        *([f"remote    {remote_text(run.elsewhere)}"] if run.elsewhere else []),
    ]
    if tuned.selected is None:
        nothing = "best      none: nothing was timed" if tuned.has_worked else "best      none"
        lines += [f"trials    {counts_text(tuned.counts)}{idle_text(run)}", nothing]
        why = why_lines(tuned, database_text)
        if why:
            lines += [f"why       {why[0]}", f"          {why[1]}"]
        return lines
    return lines + _round_lines(tuned.rounds) + result_lines(tuned, tuned.selected, database_text)


def untried_lines(untried: "Sequence[UntriedValues]") -> list[str]:
    """Returns lines on the values of a run's knobs that no trial has, a line per strategy; [] for none."""
    lines = []
    title = "untried"
    for strategy, knobs in groupby(untried, key=attrgetter("strategy")):
        lines.append(f"{title:<9} {strategy}: {'; '.join(map(_untried_text, knobs))}")
        title = ""
    return lines


def _untried_text(knob: "UntriedValues") -> str:
    shown = ", ".join(map(str, knob.values[:VALUES_SHOWN]))
    if len(knob.values) > VALUES_SHOWN:
        shown += ", ..."
    return f"{knob.knob} {shown} ({len(knob.values)} of {knob.feasible})"


def _round_lines(rounds: tuple[StoredRound, ...]) -> list[str]:
    lines = []
    for stored in rounds if len(rounds) > 1 else ():
        noise = stored.quality.noise
        why = stored.quality.reliability.reason
        quality = "noise not known" if noise is None else f"noise floor {noise:.1%}"
        if why:  # that of the selected round is in the line on reliability
            quality = "unreliable" if stored.is_answering else f"unreliable: {why}"
        selected = " (selected)" if stored.is_answering else ""
        lines.append(f"round     {stored.number}: {utc_text(stored.started)}, {quality}{selected}")
    return lines


def remote_text(elsewhere: RemoteMeasurement) -> str:
    """Returns text on the remote session that measured a run: tuner, CUDA driver, bundle, source run."""
    measuring = f"measuring {elsewhere.session}, tuner {elsewhere.tuner}, CUDA driver {elsewhere.driver}"
    return f"{measuring}; bundle {elsewhere.bundle[:12]}, of run {elsewhere.source}"


def _history_row(trial: StoredTrial, best: Collection[int]) -> tuple[str, ...]:
    record = trial.record
    time = "-"
    speed = None
    if trial.early_stopped is not None:
        time = bound_text(trial.early_stopped)
    elif trial.best_s is not None:
        time = seconds_text(trial.best_s)
        speed = gflop_per_s(record.problem, trial.best_s)
    return (
        str(trial.id),
        str(trial.run),
        problem_text(record.problem),
        record.target.text,
        str(trial.threads),
        _status_text(trial) + (", best" if trial.id in best else ""),
        time,
        "-" if trial.best_s is None or trial.early_stopped is not None else trial.reliability.word,
        "-" if speed is None else f"{speed:.1f}",
        record.candidate.strategy,
    )


def _details(trial: StoredTrial, same: Mapping[str, Choices]) -> str:
    """Returns the knobs of a trial that not all trials of its strategy share, or how it failed."""
    outcome = trial.record.outcome
    known = same.get(trial.strategy, ())
    if not isinstance(outcome, Failure):
        return knobs_text(tuple(knob for knob in trial.record.candidate.choices if knob not in known))
    reason = one_line(outcome.reason)
    reason = reason if len(reason) <= REASON_LIMIT else f"{reason[: REASON_LIMIT - 3]}..."
    return f"failed at {outcome.stage.value}: {reason}"


def _status_text(trial: StoredTrial) -> str:
    record = trial.record
    if trial.stale:
        return "stale"
    is_reused = record.reused_from is not None and record.status == "measured"
    if is_reused:
        phrase = "reused"
    elif record.is_compiled_only:
        phrase = "compiled only"
    else:
        phrase = record.status
    if trial.early_stopped is not None:
        return f"{phrase}, early-stopped"
    return phrase
