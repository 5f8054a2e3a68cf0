"""A trial keeps how long each pass of its compiler took, once somebody asked."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("trial", sa.Column("compile_s", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("trial", "compile_s")
