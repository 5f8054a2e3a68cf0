"""Problems that are groups of operations have a text; groups of runs know the least times possible."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Adds ``problem.group_text``, empty for the problems so far, and ``run_group.floors_s``."""
    op.add_column("problem", sa.Column("group_text", sa.Text(), nullable=False, server_default=""))
    op.add_column("run_group", sa.Column("floors_s", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drops the columns; problems that are groups of operations keep their runs, but lose their text."""
    op.drop_column("run_group", "floors_s")
    op.drop_column("problem", "group_text")
