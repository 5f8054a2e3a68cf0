"""A node of a fleet tells what its engine costs its machine."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

COLUMNS = ("cpu_share", "wakeups_per_s")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("fleet_node", sa.Column(name, sa.Double(), nullable=True))


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("fleet_node", name)
