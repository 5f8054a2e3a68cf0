"""A round of timing that gave no times is kept as lost; a baseline says whether it was timed interleaved."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

# Rounds sample everything equally often, a baseline alone as often as it likes.
EARLIER_INTERLEAVED = sa.text(
    "UPDATE measurement SET is_interleaved = :true WHERE kind = 'baseline' AND EXISTS ("
    "SELECT 1 FROM measurement final JOIN trial ON trial.id = final.trial_id "
    "WHERE trial.run_id = measurement.run_id AND final.kind = 'final' AND final.round = measurement.round "
    "AND json_array_length(final.samples_s) = json_array_length(measurement.samples_s))"
)


def upgrade() -> None:
    op.add_column(
        "timing_round", sa.Column("is_lost", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column(
        "measurement", sa.Column("is_interleaved", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.execute(EARLIER_INTERLEAVED.bindparams(true=True))


def downgrade() -> None:
    op.execute(sa.text("DELETE FROM timing_round WHERE is_lost"))
    op.drop_column("measurement", "is_interleaved")
    op.drop_column("timing_round", "is_lost")
