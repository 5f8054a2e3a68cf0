"""What the lanes of a warp do together: shfl, vote, activemask, redux, elect, bar.warp.sync."""

from collections.abc import Callable

import numpy as np

from tuner.ptx.chunk import UNWRITTEN, Chunk
from tuner.ptx.decode.operands import PREDICATE, S32, U32, Operands, Reader, Step, Writer
from tuner.ptx.defects import Defect, Fault
from tuner.ptx.dtypes import TYPES, Array, Bools
from tuner.ptx.geometry import WARP_LANES

LANE = np.arange(WARP_LANES)
REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def members(chunk: Chunk, mask: Array) -> Bools:
    """Returns, per warp, the lanes that the member mask names [warp, lane]; all of them must execute."""
    active = chunk.mask.reshape(-1, WARP_LANES)
    named = (chunk.full(mask).reshape(-1, WARP_LANES) >> LANE.astype(np.uint32)) & 1 == 1
    if (active & ~named).any():
        lane = int((active & ~named).ravel().argmax())
        raise Fault(Defect.ILLEGAL, f"{chunk.geometry.who(lane)} is not in its own member mask")
    masks = np.where(active, chunk.full(mask).reshape(-1, WARP_LANES), 0).max(axis=1)
    wanted = (masks[:, None] >> LANE.astype(np.uint32)) & 1 == 1
    missing = wanted & ~chunk.exited.reshape(-1, WARP_LANES) & ~active & active.max(axis=1, keepdims=True)
    if missing.any():
        lane = int(missing.ravel().argmax())
        raise Fault(Defect.DIVERGENCE, f"{chunk.geometry.who(lane)} is in the member mask, but not here")
    found: Bools = wanted & active
    return found


def shuffle(operands: Operands) -> Step:
    """Decodes shfl.sync. A lane that is not there gives NaN."""
    modifiers = operands.modifiers
    type_ = modifiers.type("b32")
    modifiers.need(("sync",), "a member mask")
    mode = modifiers.need(("up", "down", "bfly", "idx"), "a mode")
    operands.need(5)
    first, second = operands.pair(0)
    write = operands.writer(first, type_)
    write_found = None if second is None else operands.writer(second, PREDICATE)
    value, amount, bound, mask = (
        operands.source(number, type_) for number, type_ in ((1, type_), (2, S32), (3, S32), (4, U32))
    )

    def step(chunk: Chunk) -> None:
        here = members(chunk, mask(chunk))
        source, found = _shuffle_sources(
            mode, _by_warp(chunk, amount).astype(np.int64), _by_warp(chunk, bound).astype(np.int64)
        )
        values = _by_warp(chunk, value)
        moved = np.take_along_axis(values, source, axis=1)
        is_there = np.take_along_axis(here, source, axis=1)
        write(chunk, np.where(is_there, moved, np.uint32(UNWRITTEN & 0xFFFFFFFF)).ravel())
        if write_found is not None:
            write_found(chunk, found.ravel())

    return step


def _by_warp(chunk: Chunk, read: Reader) -> Array:
    return chunk.full(read(chunk)).reshape(-1, WARP_LANES)


def _shuffle_sources(mode: str, amount: Array, bound: Array) -> tuple[Array, Array]:
    """Returns the lane that each lane reads, and whether it is within bounds; else it reads itself."""
    segment = bound >> 8 & 31
    limit = (LANE & segment) | (bound & 31 & ~segment)
    lowest = LANE & segment
    source = {
        "up": LANE - (amount & 31),
        "down": LANE + (amount & 31),
        "bfly": LANE ^ (amount & 31),
        "idx": lowest | (amount & 31 & ~segment),
    }[mode]
    found = source >= limit if mode == "up" else source <= limit
    return np.where(found, source, LANE), found


def vote(operands: Operands) -> Step:
    """Decodes vote.sync: all, any, uni, ballot."""
    modifiers = operands.modifiers
    modifiers.need(("sync",), "a member mask")
    kind = modifiers.need(("all", "any", "uni", "ballot"), "a mode")
    result = modifiers.type("b32" if kind == "ballot" else "pred")
    operands.need(3)
    write = operands.destination(0, result)
    predicate, mask = operands.source(1, PREDICATE), operands.source(2, U32)

    def step(chunk: Chunk) -> None:
        here = members(chunk, mask(chunk))
        holds = _by_warp(chunk, predicate)
        everyone, someone = (holds | ~here).min(axis=1), (holds & here).max(axis=1)
        if kind == "ballot":
            _write_warps(chunk, write, _ballot(holds & here))
        else:
            _write_warps(chunk, write, {"all": everyone, "any": someone, "uni": everyone | ~someone}[kind])

    return step


def _ballot(bits: Bools) -> Array:
    found: Array = (bits.astype(np.uint32) << LANE.astype(np.uint32)).sum(axis=1, dtype=np.uint32)
    return found


def _write_warps(chunk: Chunk, write: Writer, values: Array) -> None:
    """Sets a register of all lanes to the value of their warp."""
    write(chunk, np.repeat(values, WARP_LANES))


def active_mask(operands: Operands) -> Step:
    """Decodes activemask."""
    operands.modifiers.type("b32")
    write = operands.destination(0, U32)
    return lambda chunk: _write_warps(chunk, write, _ballot(chunk.mask.reshape(-1, WARP_LANES)))


def reduce_warp(operands: Operands) -> Step:
    """Decodes redux.sync of integers."""
    modifiers = operands.modifiers
    type_ = modifiers.type("u32", "s32", "b32")
    modifiers.need(("sync",), "a member mask")
    function = REDUCTIONS[modifiers.need(REDUCTIONS, "an operation")]
    operands.need(3)
    write, read = operands.destination(0, type_), operands.source(1, type_)
    mask = operands.source(2, U32)

    def step(chunk: Chunk) -> None:
        here, values = members(chunk, mask(chunk)), _by_warp(chunk, read)
        results = np.zeros(len(here), type_.dtype)
        for warp in np.flatnonzero(here.any(axis=1)):
            total = values[warp, here[warp]][0]
            for value in values[warp, here[warp]][1:]:
                total = function(total, value)
            results[warp] = total
        _write_warps(chunk, write, results)

    return step


def elect(operands: Operands) -> Step:
    """Decodes elect.sync: the lowest lane is the leader."""
    operands.modifiers.need(("sync",), "a member mask")
    operands.need(2)
    first, second = operands.pair(0)
    write = operands.writer(first, U32)
    write_leads = None if second is None else operands.writer(second, PREDICATE)
    mask = operands.source(1, U32)

    def step(chunk: Chunk) -> None:
        leader = members(chunk, mask(chunk)).argmax(axis=1)
        _write_warps(chunk, write, leader.astype(np.uint32))
        if write_leads is not None:
            write_leads(chunk, (leader[:, None] == LANE).ravel())

    return step


def synchronise_warp(chunk: Chunk, mask: Array) -> None:
    """Tells the members of each warp what all of them did: bar.warp.sync."""
    here = members(chunk, mask)
    for warp in np.flatnonzero(here.any(axis=1)):
        chunk.watch.clocks.join(warp * WARP_LANES + np.flatnonzero(here[warp]))


def warp_barrier(operands: Operands) -> Step:
    """Decodes bar.warp.sync, which also orders memory among its members."""
    operands.modifiers.need(("warp",), "a warp")
    operands.modifiers.need(("sync",), "a member mask")
    operands.need(1)
    mask = operands.source(0, TYPES["b32"])
    return lambda chunk: synchronise_warp(chunk, mask(chunk))


DECODERS: dict[str, Callable[[Operands], Step]] = {
    "shfl": shuffle,
    "vote": vote,
    "activemask": active_mask,
    "redux": reduce_warp,
    "elect": elect,
    "bar": warp_barrier,
}
