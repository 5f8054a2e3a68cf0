"""Gives runs the baseline that the user chose, and baselines the times of the libraries not chosen."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Adds ``run.baseline_library``, empty for the default, and ``measurement.libraries``."""
    op.add_column(
        "run", sa.Column("baseline_library", sa.Text(), nullable=False, server_default=sa.text("''"))
    )
    op.add_column("measurement", sa.Column("libraries", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drops both columns."""
    op.drop_column("measurement", "libraries")
    op.drop_column("run", "baseline_library")
