"""mov: copies, packs and unpacks registers; takes addresses of variables."""

from collections.abc import Callable

import numpy as np

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.operands import Operands, Step
from tuner.ptx.dtypes import TYPES, PtxType
from tuner.ptx.instruction import Vector


def move(operands: Operands) -> Step:
    """Decodes mov."""
    type_ = operands.modifiers.type()
    operands.need(2)
    if isinstance(operands.operand(0), Vector):
        return _unpack(operands, type_)
    if isinstance(operands.operand(1), Vector):
        return _pack(operands, type_)
    read, write = operands.source(1, type_), operands.destination(0, type_)

    def step(chunk: Chunk) -> None:
        write(chunk, read(chunk))

    return step


def _part(operands: Operands, type_: PtxType, count: int) -> PtxType:
    """Returns the type of each of ``count`` parts of a value."""
    name = f"b{8 * type_.bytes // count}"
    if name not in TYPES:
        raise operands.unsupported(f"{count} parts of .{type_.name}")
    return TYPES[name]


def _pack(operands: Operands, type_: PtxType) -> Step:
    part = _part(operands, type_, len(operands.items(1)))
    readers = [operands.reader(item, part) for item in operands.items(1)]
    raw = TYPES[f"b{8 * type_.bytes}"]
    write = operands.destination(0, raw)

    def step(chunk: Chunk) -> None:
        parts = np.stack([chunk.full(read(chunk)) for read in readers], axis=-1)
        write(chunk, parts.view(raw.dtype)[:, 0])

    return step


def _unpack(operands: Operands, type_: PtxType) -> Step:
    part = _part(operands, type_, len(operands.items(0)))
    writers = [operands.writer(item, part) for item in operands.items(0)]
    raw = TYPES[f"b{8 * type_.bytes}"]
    read = operands.source(1, raw)

    def step(chunk: Chunk) -> None:
        whole = np.ascontiguousarray(chunk.full(read(chunk)))
        parts = whole.view(part.dtype).reshape(-1, len(writers))
        for number, write in enumerate(writers):
            write(chunk, np.ascontiguousarray(parts[:, number]))

    return step


DECODERS: dict[str, Callable[[Operands], Step]] = {"mov": move}
