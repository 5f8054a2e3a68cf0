"""Decoders of warp-level instructions: shfl, vote, activemask, redux, elect, bar.warp.sync."""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import PREDICATE, S32, U32, Operands, Reader, Step, Writer
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, Array, Bools
from tuner.gpu.ptxsim.ptx.geometry import WARP_LANES
from tuner.gpu.ptxsim.state.resident_blocks import UNWRITTEN, ResidentBlocks

LANE = np.arange(WARP_LANES)
BIT = LANE.astype(np.uint32)  # of each lane in a mask
UNDEFINED = np.uint32(UNWRITTEN & 0xFFFFFFFF)  # the low 32 bits of an unwritten register
REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def members(resident: ResidentBlocks, mask: Array) -> Bools:
    """Returns the active lanes that each warp's member mask names: bool [warp, lane of the warp].

    ``mask``: each lane's 32-bit member mask of a .sync instruction; a warp's greatest one counts. Raises
    Fault if a named lane is neither active nor exited, or an active lane is not in its own mask.
    """
    active = resident.mask.reshape(-1, WARP_LANES)
    masks = resident.full(mask).reshape(-1, WARP_LANES)
    named = masks >> BIT & 1 == 1  # each lane in its own mask
    if (active & ~named).any():
        lane = int((active & ~named).ravel().argmax())
        raise Fault(Defect.ILLEGAL, f"{resident.geometry.who(lane)} is not in its own member mask")
    # in a correct program a warp's active lanes have one mask: its maximum, with 0 for inactive lanes
    wanted = np.where(active, masks, 0).max(axis=1, keepdims=True) >> BIT & 1 == 1
    missing = wanted & ~resident.exited.reshape(-1, WARP_LANES) & ~active & active.max(axis=1, keepdims=True)
    if missing.any():
        lane = int(missing.ravel().argmax())
        raise Fault(Defect.DIVERGENCE, f"{resident.geometry.who(lane)} is in the member mask, but not here")
    found: Bools = wanted & active
    return found


def shuffle(operands: Operands) -> Step:
    """Decodes PTX shfl.sync; a second destination gets whether the source lane was in range.

    A lane whose source is out of range gets its own value. Reading an inactive lane, which is undefined,
    gives NaN.
    """
    modifiers = operands.modifiers
    type_ = modifiers.type("b32")
    modifiers.need(("sync",), "a member mask")
    mode = modifiers.need(("up", "down", "bfly", "idx"), "a mode")
    operands.need(5)
    first, second = operands.pair(0)
    write = operands.writer(first, type_)
    write_in_range = None if second is None else operands.writer(second, PREDICATE)
    value = operands.source(1, type_)
    mask = operands.source(4, U32)
    amount = operands.source(2, S32)
    bound = operands.source(3, S32)

    def step(resident: ResidentBlocks) -> None:
        here = members(resident, mask(resident))
        distance = _by_warp(resident, amount).astype(np.int64)
        limits = _by_warp(resident, bound).astype(np.int64)
        # PTX ISA, shfl.sync: c has the clamp in bits 0 to 4, the mask of a segment in bits 8 to 12, and
        # maxLane = (lane[4:0] & segmask) | (cval[4:0] & ~segmask)
        distance = distance & 31
        segment = limits >> 8 & 31
        limit = (LANE & segment) | (limits & 31 & ~segment)
        source = {
            "up": LANE - distance,
            "down": LANE + distance,
            "bfly": LANE ^ distance,
            "idx": (LANE & segment) | (distance & ~segment),
        }[mode]
        in_range = source >= limit if mode == "up" else source <= limit
        source = np.where(in_range, source, LANE)
        moved = np.take_along_axis(_by_warp(resident, value), source, axis=1)
        is_there = np.take_along_axis(here, source, axis=1)
        write(resident, np.where(is_there, moved, UNDEFINED).ravel())
        if write_in_range is not None:
            write_in_range(resident, in_range.ravel())

    return step


def _by_warp(resident: ResidentBlocks, read: Reader) -> Array:
    return resident.full(read(resident)).reshape(-1, WARP_LANES)


def vote(operands: Operands) -> Step:
    """Decodes PTX vote.sync all, any, uni, giving a predicate, and ballot, giving a mask of lanes."""
    modifiers = operands.modifiers
    modifiers.need(("sync",), "a member mask")
    mode = modifiers.need(("all", "any", "uni", "ballot"), "a mode")
    result = modifiers.type("b32" if mode == "ballot" else "pred")
    operands.need(3)
    write = operands.destination(0, result)
    predicate = operands.source(1, PREDICATE)
    mask = operands.source(2, U32)

    def step(resident: ResidentBlocks) -> None:
        here = members(resident, mask(resident))
        holds = _by_warp(resident, predicate)
        everyone = (holds | ~here).min(axis=1)
        someone = (holds & here).max(axis=1)
        if mode == "ballot":
            _write_warps(resident, write, _ballot(holds & here))
        else:
            _write_warps(resident, write, {"all": everyone, "any": someone, "uni": everyone | ~someone}[mode])

    return step


def _ballot(bits: Bools) -> Array:
    found: Array = (bits.astype(np.uint32) << BIT).sum(axis=1, dtype=np.uint32)
    return found


def _write_warps(resident: ResidentBlocks, write: Writer, values: Array) -> None:
    write(resident, np.repeat(values, WARP_LANES))


def active_mask(operands: Operands) -> Step:
    """Decodes PTX activemask: returns a function that writes the 32-bit mask of the warp's active lanes."""
    operands.modifiers.type("b32")
    write = operands.destination(0, U32)
    return lambda resident: _write_warps(resident, write, _ballot(resident.mask.reshape(-1, WARP_LANES)))


def reduce_warp(operands: Operands) -> Step:
    """Decodes PTX ``redux.sync``: returns a function that reduces integers over a warp's member lanes."""
    modifiers = operands.modifiers
    type_ = modifiers.type("u32", "s32", "b32")
    modifiers.need(("sync",), "a member mask")
    function = REDUCTIONS[modifiers.need(REDUCTIONS, "an operation")]
    operands.need(3)
    write = operands.destination(0, type_)
    read = operands.source(1, type_)
    mask = operands.source(2, U32)

    def step(resident: ResidentBlocks) -> None:
        here = members(resident, mask(resident))
        values = _by_warp(resident, read)
        results = np.zeros(len(here), type_.dtype)
        for warp in np.flatnonzero(here.any(axis=1)):
            results[warp] = function.reduce(values[warp, here[warp]], dtype=type_.dtype)
        _write_warps(resident, write, results)

    return step


def elect(operands: Operands) -> Step:
    """Decodes PTX ``elect.sync``: returns a function that writes each warp's lowest member lane.

    A second destination gets a predicate that is True in this lane only.
    """
    operands.modifiers.need(("sync",), "a member mask")
    operands.need(2)
    first, second = operands.pair(0)
    write = operands.writer(first, U32)
    write_leads = None if second is None else operands.writer(second, PREDICATE)
    mask = operands.source(1, U32)

    def step(resident: ResidentBlocks) -> None:
        leader = members(resident, mask(resident)).argmax(axis=1)
        _write_warps(resident, write, leader.astype(np.uint32))
        if write_leads is not None:
            write_leads(resident, (leader[:, None] == LANE).ravel())

    return step


def synchronise_warp(resident: ResidentBlocks, mask: Array) -> None:
    """Orders the memory accesses of each warp's member lanes, as bar.warp.sync does.

    ``mask``: each lane's 32-bit member mask.
    """
    here = members(resident, mask)
    for warp in np.flatnonzero(here.any(axis=1)):
        resident.watch.clocks.join(warp * WARP_LANES + np.flatnonzero(here[warp]))


def warp_barrier(operands: Operands) -> Step:
    """Decodes PTX ``bar.warp.sync``: orders the memory accesses of the member lanes."""
    operands.modifiers.need(("warp",), "a warp")
    operands.modifiers.need(("sync",), "a member mask")
    operands.need(1)
    mask = operands.source(0, TYPES["b32"])
    return lambda resident: synchronise_warp(resident, mask(resident))


DECODERS: dict[str, Callable[[Operands], Step]] = {
    "shfl": shuffle,
    "vote": vote,
    "activemask": active_mask,
    "redux": reduce_warp,
    "elect": elect,
    "bar": warp_barrier,
}
