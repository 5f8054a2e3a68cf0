"""Groups of runs keep the least time that each of their problems can have."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Adds ``run_group.floors_s``, NULL for the groups so far."""
    op.add_column("run_group", sa.Column("floors_s", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drops the column: a group that is resumed would propose its trials in another order."""
    op.drop_column("run_group", "floors_s")
