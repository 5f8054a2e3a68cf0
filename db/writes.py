"""Writes of a run: proposals and outcomes of trials, times of its timing rounds, its campaign.

Functions of ``Store``, each given the connection or session of an open transaction.
"""

import datetime
import uuid
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session, selectinload

from tuner.core.candidate import Candidate, candidate_document
from tuner.core.programs import ProgramResult, ProgramSource
from tuner.core.records import HostConditions, Measurement, Record
from tuner.core.reliability import reliable_unless
from tuner.core.requests import Campaign, CampaignProposal, CampaignSettings
from tuner.core.round_quality import RoundQuality, StoredRound, TimedRound
from tuner.core.runs import Baseline
from tuner.core.serialization import encode
from tuner.core.trials import Proposal, StoredTrial
from tuner.db import rows
from tuner.db.columns import candidate_from_json, json_value
from tuner.db.models import (
    BASELINE,
    FINAL,
    FIRST,
    Base,
    CampaignRow,
    MeasurementRow,
    RunRow,
    TimingRoundRow,
    TrialRow,
)
from tuner.db.queries import rank, ranked_s, run_select
from tuner.db.rows import measurement_columns, outcome_columns
from tuner.db.run_process import RUNNING, present_status, this_process

CAMPAIGN = Base.metadata.tables["campaign"]


def campaign_row(settings: CampaignSettings, now: datetime.datetime) -> CampaignRow:
    """Returns a new row of the table ``campaign``, with status "running"."""
    return CampaignRow(
        uuid=str(uuid.uuid4()),
        created=now,
        **{name: getattr(settings, name) for name in ("source", "trials", "budget_s", "seed")},
        columns=[candidate_document(column) for column in settings.columns],
        floors_s=list(settings.floors_s) or None,
        program=None if settings.program is None else encode(settings.program),
        status=RUNNING,
        process=encode(this_process()),
        seconds=0.0,
        search_s=0.0,
    )


def stored_campaign(session: Session, row: CampaignRow) -> Campaign:
    """Returns the campaign of a row, with its runs in the order of the problems."""
    runs = session.scalars(run_select().where(RunRow.campaign_id == row.id).order_by(RunRow.member_number))
    columns = tuple(candidate_from_json(column["strategy"], column["knobs"]) for column in row.columns)
    floors_s = tuple(row.floors_s or ())
    program = json_value(ProgramSource, row.program)
    settings = CampaignSettings(row.source, row.trials, row.budget_s, row.seed, columns, floors_s, program)
    return Campaign(
        *(row.id, row.uuid, row.created, settings, present_status(row.status, row.process)),
        *(row.seconds, row.search_s, tuple(rows.run_of(run) for run in runs)),
        json_value(ProgramResult, row.program_result),
    )


def campaign_proposals(
    session: Session, campaign_id: int, trials: dict[int, StoredTrial]
) -> tuple[CampaignProposal, ...]:
    """Returns all candidates that a campaign has proposed, by number, with their outcomes.

    ``trials``: trial id -> trial, those with an outcome.
    """
    columns = (
        *(TrialRow.id, TrialRow.run_id, TrialRow.number, TrialRow.row, TrialRow.strategy, TrialRow.knobs),
        *(TrialRow.campaign_number, TrialRow.unprojected),
    )
    of_campaign = (RunRow.campaign_id == campaign_id, TrialRow.campaign_number.is_not(None))
    proposals = []
    chosen = select(*columns).join(TrialRow.run).where(*of_campaign).order_by(TrialRow.campaign_number)
    for trial in session.execute(chosen):
        column = candidate_from_json(trial.strategy, trial.unprojected or trial.knobs)
        candidate = candidate_from_json(trial.strategy, trial.knobs)
        proposal = Proposal(trial.id, trial.number, trial.row, candidate, trials.get(trial.id))
        proposals.append(CampaignProposal(trial.campaign_number, trial.run_id, column, proposal))
    return tuple(proposals)


def put_in_campaign(
    connection: Connection, trial_id: int, number: int, unprojected: Candidate, candidate: Candidate
) -> None:
    """Stores a trial's number in its campaign.

    Stores ``unprojected``, the campaign's configuration, too if the projection onto the problem changed it.
    """
    stored = None if unprojected == candidate else dict(unprojected.choices)
    trial = sa.update(TrialRow).where(TrialRow.id == trial_id)
    connection.execute(trial.values(campaign_number=number, unprojected=stored))


def set_campaign_seconds(connection: Connection, campaign_id: int, seconds: float, search_s: float) -> None:
    """Stores the seconds of all sessions of a campaign, and the part that counts for its budget."""
    connection.execute(
        sa.update(CAMPAIGN).where(CAMPAIGN.c.id == campaign_id), {"seconds": seconds, "search_s": search_s}
    )


# What every trial writes, as SQL statements: ORM objects for each row would take several times as long.

Owner = dict[str, int | str]  # columns: the trial or run of a measurement, its kind and round

RUN, TRIAL, SCRIPT, MEASUREMENT = (
    Base.metadata.tables[name] for name in ("run", "trial", "script", "measurement")
)
# SQLAlchemy has this clause per dialect only; SQLite and PostgreSQL spell it alike
ADD_SCRIPT = sa.text(
    "INSERT INTO script (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING"
).bindparams(sa.bindparam("text", type_=SCRIPT.c.text.type))


def latest_moment(connection: Connection, run_id: int) -> datetime.datetime | None:
    """Returns the later of a run's begin and its latest proposal; None for an unknown run (id)."""
    last = (
        sa.select(TRIAL.c.proposed).where(TRIAL.c.run_id == run_id).order_by(TRIAL.c.number.desc()).limit(1)
    )
    moments = connection.execute(sa.select(RUN.c.created, last.scalar_subquery()).where(RUN.c.id == run_id))
    return max((moment for row in moments for moment in row if moment is not None), default=None)


def add_proposal(
    connection: Connection, run_id: int, number: int, row: int, candidate: Candidate, now: datetime.datetime
) -> int:
    """Stores a new trial without an outcome; returns its id.

    Raises IntegrityError if the run has a trial ``number`` already.
    """
    columns = {
        "run_id": run_id,
        "number": number,
        "row": row,
        "proposed": now,
        "strategy": candidate.strategy,
        "knobs": dict(candidate.choices),
    }
    trial_id: int = connection.scalars(sa.insert(TRIAL).returning(TRIAL.c.id), columns).one()
    return trial_id


def proposal(connection: Connection, trial_id: int) -> tuple[int, Candidate, bool] | None:
    """Returns (run id, candidate, whether the outcome is stored) of a trial; None for an unknown trial."""
    columns = (TRIAL.c.run_id, TRIAL.c.strategy, TRIAL.c.knobs, TRIAL.c.status)
    trial = connection.execute(sa.select(*columns).where(TRIAL.c.id == trial_id)).one_or_none()
    if trial is None:
        return None
    return trial.run_id, candidate_from_json(trial.strategy, trial.knobs), trial.status is not None


def add_script(connection: Connection, sha256: str, text: str) -> None:
    """Stores the text of a script under its SHA-256 unless it is stored already."""
    connection.execute(ADD_SCRIPT, {"sha256": sha256, "text": text})


def add_outcome(connection: Connection, trial_id: int, record: Record, now: datetime.datetime) -> None:
    """Stores the outcome and time of a trial whose script is stored; ``now``: when it was complete."""
    timed = record.outcome if isinstance(record.outcome, Measurement) else None
    rank = {"ranked_s": None if timed is None else ranked_s(FIRST, timed)}
    connection.execute(sa.update(TRIAL).where(TRIAL.c.id == trial_id), outcome_columns(record, now) | rank)
    if timed is not None:
        columns = {"trial_id": trial_id, "kind": FIRST, **measurement_columns(timed)}
        connection.execute(sa.insert(MEASUREMENT), columns)


def set_seconds(connection: Connection, run_id: int, seconds: float) -> None:
    """Stores how many seconds a run has taken over all sessions, in place of the earlier number."""
    connection.execute(sa.update(RUN).where(RUN.c.id == run_id), {"seconds": seconds})


def add_round(session: Session, run: RunRow, timed: TimedRound, now: datetime.datetime) -> None:
    """Stores a final re-measurement of a run, and ranks the run's trials again.

    The times of the least disturbed re-measurement count from then on: see ``select_round``.
    """
    number = 1 + max((timing_round.number for timing_round in run.rounds), default=0)
    trials = session.scalar(select(func.count()).where(TrialRow.run_id == run.id)) or 0
    of_trials = max(
        trials, *(timing_round.of_trials for timing_round in run.rounds), 0
    )  # trials may have been pruned since
    quality = timed.quality
    baseline = timed.baseline
    run.rounds.append(
        TimingRoundRow(
            number=number,
            started=now,
            of_trials=of_trials,
            noise=quality.noise,
            disturbance=quality.disturbance,
            unreliable=quality.reliability.reason,
            host=encode(quality.host),
            is_lost=quality.is_lost,
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
    """Selects the timing round whose times count: the least disturbed; among equals the earliest.

    Sets the run's noise floor, why it is unreliable, and its baseline. Rounds with times are preferred, among
    these the rounds after the last extension, then reliable ones. If no round has times, selects round 0:
    first times count, and the baseline stays. Does nothing without rounds.
    """
    if not run.rounds:
        return

    def preference(row: TimingRoundRow) -> tuple[Any, ...]:
        quality = quality_of(row)
        return quality.is_lost, -row.of_trials, *quality.rank, row.started, row.number

    quietest = min(run.rounds, key=preference)
    if quietest.is_lost:  # the first times count, as unreliable ones
        run.round = 0
        run.noise = None
        run.unreliable = quietest.unreliable
        return
    run.round = quietest.number
    run.noise = quietest.noise
    run.unreliable = quietest.unreliable
    if quietest.number:  # round 0, of older databases: the run has the baseline's name
        run.baseline_name = quietest.baseline_name
        run.baseline_threads = quietest.baseline_threads


def quality_of(row: TimingRoundRow) -> RoundQuality:
    """Returns how disturbed a stored final re-measurement was: noise floor, disturbance, why unreliable."""
    host = json_value(HostConditions, row.host)
    return RoundQuality(row.noise, row.disturbance, reliable_unless(row.unreliable), host, row.is_lost)


def stored_round(row: TimingRoundRow, selected_round: int) -> StoredRound:
    """Returns a final re-measurement from its row.

    ``selected_round``: number of the re-measurement whose times count.
    """
    return StoredRound(row.number, row.started, quality_of(row), row.number == selected_round, row.of_trials)


def put_final(session: Session, trial_id: int, measurement: Measurement) -> None:
    """Stores a final time from another machine in place of an earlier one.

    Ranks the trial unless it is stale.
    """
    _put_final(session, trial_id, measurement, 0)
    trial = session.get_one(TrialRow, trial_id)
    if trial.stale is None:
        trial.ranked_s = ranked_s(FINAL, measurement)


def put_baseline(session: Session, run: RunRow, baseline: Baseline) -> None:
    """Stores the time of the baseline library for a run without timing rounds; replaces an earlier time."""
    run.baseline_name = baseline.name
    run.baseline_threads = baseline.threads
    _put_baseline(session, run, baseline, 0)


def _put_baseline(session: Session, run: RunRow, baseline: Baseline, number: int) -> None:
    owner: Owner = {"run_id": run.id, "kind": BASELINE, "round": number}
    columns = {"is_interleaved": baseline.is_interleaved, "libraries": encode(baseline.libraries) or None}
    _put_measurement(session.connection(), owner, baseline.measurement, columns)


def _put_final(session: Session, trial_id: int, measurement: Measurement, number: int) -> None:
    owner: Owner = {"trial_id": trial_id, "kind": FINAL, "round": number}
    _put_measurement(session.connection(), owner, measurement, {"is_interleaved": False})


def _put_measurement(
    connection: Connection, owner: Owner, measurement: Measurement, columns: dict[str, Any]
) -> None:
    # in place of an earlier one of the same owner: trial or run, kind, round
    connection.execute(sa.delete(MEASUREMENT).filter_by(**owner))
    connection.execute(sa.insert(MEASUREMENT), {**owner, **columns, **measurement_columns(measurement)})
