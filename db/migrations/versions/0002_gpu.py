"""GPU programs: narrow outputs, chips, artifacts with their resources, notes of a verdict."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up INTEGER keys only
ADDED = (("problem", "output"), ("machine", "chip"))


def upgrade() -> None:
    for table, column in ADDED:
        op.add_column(table, sa.Column(column, sa.Text(), server_default=sa.text("''"), nullable=False))
    op.add_column("trial", sa.Column("notes", sa.JSON(), nullable=True))
    op.create_table(
        "artifact",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("chip", sa.Text(), nullable=False),
        sa.Column("ptx", sa.LargeBinary(), nullable=False),
        sa.Column("cubin", sa.LargeBinary(), nullable=False),
        sa.Column("launches", sa.JSON(), nullable=False),
        sa.Column("buffers", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_artifact"),
    )
    _create_resources()


def downgrade() -> None:
    op.drop_table("resources")
    op.drop_table("artifact")
    op.drop_column("trial", "notes")
    for table, column in ADDED:
        op.drop_column(table, column)


def _create_resources() -> None:
    op.create_table(
        "resources",
        sa.Column("id", ID, nullable=False),
        sa.Column("artifact_sha256", sa.Text(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("registers", sa.BigInteger(), nullable=False),
        sa.Column("spill_store_bytes", sa.BigInteger(), nullable=False),
        sa.Column("spill_load_bytes", sa.BigInteger(), nullable=False),
        sa.Column("static_shared_bytes", sa.BigInteger(), nullable=False),
        sa.Column("dynamic_shared_bytes", sa.BigInteger(), nullable=False),
        sa.Column("stack_bytes", sa.BigInteger(), nullable=False),
        sa.Column("occupancy", sa.Double(), nullable=False),
        sa.Column("blocks_per_multiprocessor", sa.BigInteger(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["artifact_sha256"], ["artifact.sha256"], name="fk_resources_artifact_sha256"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
        sa.UniqueConstraint("artifact_sha256", "place", name="uq_resources_artifact_sha256_place"),
    )
