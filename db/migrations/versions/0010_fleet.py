"""What passes between runs and the nodes of a fleet."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "fleet_setting",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_fleet_setting"),
    )
    op.create_table(
        "fleet_node",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("process", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("seats", sa.BigInteger(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("machine", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("tuner_version", sa.Text(), nullable=False),
        sa.Column("started", MOMENT, nullable=False),
        sa.Column("seen", MOMENT, nullable=False),
        sa.Column("drains", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_fleet_node"),
    )
    op.create_table(
        "fleet_outcome",
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("told", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("run", "number", "stage", name="pk_fleet_outcome"),
    )
    op.create_table(
        "fleet_blob",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("stored", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_fleet_blob"),
    )
    op.create_index("ix_fleet_blob_stored", "fleet_blob", ["stored"])
    op.create_table(
        "fleet_work",
        sa.Column("id", ID, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("began", MOMENT, nullable=False),
        sa.Column("ended", MOMENT, nullable=False),
        sa.Column("timed_from", MOMENT, nullable=True),
        sa.Column("timed_until", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_fleet_work"),
    )
    op.create_index("ix_fleet_work_run", "fleet_work", ["run"])
    op.create_index("ix_fleet_work_began", "fleet_work", ["began"])


def downgrade() -> None:
    for table in ("fleet_work", "fleet_blob", "fleet_outcome", "fleet_node", "fleet_setting"):
        op.drop_table(table)
