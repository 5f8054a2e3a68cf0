"""Runs whose times were taken on another machine: of which bundle, in which measuring."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("run", sa.Column("elsewhere", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("run", "elsewhere")
