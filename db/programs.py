"""Compiled GPU programs to rows and back."""

from collections.abc import Sequence
from dataclasses import fields

from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from tuner.core.dataclass_json import decode, encode
from tuner.core.kernel_program import KernelBuffer, KernelProgram, Launch, Resources
from tuner.db.models import ArtifactRow, ResourcesRow
from tuner.db.queries import in_parts

Launches = tuple[Launch, ...]
Buffers = tuple[KernelBuffer, ...]
FIELDS = tuple(field.name for field in fields(Resources) if field.name != "notes")


def artifact_row(sha256: str, program: KernelProgram) -> ArtifactRow:
    """Returns a new row for a compiled GPU program and its hash, with a row of resources for each kernel."""
    return ArtifactRow(
        sha256=sha256,
        chip=program.chip,
        ptx=program.ptx.encode(),
        cubin=program.cubin,
        launches=encode(program.launches),
        buffers=encode(program.buffers),
        resources=[_resources_row(place, each) for place, each in enumerate(program.resources)],
    )


def stored_programs(session: Session, hashes: Sequence[str | None]) -> dict[str | None, KernelProgram]:
    """Returns {hash: compiled GPU program} for those of ``hashes`` whose program is stored.

    Left out are None and the hashes of CPU code, which is not stored.
    """
    found: dict[str | None, KernelProgram] = {}
    for some in in_parts(hashes):
        chosen = select(ArtifactRow).where(ArtifactRow.sha256.in_(some))
        rows = session.scalars(chosen.options(selectinload(ArtifactRow.resources)))
        found |= {row.sha256: _program_of(row) for row in rows}
    return found


def _program_of(row: ArtifactRow) -> KernelProgram:
    return KernelProgram(
        chip=row.chip,
        ptx=row.ptx.decode(),
        cubin=row.cubin,
        launches=decode(Launches, row.launches, "database: launches"),
        buffers=decode(Buffers, row.buffers, "database: buffers"),
        resources=tuple(resources_of(each) for each in row.resources),
    )


def resources_of(row: ResourcesRow) -> Resources:
    """Returns ptxas's report on one kernel (registers, spills, shared memory, ...) from its row."""
    return Resources(**{name: getattr(row, name) for name in FIELDS}, notes=tuple(row.notes))


def _resources_row(place: int, resources: Resources) -> ResourcesRow:
    named = {name: getattr(resources, name) for name in FIELDS}
    return ResourcesRow(place=place, notes=list(resources.notes), **named)
