"""Columns for each class of problems: formats of packed weights, facts of fusions, read from texts once.

Results of programs name their parts fusions, which were groups.
"""

import json
import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

QUANTIZED = 'tuner.quantization = "'
CONSTANT = "tuner.constant = "
NUMBERS = (
    "bytes",
    "channels",
    "contractions",
    "copy",
    "products",
    "reduced",
    "strided",
    "transposed",
    "weights",
)
LISTS = ("loops", "rows")
ELEMENTS = re.compile(r"(?:tensor|memref)<(?:[0-9?]+x)*([a-z][a-zA-Z0-9]*)[,>]")


def upgrade() -> None:
    """Adds the columns; a matmul of packed weights gets its format in place of the text."""
    empty = sa.text("''")
    op.add_column("problem", sa.Column("weights", sa.Text(), nullable=False, server_default=empty))
    op.add_column("problem", sa.Column("facts", sa.JSON()))
    op.alter_column("problem", "group_text", new_column_name="fusion")
    problem = sa.table(
        "problem", *map(sa.column, ("id", "key", "fusion", "weights")), sa.column("facts", sa.JSON)
    )
    connection = op.get_bind()
    for row in connection.execute(sa.select(problem).where(problem.c.fusion != "")).all():
        connection.execute(
            sa.update(problem).where(problem.c.id == row.id).values(_columns(row.key, row.fusion))
        )
    _rename_parts("groups", "group", "fusions", "fusion")


def downgrade() -> None:
    """Drops the columns; texts of packed weights, which their formats make, stay empty."""
    _rename_parts("fusions", "fusion", "groups", "group")
    op.alter_column("problem", "fusion", new_column_name="group_text")
    op.drop_column("problem", "facts")
    op.drop_column("problem", "weights")


def _rename_parts(old_list: str, old_part: str, new_list: str, new_part: str) -> None:
    """Renames the keys of stored results of programs."""
    campaign = sa.table("run_group", sa.column("id"), sa.column("program_result", sa.JSON))
    connection = op.get_bind()
    for row in connection.execute(sa.select(campaign).where(campaign.c.program_result.is_not(None))).all():
        result = dict(row.program_result or {})
        if old_list not in result:
            continue
        result[new_list] = [
            {new_part if name == old_part else name: value for name, value in part.items()}
            for part in result.pop(old_list)
        ]
        connection.execute(sa.update(campaign).where(campaign.c.id == row.id).values(program_result=result))


def _columns(key: str, text: str) -> dict[str, Any]:
    if QUANTIZED in text or CONSTANT in text:
        types = key.split(" ")[2]
        return {"weights": types.partition("*")[2].partition("->")[0], "fusion": "", "facts": None}
    return {"facts": _facts(text)}


def _facts(text: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name in NUMBERS:
        match = re.search(rf"tuner\.{name} = (\d+)", text)
        facts[name] = int(match[1]) if match else 0
    for name in LISTS:
        match = re.search(rf"tuner\.{name} = array<i64: ([0-9, ]+)>", text)
        facts[name] = json.loads(f"[{match[1]}]") if match else []
    letters = re.search(r'tuner\.dimensions = "(\w*)"', text)
    strides = re.search(r"strides = dense<\[?([0-9, ]+)\]?>", text)
    visible = re.search(r"tuner\.visible = array<i64: (-?\d+), (-?\d+)>", text)
    row_stride = int(strides[1].split(",")[-1]) if strides else 1
    return facts | {
        "dimensions": letters[1] if letters else "",
        "stride": row_stride if letters else 0,
        "visible": [int(visible[1]), int(visible[2])] if visible else None,
        "elements": sorted(set(ELEMENTS.findall(text))),
        "weights_format": "",
    }
