"""Rows that many other rows refer to, each stored once under its unique key."""

from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tuner.db.models import ArtifactRow, EnvironmentRow, MachineRow, ProblemRow, ScriptRow

Shared = TypeVar("Shared", ProblemRow, MachineRow, EnvironmentRow, ScriptRow, ArtifactRow)

UNIQUE = {
    ProblemRow: "key",
    MachineRow: "content_sha256",
    EnvironmentRow: "content_sha256",
    ScriptRow: "sha256",
    ArtifactRow: "sha256",
}


def interned(session: Session, row: Shared) -> Shared:
    """Returns the stored row with the same unique key as ``row``; adds ``row`` where there is none.

    The key is the table's column in ``UNIQUE``, such as a content hash. An added row is committed with
    ``session``.
    """
    name = UNIQUE[type(row)]
    same = select(type(row)).filter_by(**{name: getattr(row, name)})
    found = session.scalars(same).one_or_none()
    if found is not None:
        return found
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:  # another process stored it first (PostgreSQL only: SQLite has one writer)
        return session.scalars(same).one()
    return row
