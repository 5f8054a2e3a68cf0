"""Times of GPUs: calls with a cold cache, sensors around the samples."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("measurement", sa.Column("cold_median_s", sa.Double(), nullable=True))
    op.add_column("measurement", sa.Column("conditions", sa.JSON(), nullable=True))


def downgrade() -> None:
    for column in ("cold_median_s", "conditions"):
        op.drop_column("measurement", column)
