"""A round of timing knows how many trials its run had: an extended run is timed again with more."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

# No run of an older tuner went on after its round.
COUNTED = sa.text(
    "UPDATE timing_round SET of_trials = "
    "(SELECT count(*) FROM trial WHERE trial.run_id = timing_round.run_id)"
)


def upgrade() -> None:
    column = sa.Column("of_trials", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
    op.add_column("timing_round", column)
    op.execute(COUNTED)


def downgrade() -> None:
    op.drop_column("timing_round", "of_trials")
