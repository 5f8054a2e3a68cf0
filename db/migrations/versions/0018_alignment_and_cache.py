"""Adds alignment and cache state to problems; those of CPU runs were timed with 64 bytes, warm."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

SUFFIX = " align=64"  # of Problem.key
COLUMNS = ("id", "key", "operation", "shape", "dtype", "layout", "epilogue", "output", "align", "cache")
problem = sa.table("problem", *map(sa.column, COLUMNS))
run = sa.table("run", *map(sa.column, ("id", "problem_id", "target")))


def upgrade() -> None:
    """Adds ``problem.align``, 64 for CPU runs, ``problem.cache``, and ``measurement.offsets``."""
    op.add_column("measurement", sa.Column("offsets", sa.JSON(), nullable=True))
    op.add_column("problem", sa.Column("align", sa.Text(), nullable=False, server_default="16"))
    op.add_column("problem", sa.Column("cache", sa.Text(), nullable=False, server_default="warm"))
    bind = op.get_bind()
    of_cpu = sa.select(run.c.problem_id).where(run.c.target == "cpu")
    found = bind.execute(sa.select(problem).where(problem.c.id.in_(of_cpu))).mappings().all()
    for row in found:
        values = {**row, "key": row["key"] + SUFFIX, "align": "64"}
        del values["id"]
        bind.execute(sa.insert(problem).values(values))
        new = sa.select(problem.c.id).where(problem.c.key == values["key"]).scalar_subquery()
        of_problem = (run.c.problem_id == row["id"]) & (run.c.target == "cpu")
        bind.execute(sa.update(run).where(of_problem).values(problem_id=new))
    replaced = problem.c.id.in_([row["id"] for row in found])
    bind.execute(sa.delete(problem).where(replaced & problem.c.id.not_in(sa.select(run.c.problem_id))))


def downgrade() -> None:
    """Drops the columns; problems that differ in nothing else become one."""
    bind = op.get_bind()
    other = (problem.c.align != "16") | (problem.c.cache != "warm")
    for row in bind.execute(sa.select(problem).where(other)).mappings().all():
        key = " ".join(row["key"].split()[:5])
        same = bind.scalar(sa.select(problem.c.id).where(problem.c.key == key))
        if same is None:
            bind.execute(sa.update(problem).where(problem.c.id == row["id"]).values(key=key))
        else:
            bind.execute(sa.update(run).where(run.c.problem_id == row["id"]).values(problem_id=same))
            bind.execute(sa.delete(problem).where(problem.c.id == row["id"]))
    op.drop_column("measurement", "offsets")
    op.drop_column("problem", "cache")
    op.drop_column("problem", "align")
