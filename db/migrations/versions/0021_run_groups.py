"""Groups of runs: many problems under one budget, each a run; trials know their place in the group."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OF_RUN = (("group_place", sa.BigInteger()), ("group_name", sa.Text()), ("group_count", sa.BigInteger()))


def upgrade() -> None:
    """Adds the table ``run_group``, and to runs and trials the columns that refer to it."""
    op.create_table(
        "run_group",
        sa.Column("id", ID, primary_key=True),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("trials", sa.BigInteger(), nullable=True),
        sa.Column("budget_s", sa.Double(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("search_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run_group"),
        sa.UniqueConstraint("uuid", name="uq_run_group_uuid"),
    )
    op.create_index("ix_run_group_created", "run_group", ["created"])
    # no foreign key: SQLite could neither add nor drop it without a copy of the table
    op.add_column("run", sa.Column("group_id", sa.BigInteger(), nullable=True))
    for name, kind in OF_RUN:
        op.add_column("run", sa.Column(name, kind, nullable=True))
    op.create_index("ix_run_group_id", "run", ["group_id"])
    op.add_column("trial", sa.Column("group_number", sa.BigInteger(), nullable=True))
    op.add_column("trial", sa.Column("unprojected", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drops the groups; their runs stay as runs of their own."""
    op.drop_column("trial", "unprojected")
    op.drop_column("trial", "group_number")
    op.drop_index("ix_run_group_id", "run")
    for name, _ in reversed(OF_RUN):
        op.drop_column("run", name)
    op.drop_column("run", "group_id")
    op.drop_table("run_group")
