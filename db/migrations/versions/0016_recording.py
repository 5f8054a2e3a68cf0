"""Gives the path of a replay's recording a column; before, it was JSON in the column of the search space."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

KEY = "recording"
RUN = sa.table("run", sa.column("id"), sa.column("space_yaml", sa.Text()), sa.column("recording", sa.Text()))


def upgrade() -> None:
    """Adds the column ``recording`` to runs; moves the paths of recordings there from ``space_yaml``."""
    op.add_column("run", sa.Column("recording", sa.Text(), nullable=False, server_default=sa.text("''")))
    for run, text in _replays(RUN.c.space_yaml, RUN.c.space_yaml.startswith(f'{{"{KEY}": ')):
        _update(run, space_yaml="", recording=json.loads(text)[KEY])


def downgrade() -> None:
    """Moves the paths of recordings back to the column ``space_yaml`` and drops the column ``recording``."""
    for run, path in _replays(RUN.c.recording, RUN.c.recording != ""):
        _update(run, space_yaml=json.dumps({KEY: path}))
    op.drop_column("run", "recording")


def _replays(column: sa.ColumnClause[str], is_replay: sa.ColumnElement[bool]) -> list[tuple[int, str]]:
    """Returns (id, value of ``column``) of all replays."""
    rows = op.get_bind().execute(sa.select(RUN.c.id, column).where(is_replay))
    return [(run, text) for run, text in rows]


def _update(run: int, **columns: str) -> None:
    op.execute(sa.update(RUN).where(RUN.c.id == run).values(columns))
