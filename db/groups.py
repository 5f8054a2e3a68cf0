"""Reads and writes groups of runs: many problems under one budget, each a run."""

import datetime
import uuid

import sqlalchemy as sa
from sqlalchemy import select
from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from tuner.core.candidate import Candidate
from tuner.core.dataclass_json import encode
from tuner.core.documents import candidate_document
from tuner.core.program_result import ProgramResult, ProgramSource
from tuner.core.run_groups import GroupProposal, GroupSettings, RunGroup
from tuner.core.runs import Proposal, StoredTrial
from tuner.db import rows
from tuner.db.json_columns import stored_candidate, value_of
from tuner.db.models import Base, RunGroupRow, RunRow, TrialRow
from tuner.db.queries import run_select
from tuner.db.run_process import RUNNING, present_status, this_process

GROUP = Base.metadata.tables["run_group"]


def group_row(settings: GroupSettings, now: datetime.datetime) -> RunGroupRow:
    """Returns a new row of the table ``run_group``, with status "running"."""
    return RunGroupRow(
        uuid=str(uuid.uuid4()),
        created=now,
        source=settings.source,
        trials=settings.trials,
        budget_s=settings.budget_s,
        seed=settings.seed,
        columns=[candidate_document(column) for column in settings.columns],
        floors_s=list(settings.floors_s) or None,
        program=None if settings.program is None else encode(settings.program),
        status=RUNNING,
        process=encode(this_process()),
        seconds=0.0,
        search_s=0.0,
    )


def stored_group(session: Session, row: RunGroupRow) -> RunGroup:
    """Returns the group of a row, with its runs in the order of the problems."""
    found = session.scalars(run_select().where(RunRow.group_id == row.id).order_by(RunRow.group_place))
    columns = tuple(stored_candidate(each["strategy"], each["knobs"]) for each in row.columns)
    floors_s = tuple(row.floors_s or ())
    program = value_of(ProgramSource, row.program)
    settings = GroupSettings(row.source, row.trials, row.budget_s, row.seed, columns, floors_s, program)
    runs = tuple(rows.run_of(run) for run in found)
    result = value_of(ProgramResult, row.program_result)
    state = (present_status(row.status, row.process), row.seconds, row.search_s, runs, result)
    return RunGroup(row.id, row.uuid, row.created, settings, *state)


def group_proposals(
    session: Session, group_id: int, trials: dict[int, StoredTrial]
) -> tuple[GroupProposal, ...]:
    """Returns all candidates that a group has proposed, by their number in the group.

    ``trials`` are the group's trials with an outcome, by id.
    """
    columns = (
        *(TrialRow.id, TrialRow.run_id, TrialRow.number, TrialRow.row, TrialRow.strategy, TrialRow.knobs),
        *(TrialRow.group_number, TrialRow.unprojected),
    )
    of_group = (RunRow.group_id == group_id, TrialRow.group_number.is_not(None))
    found = session.execute(
        select(*columns).join(TrialRow.run).where(*of_group).order_by(TrialRow.group_number)
    )
    return tuple(
        GroupProposal(
            each.group_number,
            each.run_id,
            stored_candidate(each.strategy, each.unprojected or each.knobs),
            Proposal(
                each.id,
                each.number,
                each.row,
                stored_candidate(each.strategy, each.knobs),
                trials.get(each.id),
            ),
        )
        for each in found
    )


def put_in_group(
    connection: Connection, trial_id: int, number: int, column: Candidate, candidate: Candidate
) -> None:
    """Stores the number of a trial in its group, and the configuration before its projection.

    Nothing is stored for a configuration that is its own projection.
    """
    unprojected = None if column == candidate else dict(column.choices)
    trial = sa.update(TrialRow).where(TrialRow.id == trial_id)
    connection.execute(trial.values(group_number=number, unprojected=unprojected))


def set_group_seconds(connection: Connection, group_id: int, seconds: float, search_s: float) -> None:
    """Stores the seconds of all sessions of a group, and the part that counts for its budget."""
    connection.execute(
        sa.update(GROUP).where(GROUP.c.id == group_id), {"seconds": seconds, "search_s": search_s}
    )
