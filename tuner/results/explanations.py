"""Explanations of results: the ablation of a run, why and where a trial failed, compile time, constraints.

An ablation says how much each knob of the best configuration contributes; constraints are mined from
failures.
"""

import contextlib
import datetime
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tuner.analysis.constraint_mining import Observation, Suggestion, mine
from tuner.analysis.importance import Ablation, Gain, KnobAblation, StrategyAblation, TooFew
from tuner.core.candidate import TargetName
from tuner.core.errors import SCRIPT, CandidateError, Failure, OpPlace, TunerError, UsageError, named_places
from tuner.core.interfaces import Script
from tuner.core.machine import variables_of
from tuner.core.problem import Problem
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.records import CompileSeconds, PassSeconds
from tuner.core.reliability import Reliability
from tuner.core.round_quality import noise_text
from tuner.core.runs import Run
from tuner.core.serialization import seconds_text
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.output.formatting import (
    SUMMARY_COLUMNS,
    SUMMARY_INDENT,
    knobs_line,
    one_line,
    table_lines,
    trial_time_text,
    wrapped,
)
from tuner.results.output.json_documents import Document, history_document
from tuner.space.search_space import SearchSpace
from tuner.targets.backends import Backends

GAIN_HEADER = ("trials", "gain", "95 % interval", "p-value")
HELD_HEADER = ("knob", "held at", *GAIN_HEADER, "importance")
WITHOUT_HEADER = ("knob", "without", *GAIN_HEADER)
STRATEGY_HEADER = ("strategy", "trials", "failed", "best", "timed", *GAIN_HEADER[1:])
GAIN_LINE = (
    "gain      how much slower the best trial is that holds a knob where the search began; in the second "
    "table, that of all without the knob's best value; in the last, that of a strategy; '-': fewer than 3 "
    "such trials"
)
P_VALUE_LINE = (
    "p-value   how likely as many trials, drawn at random, have no faster best: below 0.05 the gain is "
    "hardly chance, near 1 it shows nothing"
)
IMPORTANCE_LINE = (
    "importance: a knob's share of what distinguishes the fastest tenth from all trials (PED-ANOVA)"
)
SPARED = ("timed", "failed")  # columns of the table of strategies that a narrow terminal loses first
LINE_COLUMNS = SUMMARY_COLUMNS - SUMMARY_INDENT  # of a quoted line of a script or payload


def ablation_document(run: Run, ablation: Ablation | TooFew) -> dict[str, Any]:
    """Returns the document of ``tuner show run:ID --ablation --json``; gains are fractions: 0.2 is 20 %."""
    return {
        "run": run.id,
        "noise": run.noise,
        "reliability": run.reliability.text,
        "knobs": (),
        **asdict(ablation),
    }


def ablation_lines(
    run: Run, ablation: Ablation | TooFew, reliability: Reliability, columns: int | None = None
) -> list[str]:
    """Returns a run's ablation as text: two tables of knobs (if there are enough trials), one of strategies.

    ``reliability``: of the run's times, printed unless they are reliable.
    """
    doubts = [] if reliability.is_reliable else [f"reliable  {reliability.answer}"]
    strategies = table_lines(STRATEGY_HEADER, [*map(strategy_row, ablation.strategies)], columns, SPARED)
    if isinstance(ablation, TooFew):
        why = ablation.reason.removeprefix("ablation: ")
        gain = "gain      how much slower the best trial of a strategy is than the best of all"
        explained = (f"ablation  run {run.id}: {why} to compare knobs", gain, P_VALUE_LINE, *doubts)
        return [*wrapped(explained, columns), "", *strategies]
    of_strategy = f"{ablation.measured} measured trials of {ablation.strategy}"
    explained = (
        f"ablation  run {run.id}: {of_strategy}{noise_text(run.noise)}",
        GAIN_LINE,
        P_VALUE_LINE,
        IMPORTANCE_LINE,
        *doubts,
    )
    return [
        *wrapped(explained, columns),
        "",
        *table_lines(HELD_HEADER, [*map(held_row, ablation.knobs)], columns),
        "",
        *table_lines(WITHOUT_HEADER, [*map(without_row, ablation.knobs)], columns),
        "",
        *strategies,
    ]


def held_row(knob: KnobAblation) -> tuple[str, ...]:
    """Returns a knob's table cells for trials that keep the knob at the value where the search began."""
    return (knob.knob, str(knob.held), *gain_texts(knob.gain), f"{knob.importance:.0%}")


def without_row(knob: KnobAblation) -> tuple[str, ...]:
    """Returns a knob's table cells for trials that have another value than the best trial's."""
    return (knob.knob, str(knob.best), *gain_texts(knob.without_best))


def strategy_row(ablation: StrategyAblation) -> tuple[str, ...]:
    """Returns the table cells of a strategy: name, trials, failed trials, best time, then ``gain_texts``."""
    best = "-" if ablation.best_s is None else seconds_text(ablation.best_s)
    return (ablation.strategy, str(ablation.trials), str(ablation.failed), best, *gain_texts(ablation.gain))


def gain_texts(gain: Gain | None) -> tuple[str, str, str, str]:
    """Returns four table cells: number of trials, slowdown, its 95 % interval, p-value; all '-' for None."""
    if gain is None:
        return "-", "-", "-", "-"
    interval = f"{gain.interval[0]:.1%} .. {gain.interval[1]:.1%}"
    return str(gain.trials), f"{gain.slower:.1%}", interval, f"{gain.chance:.2g}"


def explain_lines(trial: StoredTrial, failed: "Sequence[FailedOp]", database_text: str = "") -> list[str]:
    """Returns lines that say why a trial failed and at which ops; for a trial that did not fail, one line.

    ``failed``: the result of ``failed_ops``.
    """
    record = trial.record
    if not isinstance(record.outcome, Failure):
        if trial.best_s is None:
            time = "not timed"
        else:
            time = f"{trial_time_text(trial)}, {trial.reliability.word}"
        status = "compiled only" if record.is_compiled_only else record.status
        return [f"trial {trial.id} did not fail: {status}, {time}"]
    stage = record.outcome.stage.value
    reason = one_line(record.outcome.reason)
    lines = [
        *wrapped([f"trial {trial.id} failed at stage {stage}: {reason}"]),
        f"problem   {record.problem.key}",
        f"strategy  {record.candidate.strategy}",
        *wrapped([knobs_line(record.candidate.choices)]),
    ]
    for failed_op in failed:
        at = failed_op.place
        quoted = failed_op.line_text
        lines.append(f"{at.text:<9} line {at.line}, column {at.column}: {at.op}")
        if quoted:
            shown = quoted if len(quoted) <= LINE_COLUMNS else f"{quoted[: LINE_COLUMNS - 3]}..."
            lines.append(f"{'':{SUMMARY_INDENT}}{shown}")
    return lines + ([f"texts     tuner show {trial.id} --json{database_text}"] if trial.script_text else [])


def explain_document(trial: StoredTrial, failed: "Sequence[FailedOp]") -> Document:
    """Returns the JSON document of ``tuner explain ID --json``; ``failed``: the ops at which it failed."""
    places = [{**asdict(failed_op.place), "line_text": failed_op.line_text} for failed_op in failed]
    return {**history_document(trial), "failed_ops": places}


def pass_seconds(backends: Backends, store: Store, trial: StoredTrial) -> tuple[PassSeconds, ...]:
    """Returns how many seconds each compiler pass takes to compile a trial's script, the slowest pass first.

    Uses stored times of the installed compiler on this machine, else compiles again and stores the times.
    Raises UsageError for a failed trial, for one without a script, and for a rejected script.
    """
    record = trial.record
    if not trial.script or record.status == "failed":
        raise UsageError(f"trial {trial.id}: does not compile")
    compiler = backends.target(record.target).compiler(record.target).fingerprint
    machine = backends.machine().name
    stored = trial.compile_seconds
    if stored is not None and (stored.compiler, stored.machine) == (compiler, machine):
        return stored.passes
    from tuner.mlir.passes import timed_passes  # loads MLIR

    script = Script(trial.script_text, record.script_sha256)
    with timed_passes() as times:
        try:
            backends.target(record.target).code(record.target, record.problem, script)
        except CandidateError as error:
            raise UsageError(f"trial {trial.id}: does not compile any more: {error}") from error
    with contextlib.suppress(UsageError):  # a read-only database: the seconds are returned all the same
        store.set_compile_seconds(trial.id, CompileSeconds(compiler, machine, times.passes))
    return times.passes


@dataclass(frozen=True)
class FailedOp:
    """A transform op or payload op that a trial's failure names: its location, and the source line there."""

    place: OpPlace
    line_text: str  # without its indentation


def failed_ops(backends: Backends, trial: StoredTrial) -> tuple[FailedOp, ...]:
    """Returns the transform op that failed and the payload op that it failed on, as the failure names them.

    If the failure names only the payload op, the script is applied again to find the transform op. () for a
    trial that did not fail, has no script, or whose failure names no op.
    """
    record = trial.record
    if not isinstance(record.outcome, Failure) or not trial.script:
        return ()
    places = named_places(record.outcome.reason)
    if not places:
        return ()
    payload = backends.target(record.target).source(record.problem, trial.script_text)
    if not any(place.text == SCRIPT for place in places):
        with contextlib.suppress(TunerError):  # today's compiler crashes on the script
            transform = backends.failing_op(trial.script_text, payload)
            places = (transform, *places) if transform is not None else places
    failed = []
    for location in places:
        lines = (trial.script_text if location.text == SCRIPT else payload).splitlines()
        is_there = location.line <= len(lines)  # today's payload may be another
        failed.append(FailedOp(location, lines[location.line - 1].strip() if is_there else ""))
    return tuple(failed)


def suggestions(
    store: "Store",
    space: SearchSpace,
    problem: Problem,
    target: TargetName,
    min_support: int,
    since: datetime.datetime | None = None,
) -> tuple[Suggestion, ...]:
    """Returns constraints for the strategy of ``space`` that exclude failed trials of a problem on a target.

    Each excludes ``min_support`` failures or more, and no success, among all stored trials of the operation
    since ``since``: a constraint applies to all problems, machines and targets. Replays are left out.
    """
    query = TrialQuery(TaskQuery(operation=problem.operation), strategy=space.strategy, since=since)
    mined = mine(observations(store.trials(query)), space.names, min_support)
    return tuple(
        suggestion for suggestion in mined if problem_and_target(problem, target) in dict(suggestion.problems)
    )


def observations(trials: Iterable[StoredTrial]) -> tuple[Observation, ...]:
    """Returns one observation per candidate, problem, target, machine and number of threads.

    It is a success if any of its trials worked, else the last failure. Replays, which are copies, are left
    out.
    """
    points: dict[object, list[StoredTrial]] = {}
    for trial in trials:
        record = trial.record
        if record.target.has_machine:
            key = (record.problem, record.target, trial.machine, trial.threads, record.candidate)
            points.setdefault(key, []).append(trial)
    return tuple(map(_observation, points.values()))


def problem_and_target(problem: Problem, target: TargetName) -> str:
    """Returns text that names a problem and its target: "matmul 64x64x64 f32 nn none for cpu"."""
    return f"{problem.key} for {target}"


def _observation(tried: list[StoredTrial]) -> Observation:
    records = [trial.record for trial in tried]
    failures = [record.outcome if isinstance(record.outcome, Failure) else None for record in records]
    record = records[-1]
    trial = tried[-1]
    variables = variables_of(record.problem, trial.machine, trial.threads)
    return Observation(
        values=(*variables, *record.candidate.choices),
        failure=None if None in failures else failures[-1],
        trials=len(tried),
        problem=problem_and_target(record.problem, record.target),
    )
