"""Each round of timing is kept, with what the machine did meanwhile; the quietest one answers."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Rounds of older tuners: 0, of which only the noise is known.
EARLIER_ROUNDS = sa.text(
    "INSERT INTO timing_round (run_id, number, started, noise, disturbance, unreliable) "
    "SELECT id, 0, created, noise, coalesce(noise, 0), "
    "CASE WHEN noise > 0.05 THEN 'two timings of the same code differ by more than 5%' ELSE '' END "
    "FROM run WHERE id IN "
    "(SELECT trial.run_id FROM measurement JOIN trial ON trial.id = measurement.trial_id "
    "WHERE measurement.kind = 'final')"
)
EARLIER_BADGES = sa.text(
    "UPDATE run SET unreliable = coalesce("
    "(SELECT unreliable FROM timing_round WHERE timing_round.run_id = run.id AND number = 0), '')"
)


def upgrade() -> None:
    op.add_column("run", sa.Column("round", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("run", sa.Column("unreliable", sa.Text(), server_default=sa.text("''"), nullable=False))
    with op.batch_alter_table("measurement") as measurement:
        measurement.add_column(
            sa.Column("round", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
        )
        measurement.add_column(sa.Column("host", sa.JSON(), nullable=True))
        measurement.drop_constraint("uq_measurement_trial_id_kind", type_="unique")
        measurement.drop_constraint("uq_measurement_run_id", type_="unique")
        measurement.create_unique_constraint(
            "uq_measurement_trial_id_kind_round", ["trial_id", "kind", "round"]
        )
        measurement.create_unique_constraint("uq_measurement_run_id_round", ["run_id", "round"])
    op.create_table(
        "timing_round",
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("noise", sa.Double(), nullable=True),
        sa.Column("disturbance", sa.Double(), nullable=False),
        sa.Column("unreliable", sa.Text(), nullable=False),
        sa.Column("host", sa.JSON(), nullable=True),
        sa.Column("baseline_name", sa.Text(), nullable=True),
        sa.Column("baseline_threads", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_timing_round_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_timing_round"),
        sa.UniqueConstraint("run_id", "number", name="uq_timing_round_run_id_number"),
    )
    op.execute(EARLIER_ROUNDS)
    op.execute(EARLIER_BADGES)


def downgrade() -> None:
    op.execute(sa.text("DELETE FROM measurement WHERE kind = 'final' AND round <> 0"))
    op.execute(sa.text("DELETE FROM measurement WHERE run_id IS NOT NULL AND round <> 0"))
    with op.batch_alter_table("measurement") as measurement:
        measurement.drop_constraint("uq_measurement_trial_id_kind_round", type_="unique")
        measurement.drop_constraint("uq_measurement_run_id_round", type_="unique")
        measurement.drop_column("host")
        measurement.drop_column("round")
        measurement.create_unique_constraint("uq_measurement_trial_id_kind", ["trial_id", "kind"])
        measurement.create_unique_constraint("uq_measurement_run_id", ["run_id"])
    op.drop_table("timing_round")
    op.drop_column("run", "unreliable")
    op.drop_column("run", "round")
