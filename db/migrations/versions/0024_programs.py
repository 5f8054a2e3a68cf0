"""Groups of runs keep the program that they tune, and what came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

COLUMNS = ("program", "program_result")


def upgrade() -> None:
    """Adds ``run_group.program`` and ``run_group.program_result``, NULL for the groups so far."""
    for name in COLUMNS:
        op.add_column("run_group", sa.Column(name, sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drops the columns: a resumed tuning does not time the program, and a report does not draw it."""
    for name in COLUMNS:
        op.drop_column("run_group", name)
