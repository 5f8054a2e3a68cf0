"""Times measured after the search: rounds of the final re-measurement, and the baseline."""

import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, selectinload

from tuner.core.dataclass_json import encode
from tuner.core.host_conditions import HostConditions
from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.core.timing_round import RoundQuality, StoredRound, TimedRound
from tuner.db.json_columns import value_of
from tuner.db.models import BASELINE, FINAL, MeasurementRow, RunRow, TimingRoundRow, TrialRow
from tuner.db.ranking import rank, ranked_s
from tuner.db.trial_writes import Owner, put_measurement


def add_round(session: Session, run: RunRow, timed: TimedRound, now: datetime.datetime) -> None:
    """Stores a timing round of a run, selects the round whose times count, and ranks the trials anew.

    A timing round is one final re-measurement of the run's top trials, interleaved; only trials with a final
    time are ranked anew. ``run`` is a row that ``run_select`` has loaded; ``now`` is stored as its start.
    """
    number = 1 + max((each.number for each in run.rounds), default=0)
    trials = session.scalar(select(func.count()).where(TrialRow.run_id == run.id)) or 0
    of_trials = max(trials, *(each.of_trials for each in run.rounds), 0)  # trials may have been pruned since
    quality, baseline = timed.quality, timed.baseline
    run.rounds.append(
        TimingRoundRow(
            number=number,
            started=now,
            of_trials=of_trials,
            noise=quality.noise,
            disturbance=quality.disturbance,
            unreliable=quality.unreliable,
            is_lost=quality.is_lost,
            host=encode(quality.host),
            baseline_name=None if baseline is None else baseline.name,
            baseline_threads=None if baseline is None else baseline.threads,
        )
    )
    for trial_id, measurement in timed.times:
        _put_final(session, trial_id, measurement, number)
    if baseline is not None:
        _put_baseline(session, run, baseline, number)
    select_round(run)
    session.flush()
    is_final = TrialRow.measurements.any(MeasurementRow.kind == FINAL)
    top_trials = select(TrialRow).where(TrialRow.run_id == run.id, is_final)
    for trial in session.scalars(top_trials.options(selectinload(TrialRow.measurements))):
        rank(trial, trial.measurements, run.round)


def select_round(run: RunRow) -> None:
    """Selects the timing round of a run whose times count: the least disturbed; of equal ones the earliest.

    Sets the run's round, noise floor, badge and baseline; its ``rounds`` have to be loaded. A reliable round
    precedes unreliable ones. A round that was timed before the run was extended counts only until a later
    round gives times. Where no round gave times, round 0 is selected: the first times count, the baseline
    stays. A run without rounds stays as it is.
    """
    if not run.rounds:
        return
    quietest = min(run.rounds, key=_preference)
    if quietest.is_lost:  # the first times count, with a badge
        run.round, run.noise, run.unreliable = 0, None, quietest.unreliable
        return
    run.round, run.noise, run.unreliable = quietest.number, quietest.noise, quietest.unreliable
    if quietest.number:  # round 0, of older databases: the run has the baseline's name
        run.baseline_name, run.baseline_threads = quietest.baseline_name, quietest.baseline_threads


def _preference(row: TimingRoundRow) -> tuple[Any, ...]:
    quality = quality_of(row)
    return quality.is_lost, -row.of_trials, *quality.rank, row.started, row.number


def quality_of(row: TimingRoundRow) -> RoundQuality:
    """Returns how disturbed a stored timing round was: noise floor, disturbance, why it is unreliable."""
    host = value_of(HostConditions, row.host)
    return RoundQuality(row.noise, row.disturbance, row.unreliable, host, row.is_lost)


def stored_round(row: TimingRoundRow, answering: int) -> StoredRound:
    """Returns a timing round from its row; ``answering`` is the number of the round whose times count."""
    return StoredRound(row.number, row.started, quality_of(row), row.number == answering, row.of_trials)


def put_final(session: Session, trial_id: int, measurement: Measurement) -> None:
    """Stores the final time of a trial that was measured on another machine, and ranks the trial by it.

    Replaces an earlier such time. A trial that is marked stale gets no rank.
    """
    _put_final(session, trial_id, measurement, 0)
    trial = session.get_one(TrialRow, trial_id)
    if trial.stale is None:
        trial.ranked_s = ranked_s(FINAL, measurement)


def put_baseline(session: Session, run: RunRow, baseline: Baseline) -> None:
    """Stores the time of the baseline library for a run without timing rounds; replaces an earlier time."""
    run.baseline_name, run.baseline_threads = baseline.name, baseline.threads
    _put_baseline(session, run, baseline, 0)


def _put_baseline(session: Session, run: RunRow, baseline: Baseline, number: int) -> None:
    owner: Owner = {"run_id": run.id, "kind": BASELINE, "round": number}
    columns = {"is_interleaved": baseline.is_interleaved, "libraries": encode(baseline.libraries) or None}
    put_measurement(session.connection(), owner, baseline.measurement, columns)


def _put_final(session: Session, trial_id: int, measurement: Measurement, number: int) -> None:
    owner: Owner = {"trial_id": trial_id, "kind": FINAL, "round": number}
    put_measurement(session.connection(), owner, measurement)
