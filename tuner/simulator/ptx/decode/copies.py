"""cp.async and its async-groups; cp.async.bulk is decoded in bulk.py."""

from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.bulk import bulk
from tuner.simulator.ptx.decode.operands import U32, Operands, Step
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

SIZES_BYTES = (4, 8, 16)


def copy(operands: Operands) -> Step:
    """Decodes PTX ``cp.async`` from global to shared memory, its commit_group, wait_group and wait_all.

    Returns a function that begins the copies, commits or waits. Also decodes ``cp.async.bulk``, by ``bulk``.
    Raises UnsupportedInstruction for other forms, such as ``cp.async.mbarrier``.
    """
    modifiers = operands.modifiers
    modifiers.need(("async",), "it")
    word = modifiers.take("bulk", "commit_group", "wait_group", "wait_all", "mbarrier")
    if word == "commit_group":
        return lambda resident: resident.copies.commit(resident.active())
    if word == "wait_all":
        return lambda resident: resident.copies.wait_all(resident.mask)
    if word == "wait_group":
        newest = operands.constant(0)
        return lambda resident: resident.copies.wait(resident.mask, newest)
    if word == "bulk":
        return bulk(operands)
    if word is not None:
        raise operands.unsupported(f".{word}")
    return _begin(operands)


def _begin(operands: Operands) -> Step:
    modifiers = operands.modifiers
    cache = modifiers.need(("ca", "cg"), "a cache")
    modifiers.has("L2::64B", "L2::128B", "L2::256B")
    if not modifiers.has("shared", "shared::cta") or not modifiers.has("global"):
        raise operands.unsupported("it between these spaces")
    operands.need(3, 4)
    size = operands.constant(2)
    if size not in SIZES_BYTES or (cache == "cg" and size != 16):
        raise operands.unsupported(f"a copy of {size} bytes with .{cache}")
    target, source = operands.address(0), operands.address(1)
    source_bytes = operands.source(3, U32) if len(operands) == 4 else None
    whole = np.array([size], np.uint32)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        given = whole if source_bytes is None else source_bytes(resident)
        sizes = resident.chosen(given).astype(np.int64)
        resident.copies.begin(
            lanes, resident.chosen(target(resident)), resident.chosen(source(resident)), size, sizes
        )

    return step


DECODERS: dict[str, Callable[[Operands], Step]] = {"cp": copy}
