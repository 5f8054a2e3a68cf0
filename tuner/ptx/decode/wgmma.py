"""wgmma: fence, mma_async, commit_group, wait_group; and setmaxnreg."""

from collections.abc import Callable

import numpy as np

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.operands import PREDICATE, U64, Operands, Reader, Step
from tuner.ptx.defects import Defect, Fault
from tuner.ptx.dtypes import UNSIGNED, Array, Indices
from tuner.ptx.fragments import ELEMENTS
from tuner.ptx.instruction import Vector
from tuner.ptx.warpgroups import Operation, Warpgroup, Watched
from tuner.ptx.wgmma_layout import ROWS, operand_places, register_operand

DEPTH_BYTES = 32  # of an operand's row
SHAPES = {f"m64n{n}k{k}": (n, k) for n in range(8, 257, 8) for k in (8, 16)}
REGISTERS_RANGE = range(24, 257, 8)  # that setmaxnreg allows


def wgmma(operands: Operands) -> Step:
    """Decodes all of wgmma."""
    modifiers = operands.modifiers
    kind = modifiers.need(("fence", "mma_async", "commit_group", "wait_group"), "an operation")
    for word in ("sync", "aligned"):
        modifiers.need((word,), "it")
    if kind == "fence":
        return lambda chunk: chunk.warpgroups.fence(chunk)
    if kind == "commit_group":
        return lambda chunk: chunk.warpgroups.commit(chunk.mask)
    if kind == "wait_group":
        newest = operands.constant(0)
        return lambda chunk: chunk.warpgroups.wait(chunk, newest)
    return _multiply(operands)


def _multiply(operands: Operands) -> Step:
    """Decodes mma_async of f16, bf16 and tf32 into f32, and of f16 into f16."""
    modifiers = operands.modifiers
    columns, depth = SHAPES[modifiers.need(SHAPES, "a shape")]
    right_type, left_type, result = (modifiers.type(*ELEMENTS, "f32").name for _ in range(3))
    item = 4 // ELEMENTS[left_type] if left_type in ELEMENTS else 0
    if left_type != right_type or result not in ("f32", "f16") or depth * item != DEPTH_BYTES:
        raise operands.unsupported("it with these types")
    if result == "f16" and left_type != "f16":
        raise operands.unsupported(f"{left_type} into f16")
    targets = operands.names(0)
    if len(targets) != columns // (2 if result == "f32" else 4):
        raise operands.unsupported(f"an accumulator of {len(targets)} registers")
    in_registers = isinstance(operands.operand(1), Vector)
    flags = [operands.constant(number) for number in range(4, len(operands))]
    left_transposed, right_transposed, sign = _flags(operands, flags, item, in_registers)
    left = (
        _register_left(operands, item) if in_registers else _shared(operands, 1, ROWS, depth, left_transposed)
    )
    right = _shared(operands, 2, columns, depth, right_transposed)
    adds = operands.source(3, PREDICATE)

    def step(chunk: Chunk) -> None:
        for group in chunk.warpgroups.executing(chunk.mask):
            left_content, left_places = left(chunk, group, item)
            right_content, right_places = right(chunk, group, item)
            read = [
                Watched(content, places)
                for content, places in ((left_content, left_places), (right_content, right_places))
                if places is not None
            ]
            operation = Operation(
                targets=targets,
                left=left_content,
                right=right_content,
                watched=tuple(read),
                kind=left_type,
                result=result,
                adds=bool(_uniform(chunk, group, adds, "scale-d")),
                sign=sign,
                clock=_note_reads(chunk, group, read, item),
            )
            chunk.warpgroups.issue(chunk, group, operation)

    return step


def _flags(
    operands: Operands, flags: list[int], item_bytes: int, in_registers: bool
) -> tuple[bool, bool, int]:
    """Returns whether A and B are transposed, and the sign of the product."""
    transposes = 0 if item_bytes == 4 else 1 if in_registers else 2
    if len(flags) != 2 + transposes or {abs(flag) for flag in flags[:2]} != {1}:
        raise operands.unsupported(f"it with the flags {flags}")
    right = bool(flags[-1]) if transposes else False
    return bool(flags[2]) if transposes == 2 else False, right, flags[0] * flags[1]


OperandReader = Callable[[Chunk, Warpgroup, int], tuple[Array, Indices | None]]


def _register_left(operands: Operands, item_bytes: int) -> OperandReader:
    names = operands.names(1)
    if len(names) != 4:
        raise operands.unsupported(f"A in {len(names)} registers")

    def read(chunk: Chunk, group: Warpgroup, _item: int) -> tuple[Array, Indices | None]:
        return register_operand([chunk.read(name)[group.lanes] for name in names], item_bytes), None

    return read


def _shared(operands: Operands, number: int, rows: int, depth: int, is_transposed: bool) -> OperandReader:
    descriptor = operands.source(number, U64)

    def read(chunk: Chunk, group: Warpgroup, item: int) -> tuple[Array, Indices | None]:
        bits = int(_uniform(chunk, group, descriptor, "descriptor"))
        places = operand_places(bits, rows, depth, item, is_transposed)
        shared = chunk.spaces.shared
        if places.max() + item > shared.limit_bytes:
            reason = f"found an operand up to shared byte {places.max()}, allowed {shared.limit_bytes}"
            raise chunk.watch.out_of_bounds(int(group.lanes[0]), reason)
        whole = (places + int(chunk.geometry.place[group.lanes[0]]) * shared.stride_bytes) // item
        return shared.bytes.view(UNSIGNED[item])[whole], whole

    return read


def _uniform(chunk: Chunk, group: Warpgroup, read: Reader, what: str) -> int:
    values = chunk.full(read(chunk))[group.lanes]
    if (values != values[0]).any():
        raise Fault(Defect.ILLEGAL, f"found different values of {what} inside a warpgroup")
    return int(values[0])


def _note_reads(chunk: Chunk, group: Warpgroup, read: list[Watched], item: int) -> int:
    """Tells the races what a warpgroup reads; returns the clock of its reads."""
    races = chunk.spaces.shared.races
    every = np.concatenate([watched.places.ravel() for watched in read])
    cells = np.unique(every * item // races.cell_bytes)
    clock, found = races.async_read(group.lanes, cells, group.column, chunk.bulk.fenced)
    chunk.spaces.shared.report_agent(found, int(group.lanes[0]))
    return clock


def set_registers(operands: Operands) -> Step:
    """Decodes setmaxnreg."""
    modifiers = operands.modifiers
    modifiers.type("u32")
    modifiers.need(("inc", "dec"), "a direction")
    for word in ("sync", "aligned"):
        modifiers.need((word,), "it")
    count = operands.constant(0)
    if count not in REGISTERS_RANGE:
        raise operands.unsupported(f"{count} registers, only multiples of 8 from 24 to 256")
    return lambda chunk: chunk.warpgroups.set_registers(chunk.mask, count)


DECODERS: dict[str, Callable[[Operands], Step]] = {"wgmma": wgmma, "setmaxnreg": set_registers}
