"""Adds the text of a group of operations to problems."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Adds ``problem.group_text``, empty for a matmul and a batch_matmul."""
    op.add_column("problem", sa.Column("group_text", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Drops the column; problems that are groups stay, and older versions refuse them by their operation."""
    op.drop_column("problem", "group_text")
