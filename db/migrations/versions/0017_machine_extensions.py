"""Adds to machines whether they have VNNI and AMX; for machines stored before, this is 0: not known."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

COLUMNS = ("has_vnni", "has_amx_bf16", "has_amx_int8")


def upgrade() -> None:
    """Adds a boolean column per instruction set extension to ``machine``; false in rows that exist."""
    for name in COLUMNS:
        op.add_column("machine", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drops the columns of the extensions."""
    for name in COLUMNS:
        op.drop_column("machine", name)
