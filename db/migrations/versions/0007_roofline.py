"""What the machine can do at most, measured beside the answer of a run."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("run", sa.Column("roofline", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("run", "roofline")
