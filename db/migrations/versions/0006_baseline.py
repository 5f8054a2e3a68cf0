"""The library that is compared with is called the baseline."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

MEASUREMENT = sa.table("measurement", sa.column("kind", sa.Text()))
COLUMNS = ("name", "threads")  # after "vendor_" and "baseline_"


def upgrade() -> None:
    _rename("vendor", "baseline")


def downgrade() -> None:
    _rename("baseline", "vendor")


def _rename(old: str, new: str) -> None:
    for column in COLUMNS:
        op.alter_column("run", f"{old}_{column}", new_column_name=f"{new}_{column}")
    op.execute(sa.update(MEASUREMENT).where(MEASUREMENT.c.kind == old).values(kind=new))
