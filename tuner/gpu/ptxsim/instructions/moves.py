"""Decoders of mov: between registers, vectors of registers and their parts, and of addresses."""

from collections.abc import Callable
from itertools import repeat

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import Operands, Step
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, PtxType
from tuner.gpu.ptxsim.ptx.syntax_tree import Vector
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks


def move(operands: Operands) -> Step:
    """Decodes PTX mov of a register, a constant, an address, or a vector such as {%r1, %r2}, (un)packed."""
    type_ = operands.modifiers.type()
    operands.need(2)
    if isinstance(operands.operand(0), Vector):
        return _unpack(operands, type_)
    if isinstance(operands.operand(1), Vector):
        return _pack(operands, type_)
    read = operands.source(1, type_)
    write = operands.destination(0, type_)
    return lambda resident: write(resident, read(resident))


def _pack(operands: Operands, type_: PtxType) -> Step:
    part = _part(operands, type_, len(operands.items(1)))
    readers = list(map(operands.reader, operands.items(1), repeat(part)))
    raw = TYPES[f"b{8 * type_.bytes}"]
    write = operands.destination(0, raw)

    def step(resident: ResidentBlocks) -> None:
        parts = np.stack([resident.full(read(resident)) for read in readers], axis=-1)
        write(resident, parts.view(raw.dtype)[:, 0])

    return step


def _part(operands: Operands, type_: PtxType, count: int) -> PtxType:
    name = f"b{8 * type_.bytes // count}"
    if name not in TYPES:
        raise operands.unsupported(f"{count} parts of .{type_.name}")
    return TYPES[name]


def _unpack(operands: Operands, type_: PtxType) -> Step:
    part = _part(operands, type_, len(operands.items(0)))
    writers = [operands.writer(item, part) for item in operands.items(0)]
    raw = TYPES[f"b{8 * type_.bytes}"]
    read = operands.source(1, raw)

    def step(resident: ResidentBlocks) -> None:
        whole = np.ascontiguousarray(resident.full(read(resident)))
        parts = whole.view(part.dtype).reshape(-1, len(writers))
        for index, write in enumerate(writers):
            write(resident, np.ascontiguousarray(parts[:, index]))

    return step


MOVES: dict[str, Callable[[Operands], Step]] = {"mov": move}
