"""Campaigns, fusions and the code of devices by their names, which were groups, PTX and cubins."""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"

COLUMNS = (
    ("run", "group_id", "campaign_id"),
    ("run", "group_place", "member_number"),
    ("run", "group_name", "member_name"),
    ("run", "group_count", "member_count"),
    ("trial", "group_number", "campaign_number"),
    ("artifact", "ptx", "text"),
    ("artifact", "cubin", "binary"),
)


def upgrade() -> None:
    """Renames tables, columns and the function of stored fusions, whose keys have the hash of their text."""
    op.drop_index("ix_run_group_id", "run")
    for table, old, new in COLUMNS:
        op.alter_column(table, old, new_column_name=new)
    op.create_index("ix_run_campaign_id", "run", ["campaign_id"])
    _copy_table("run_group", "campaign")
    _rename_function("@group(", "@fusion(")


def downgrade() -> None:
    """Gives the names of before."""
    _rename_function("@fusion(", "@group(")
    _copy_table("campaign", "run_group")
    op.drop_index("ix_run_campaign_id", "run")
    for table, old, new in COLUMNS:
        op.alter_column(table, new, new_column_name=old)
    op.create_index("ix_run_group_id", "run", ["group_id"])


def _copy_table(old: str, new: str) -> None:
    """Makes a table anew, so that its constraints have its name as well."""
    identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        new,
        sa.Column("id", identity, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("trials", sa.BigInteger()),
        sa.Column("budget_s", sa.Double()),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("search_s", sa.Double(), nullable=False),
        sa.Column("floors_s", sa.JSON()),
        sa.Column("program", sa.JSON()),
        sa.Column("program_result", sa.JSON()),
        sa.Column("process", sa.JSON()),
        sa.PrimaryKeyConstraint("id", name=f"pk_{new}"),
        sa.UniqueConstraint("uuid", name=f"uq_{new}_uuid"),
    )
    op.create_index(f"ix_{new}_created", new, ["created"])
    names = (
        "id, uuid, created, source, trials, budget_s, seed, columns, status, seconds, search_s, floors_s, "
        "program, program_result, process"
    )
    op.execute(f"INSERT INTO {new} ({names}) SELECT {names} FROM {old}")  # noqa: S608 - constants
    op.drop_table(old)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"SELECT setval('{new}_id_seq', (SELECT coalesce(max(id), 0) + 1 FROM {new}), false)")  # noqa: S608 - constants


def _rename_function(old: str, new: str) -> None:
    problem = sa.table("problem", *map(sa.column, ("id", "key", "fusion")))
    connection = op.get_bind()
    for row in connection.execute(sa.select(problem).where(problem.c.fusion != "")).all():
        text = row.fusion.replace(old, new)
        key = row.key.replace(_digest(row.fusion), _digest(text))
        connection.execute(sa.update(problem).where(problem.c.id == row.id).values(fusion=text, key=key))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
