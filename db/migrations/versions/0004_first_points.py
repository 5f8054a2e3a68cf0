"""What a run proposed first and why; how long it searched, and how much of that nothing was measured."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("run", sa.Column("warm_start", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("run", sa.Column("warm_files", sa.JSON(), nullable=True))
    op.add_column("run", sa.Column("first", sa.JSON(), nullable=True))
    op.add_column("run", sa.Column("search_s", sa.Double(), nullable=True))
    op.add_column("run", sa.Column("idle_s", sa.Double(), nullable=True))


def downgrade() -> None:
    for column in ("idle_s", "search_s", "first", "warm_files", "warm_start"):
        op.drop_column("run", column)
