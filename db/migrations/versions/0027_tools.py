"""What verified an outcome: tools of a compiler and the number of its verifier; those of before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

EMPTY = sa.text("''")


def upgrade() -> None:
    """Adds the columns; without a number, an outcome is not reused for equal code."""
    for name in ("tools", "verifier"):
        op.add_column("environment", sa.Column(name, sa.Text(), nullable=False, server_default=EMPTY))
    op.create_index("ix_environment_tools", "environment", ["tools"])


def downgrade() -> None:
    """Removes the columns."""
    op.drop_index("ix_environment_tools", "environment")
    for name in ("verifier", "tools"):
        op.drop_column("environment", name)
