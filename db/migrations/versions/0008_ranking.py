"""What a trial is ranked by stands beside it, and why its time no longer holds."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

RANKED = sa.text(
    "UPDATE trial SET ranked_s = coalesce("
    "(SELECT median_s FROM measurement WHERE trial_id = trial.id AND kind = 'final'), "
    "(SELECT median_s FROM measurement WHERE trial_id = trial.id AND kind = 'first' AND is_complete))"
)


def upgrade() -> None:
    op.add_column("trial", sa.Column("ranked_s", sa.Double(), nullable=True))
    op.add_column("trial", sa.Column("stale", sa.Text(), nullable=True))
    op.execute(RANKED)
    op.create_index("ix_trial_run_id_ranked_s", "trial", ["run_id", "ranked_s"])


def downgrade() -> None:
    op.drop_index("ix_trial_run_id_ranked_s", "trial")
    for column in ("stale", "ranked_s"):
        op.drop_column("trial", column)
