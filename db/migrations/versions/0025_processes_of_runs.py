"""Runs and groups of runs keep the process that works on them: one that is gone cannot say so."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

TABLES = ("run", "run_group")


def upgrade() -> None:
    """Adds ``run.process`` and ``run_group.process``, NULL for the runs so far."""
    for table in TABLES:
        op.add_column(table, sa.Column("process", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drops the columns: a run whose process was killed stays "running"."""
    for table in TABLES:
        op.drop_column(table, "process")
