"""Runs keep what they knew of the same space on other machines, from which a resumed run proposes again."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Adds ``run.prior``, "" for the runs so far."""
    op.add_column("run", sa.Column("prior", sa.Text(), server_default=sa.text("''"), nullable=False))


def downgrade() -> None:
    """Drops the column: a run that began from other machines' times cannot be resumed exactly."""
    op.drop_column("run", "prior")
