"""Adds "amx_bf16" and "amx_int8" to the names of stored processors that have AMX."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

WORDS = {"has_amx_bf16": "amx_bf16", "has_amx_int8": "amx_int8"}  # column -> word of the name
BEFORE_CACHES = ", caches "  # follows the words in a name
DEFAULTS = {"chip": "", "has_vnni": False, "has_amx_bf16": False, "has_amx_int8": False}
COLUMNS = (
    *("id", "content_sha256", "name", "processor", "isa", "has_bf16", "physical_cores", "logical_cores"),
    *("l1_bytes", "l2_bytes", "l3_bytes", "memory_bytes", *DEFAULTS),
)
machine = sa.table("machine", *map(sa.column, COLUMNS))


def upgrade() -> None:
    """Renames the processors: "avx512 bf16 vnni, caches" becomes "avx512 bf16 vnni amx_bf16, caches"."""
    _rename(lambda name, words: name.replace(BEFORE_CACHES, f" {' '.join(words)}{BEFORE_CACHES}", 1))


def downgrade() -> None:
    """Takes the words out of the names again."""
    _rename(lambda name, words: name.replace(f" {' '.join(words)}{BEFORE_CACHES}", BEFORE_CACHES, 1))


def _rename(renamed: Callable[[str, list[str]], str]) -> None:
    """Sets name and hash of each processor with AMX; ``renamed`` takes the old name and the words."""
    bind = op.get_bind()
    has_tiles = machine.c.has_amx_bf16 == sa.true()
    has_tiles |= machine.c.has_amx_int8 == sa.true()
    for row in bind.execute(sa.select(machine).where(has_tiles)).mappings().all():
        words = [word for column, word in WORDS.items() if row[column]]
        values = {**row, "name": renamed(row["name"], words)}
        changed = {"name": values["name"], "content_sha256": _content_sha256(values)}
        bind.execute(sa.update(machine).where(machine.c.id == row["id"]).values(changed))


def _content_sha256(row: Mapping[str, Any]) -> str:
    """Returns the hash of a machine's fields, without those that have their default."""
    fields = {name: _value(name, row[name]) for name in COLUMNS[2:]}
    content = {name: value for name, value in fields.items() if value != DEFAULTS.get(name)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _value(name: str, stored: Any) -> Any:
    return bool(stored) if name.startswith("has_") else stored
