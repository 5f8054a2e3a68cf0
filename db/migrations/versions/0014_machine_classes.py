"""The name of a processor's class says what code is generated for, and its caches: two of a model may differ.

Stored columns say all of it but VNNI. A processor with AVX512-BF16 has it (Cooper Lake, Zen 4 and later);
of others it is known where the database is opened on a machine like the stored one.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

CPUINFO = Path("/proc/cpuinfo")
VNNI = {"avx512_vnni", "avx_vnni"}
# What revision 0013 called a processor: of a GPU or a recording the name is another.
EARLIER = re.compile(r"(?P<model>.*) \((?P<family>family \S* model \S*), (?P<isa>avx512|avx2|none)\)")
LATER = re.compile(r"(?P<model>.*) \((?P<family>family \S* model \S*), (?P<isa>\w+)[^()]*, caches [^()]*\)")
NAMES = (
    *("name", "processor", "isa", "has_bf16", "physical_cores", "logical_cores"),
    *("l1_bytes", "l2_bytes", "l3_bytes", "memory_bytes", "chip"),
)
MACHINE = sa.table("machine", *map(sa.column, ("id", "content_sha256", *NAMES)))
CACHES = ("l1_bytes", "l2_bytes", "l3_bytes")


def upgrade() -> None:
    here = _processor_here()
    for row, name in _processors(EARLIER):
        has_bf16 = bool(row["has_bf16"])
        has_vnni = has_bf16 or (row["name"], has_bf16, True) == (here["name"], here["bf16"], here["vnni"])
        extensions = [row["isa"], *["bf16"] * has_bf16, *["vnni"] * has_vnni]
        caches = "/".join(_size_text(row[cache]) for cache in CACHES)
        _rename(row, f"{name['model']} ({name['family']}, {' '.join(extensions)}, caches {caches})")


def downgrade() -> None:
    for row, name in _processors(LATER):
        _rename(row, f"{name['model']} ({name['family']}, {name['isa']})")


def _processors(form: re.Pattern[str]) -> Iterator[tuple[dict[str, Any], re.Match[str]]]:
    for row in op.get_bind().execute(sa.select(MACHINE)).mappings().all():
        name = form.fullmatch(row["name"])
        if name is not None and name["model"] == row["processor"]:
            yield dict(row), name


def _rename(row: dict[str, Any], name: str) -> None:
    content = {field: row[field] for field in NAMES if (field, row[field]) != ("chip", "")}
    content |= {"name": name, "has_bf16": bool(row["has_bf16"])}
    sha256 = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    values = {"name": name, "content_sha256": sha256}
    op.execute(sa.update(MACHINE).where(MACHINE.c.id == row["id"]).values(values))


def _processor_here() -> dict[str, Any]:
    """Returns what revision 0013 called the processor of this machine, and whether it has BF16 and VNNI."""
    cpuinfo = CPUINFO.read_text() if CPUINFO.exists() else ""
    fields = {name: _field(cpuinfo, name) for name in ("model name", "cpu family", "model", "flags")}
    flags = set(fields["flags"].split())
    isa = "avx512" if flags >= {"avx512f", "avx512vl", "avx512bw", "avx512dq"} else "avx2"
    family = f"family {fields['cpu family']} model {fields['model']}"
    name = f"{fields['model name']} ({family}, {isa})"
    return {"name": name, "bf16": "avx512_bf16" in flags, "vnni": bool(flags & VNNI)}


def _field(cpuinfo: str, name: str) -> str:
    match = re.search(rf"^{name}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return match[1].strip() if match else ""


def _size_text(size_bytes: int) -> str:
    if not size_bytes:
        return "?"
    return f"{size_bytes >> 10}K" if size_bytes % 2**20 else f"{size_bytes >> 20}M"
