"""The queries of the database as SQLAlchemy statements, and the time by which a trial is ranked.

Functions named ``..._select`` give a statement, others run one in a session; ``rank`` sets the time by which
trials are compared.
"""

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Select, SQLColumnExpression, and_, exists, or_, select
from sqlalchemy.orm import aliased, joinedload, selectinload

from tuner.core.dtypes import INPUT_DTYPES
from tuner.core.errors import REPEATABLE, TIMED_OUT, UsageError, unknown_value
from tuner.core.plausibility import LEAST_S
from tuner.core.problem import ALL_EPILOGUES, FUSION_OPERATIONS, OPERATIONS, SCALED
from tuner.core.queries import OF_PROBLEM, BestGroup, ReuseKey, RunQuery, TaskQuery, TrialQuery
from tuner.core.records import Measurement
from tuner.db.models import (
    FINAL,
    FIRST,
    EnvironmentRow,
    MachineRow,
    MeasurementRow,
    ProblemRow,
    RunRow,
    TrialRow,
)
from tuner.db.run_process import INTERRUPTED, RUNNING

# The time that ranks a trial, stored in a column, so that an index finds the best of a million trials.


def is_ranked() -> ColumnElement[bool]:
    """Returns the SQL condition that a trial is ranked; a time of 0 s in an older database does not count."""
    return TrialRow.ranked_s >= LEAST_S


def ranked_s(kind: str, measurement: Measurement | MeasurementRow) -> float | None:
    """Returns the median seconds by which a trial with this measurement is ranked.

    ``kind``: FIRST or FINAL. None for an early-stopped first measurement.
    """
    return measurement.median_s if kind == FINAL or measurement.is_complete else None


def rank(trial: TrialRow, measurements: list[MeasurementRow], selected_round: int) -> None:
    """Sets ``trial.ranked_s``, the seconds by which a trial is ranked: of its final time, else of its first.

    Only final times of the timing round ``selected_round`` count. ``ranked_s`` becomes None for a stale
    trial, and for one without a complete time.
    """
    counting = (
        measurement
        for measurement in measurements
        if measurement.kind != FINAL or measurement.round == selected_round
    )
    ranks = {measurement.kind: ranked_s(measurement.kind, measurement) for measurement in counting}
    final = ranks.pop(FINAL, None)
    best = next(iter(ranks.values()), None) if final is None else final
    trial.ranked_s = None if trial.stale is not None else best


Item = TypeVar("Item")

AT_ONCE = 500  # ids or hashes in one statement: SQLite takes 32766, PostgreSQL 65535
STATUSES = ("measured", "verified", "failed")
RUN_STATUSES = (RUNNING, "done", INTERRUPTED)
KNOWN_VALUES = {  # of columns of the table ``problem``
    "operation": (*OPERATIONS, SCALED, *FUSION_OPERATIONS),
    "dtype": INPUT_DTYPES,
    "epilogue": ALL_EPILOGUES,
}

First = aliased(MeasurementRow, name="first")
Final = aliased(MeasurementRow, name="final")
BEST_S = sa.func.coalesce(Final.median_s, First.median_s)
SORTS: dict[str, SQLColumnExpression[Any]] = {
    "created": TrialRow.proposed,
    "median": BEST_S,
    "number": TrialRow.number,
}

if TYPE_CHECKING:
    AnySelect = Select[*tuple[Any, ...]]  # of any columns: each function says which


@cache  # a select is a value, and to build this one takes milliseconds
def trial_select() -> "AnySelect":
    """Returns the SELECT of all trials with an outcome: (TrialRow, first measurement, final measurement).

    The final measurement is that of the selected timing round; a measurement is None if there is none.
    """
    return (
        select(TrialRow, First, Final)
        .where(TrialRow.status.is_not(None))
        .join(TrialRow.run)
        .join(RunRow.problem)
        .join(RunRow.machine)
        .outerjoin(First, and_(First.trial_id == TrialRow.id, First.kind == FIRST))
        .outerjoin(
            Final, and_(Final.kind == FINAL, Final.trial_id == TrialRow.id, Final.round == RunRow.round)
        )
        .options(
            selectinload(TrialRow.run).options(joinedload(RunRow.problem), joinedload(RunRow.machine)),
            selectinload(TrialRow.script),
            selectinload(TrialRow.resources),
        )
    )


def quietest_reference_s(run_ids: Collection[int]) -> "AnySelect":
    """Returns the SELECT of (run id, least seconds of the reference kernel around any of its trials)."""
    reference_s = MeasurementRow.host["anchor_s"].as_float()
    timed = select(TrialRow.run_id, sa.func.min(reference_s)).join(TrialRow.measurements)
    chosen = timed.where(TrialRow.run_id.in_(run_ids), MeasurementRow.kind == FIRST)
    return chosen.group_by(TrialRow.run_id)


def proposal_select(run_id: int) -> "AnySelect":
    """Returns the SELECT of all proposals of a run, by number: (id, number, row, strategy, knobs).

    ``row``: index of the candidate in the feasible set.
    """
    columns = (TrialRow.id, TrialRow.number, TrialRow.row, TrialRow.strategy, TrialRow.knobs)
    return select(*columns).where(TrialRow.run_id == run_id).order_by(TrialRow.number)


@cache
def run_select() -> "Select[RunRow]":
    """Returns the SELECT of all runs, with problem, machine, compiler, baselines and timing rounds loaded."""
    return select(RunRow).options(
        joinedload(RunRow.problem),
        joinedload(RunRow.machine),
        joinedload(RunRow.environment),
        selectinload(RunRow.baselines),
        selectinload(RunRow.rounds),
    )


def queried_runs(query: RunQuery) -> "Select[RunRow]":
    """Returns the SELECT of the runs that match a query, the latest first.

    For the statuses "running" and "interrupted" it selects runs stored as running too, without limit: the
    caller then checks whether their processes live. Raises UsageError for an unknown status, and for a limit
    below 1.
    """
    if query.status is not None and query.status not in RUN_STATUSES:
        raise unknown_value("status", query.status, RUN_STATUSES)
    chosen = run_select().join(RunRow.problem).join(RunRow.machine).where(*_task_conditions(query.task))
    limit = _limit(query.limit)
    if query.status in (RUNNING, INTERRUPTED):
        chosen = chosen.where(RunRow.status.in_((RUNNING, query.status)))
        limit = None  # the caller applies it after looking for the processes
    else:
        chosen = chosen.where(*_equal((RunRow.status, query.status)))
    if query.since is not None:
        chosen = chosen.where(RunRow.created >= query.since)
    # a clock may have been set back: a run counts as begun no earlier than those before it on its machine
    latest = sa.func.max(RunRow.created).over(partition_by=RunRow.machine_id, order_by=RunRow.id)
    moments = select(RunRow.id, latest.label("moment")).subquery()
    chosen = chosen.join(moments, moments.c.id == RunRow.id)
    return chosen.order_by(moments.c.moment.desc(), RunRow.id.desc()).limit(limit)


def rooflines_like(run_id: int) -> "AnySelect":
    """Returns the SELECT of one roofline for the machine, target, threads and multiplied dtype of a run.

    A run is quiet if its noise is known and its times are not unreliable. The roofline is that of the latest
    quiet run; if there is none and the run itself is not quiet, that of the latest run.
    """
    run = aliased(RunRow)
    problem = aliased(ProblemRow)
    is_quiet, asks_quietly = (and_(row.noise.is_not(None), row.unreliable == "") for row in (RunRow, run))
    return (
        select(RunRow.roofline)
        .join(RunRow.problem)
        .join(run, run.id == run_id)
        .join(problem, problem.id == run.problem_id)
        .where(
            RunRow.machine_id == run.machine_id,
            RunRow.target == run.target,
            RunRow.threads == run.threads,
            _multiplied_dtype(ProblemRow) == _multiplied_dtype(problem),
            RunRow.roofline.is_not(None),
            or_(is_quiet, ~asks_quietly),
        )
        .order_by(is_quiet.desc(), RunRow.id.desc())
        .limit(1)
    )


def _multiplied_dtype(row: type[ProblemRow]) -> "sa.ColumnElement[str]":
    """Returns ``Problem.multiplied_dtype`` as SQL: i8 if the format of the weights quantizes activations."""
    return sa.case((row.weights.contains("-a8", autoescape=True), "i8"), else_=row.dtype)


def trials_of_query(query: TrialQuery) -> "AnySelect":
    """Returns the SELECT of the trials of a query, sorted and limited. Raises ValueError for ``query.best``.

    The best trials are chosen in Python (``tuner.results.best_trials``).
    """
    if query.best:
        raise ValueError("best: found True, allowed in tuner.results.best_trials")
    conditions = (*_run_conditions(query), *_trial_conditions(query))
    return _in_order(trial_select().where(*conditions), query)


def count_of_query(query: TrialQuery) -> "Select[int]":
    """Returns the SELECT of the number of trials with an outcome that match a query, without its limit."""
    chosen = select(sa.func.count(TrialRow.id)).join(TrialRow.run).join(RunRow.problem).join(RunRow.machine)
    conditions = (*_run_conditions(query), *_trial_conditions(query))
    return chosen.where(TrialRow.status.is_not(None), *conditions)


def named(ids: Collection[int], query: TrialQuery) -> "AnySelect":
    """Returns the SELECT of the trials with these ids, sorted and limited as the query says."""
    return _in_order(trial_select().where(TrialRow.id.in_(ids)), query)


def fastest(groups: Collection[BestGroup], strategies: Collection[str], limit: int) -> "AnySelect":
    """Returns the SELECT of each group's ``limit`` fastest trials of each strategy, the fastest first."""
    columns = (ProblemRow.key, RunRow.target, RunRow.threads, MachineRow.name)
    groups_sql = [and_(*_equal(*zip(columns, dataclasses.astuple(group), strict=True))) for group in groups]
    order = (BEST_S.asc().nulls_last(), TrialRow.id.asc())
    place = sa.func.row_number().over(partition_by=(*columns, TrialRow.strategy), order_by=order)
    asked = (_is_known(), TrialRow.status == "measured", TrialRow.strategy.in_(strategies), or_(*groups_sql))
    places = trial_select().where(*asked).with_only_columns(TrialRow.id, place.label("place")).subquery()
    chosen = trial_select().join(places, places.c.id == TrialRow.id)
    return chosen.where(places.c.place <= limit).order_by(*order)


def bounds(query: TrialQuery) -> "AnySelect":
    """Returns the SELECT of (run, fields of BestGroup, is unreliable, least seconds) per run that has a time.

    Least seconds are over the trials in the run's selected timing round; over all its trials if none was in
    one.
    """
    of_round = (MeasurementRow.kind == FINAL, MeasurementRow.round == RunRow.round)
    is_final = exists().where(MeasurementRow.trial_id == TrialRow.id, *of_round).correlate(TrialRow, RunRow)
    least_s = sa.func.coalesce(_least(query, is_final), _least(query))
    group = (ProblemRow.key, RunRow.target, RunRow.threads, MachineRow.name)
    columns = (RunRow.id, *group, RunRow.unreliable != "", least_s.label("least_s"))
    runs = (
        select(*columns).join(RunRow.problem).join(RunRow.machine).where(*_run_conditions(query)).subquery()
    )
    return select(runs).where(runs.c.least_s.is_not(None))


def same_code(script_sha256: str | None, artifact_sha256: str | None) -> "Select[int]":
    """Returns the SELECT of the id of a trial with both hashes; a hash of None is not compared."""
    return select(TrialRow.id).where(*_of_code(script_sha256, artifact_sha256)).limit(1)


def recalled(key: ReuseKey, script_sha256: str | None, artifact_sha256: str | None) -> "AnySelect":
    """Returns the SELECT of the latest trial with equal code and key whose outcome can be reused.

    A hash of None is not compared. If only the code's hash is given, the compiler's sources may differ.
    """
    is_made_alike = (
        EnvironmentRow.tools == key.compiler.tools
        if script_sha256 is None
        else EnvironmentRow.fingerprint == key.compiler.fingerprint
    )
    return (
        trial_select()
        .join(RunRow.environment)
        .where(
            *_of_code(script_sha256, artifact_sha256),
            ProblemRow.key == key.problem.key,
            RunRow.target == key.target.text,
            RunRow.threads == key.threads,
            MachineRow.name == key.machine,
            is_made_alike,
            TrialRow.reused_from_id.is_(None),
            TrialRow.stale.is_(None),
            or_(
                and_(TrialRow.status == "measured", First.is_complete, First.median_s >= LEAST_S),
                and_(TrialRow.status == "verified", TrialRow.elements > 0),
                would_repeat(TrialRow),
            ),
        )
        .order_by(TrialRow.finished.desc(), TrialRow.id.desc())
        .limit(1)
    )


def would_repeat(trial: type[TrialRow]) -> ColumnElement[bool]:
    """Returns the SQL condition that a trial failed and would fail again (``Failure.would_repeat``)."""
    stages = [stage.value for stage in REPEATABLE]
    return and_(trial.stage.in_(stages), trial.reason.not_like(f"{TIMED_OUT}%"))


def _of_code(script_sha256: str | None, artifact_sha256: str | None) -> Iterator[ColumnElement[bool]]:
    if script_sha256 is not None:
        yield TrialRow.script_sha256 == script_sha256
    if artifact_sha256 is not None:
        yield TrialRow.artifact_sha256 == artifact_sha256


def count_select(run_id: int) -> "AnySelect":
    """Returns the SELECT of the fields of ``Counts`` for a run's trials."""
    is_compiled = and_(TrialRow.status == "verified", TrialRow.elements == 0)  # none compared
    measured, verified, failed = (
        sa.func.count().filter(TrialRow.status == status, sa.not_(is_compiled)) for status in STATUSES
    )
    reused = sa.func.count(TrialRow.reused_from_id)
    compiled = sa.func.count().filter(is_compiled)
    counts = select(sa.func.count(), measured, verified, failed, reused, compiled)
    return counts.select_from(TrialRow).where(TrialRow.run_id == run_id)


def _run_conditions(query: TrialQuery) -> Iterator[ColumnElement[bool]]:
    yield from _equal((RunRow.id, query.run))
    yield from _task_conditions(query.task)


def _is_known() -> ColumnElement[bool]:
    """Returns the SQL condition that this version has a problem's operation, dtype and epilogue.

    Another version, or a branch with an epilogue of its own, may have stored runs in the same database.
    """
    return and_(*(getattr(ProblemRow, name).in_(values) for name, values in KNOWN_VALUES.items()))


def unknown_problems() -> "AnySelect":
    """Returns the SELECT of (key, number of runs) of problems that this version does not know."""
    chosen = select(ProblemRow.key, sa.func.count(RunRow.id)).join(RunRow.problem).where(~_is_known())
    return chosen.group_by(ProblemRow.key).order_by(ProblemRow.key)


def _task_conditions(task: TaskQuery) -> Iterator[ColumnElement[bool]]:
    yield _is_known()
    yield from _equal(*((getattr(ProblemRow, name), getattr(task, name)) for name in OF_PROBLEM))
    yield from _equal((RunRow.threads, task.threads), (MachineRow.name, task.machine))
    if task.target is not None:
        of_any_chip = RunRow.target.startswith(f"{task.target}:", autoescape=True)
        yield or_(RunRow.target == task.target, of_any_chip)


def _trial_conditions(query: TrialQuery) -> Iterator[ColumnElement[bool]]:
    if query.status is not None and query.status not in STATUSES:
        raise unknown_value("status", query.status, STATUSES)
    yield from _equal((TrialRow.strategy, query.strategy), (TrialRow.status, query.status))
    if query.since is not None:
        yield TrialRow.proposed >= query.since


def _equal(*pairs: tuple[SQLColumnExpression[Any], object]) -> Iterator[ColumnElement[bool]]:
    return (column == value for column, value in pairs if value is not None)


def _least(query: TrialQuery, *conditions: ColumnElement[bool]) -> "sa.ScalarSelect[float | None]":
    return (  # the first entry of an index that fulfils the conditions
        select(TrialRow.ranked_s)
        .where(TrialRow.run_id == RunRow.id, is_ranked(), *_trial_conditions(query), *conditions)
        .order_by(TrialRow.ranked_s)
        .limit(1)
        .correlate(RunRow)
        .scalar_subquery()
    )


def _in_order(chosen: "AnySelect", query: TrialQuery) -> "AnySelect":
    name = query.sort.removeprefix("-")
    if name not in SORTS:
        error = unknown_value("sort", query.sort, SORTS)
        raise UsageError(f"{error.message}, or one of them after '-'", error.hint)
    if query.sort == name:
        order = (SORTS[name].asc().nulls_last(), TrialRow.id.asc())
    else:
        order = (SORTS[name].desc().nulls_last(), TrialRow.id.desc())
    return chosen.order_by(*order).limit(_limit(query.limit))


def _limit(limit: int | None) -> int | None:
    if limit is not None and limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    return limit


def in_parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yields consecutive slices of at most AT_ONCE (500) items: an SQL statement takes a limited number."""
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))
