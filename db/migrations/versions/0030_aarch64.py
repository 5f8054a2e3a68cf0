"""Instruction sets of AArch64 in the table of machines."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

FIELDS = ("has_dotprod", "has_i8mm", "has_arm_bf16")


def upgrade() -> None:
    """Adds a column for each instruction set; no machine of before has one."""
    for field in FIELDS:
        column: sa.Column[bool] = sa.Column(field, sa.Boolean(), nullable=False, server_default=sa.false())
        op.add_column("machine", column)


def downgrade() -> None:
    """Drops the columns."""
    for field in FIELDS:
        op.drop_column("machine", field)
