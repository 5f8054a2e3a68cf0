"""Decoders of mbarrier instructions, and of cluster instructions: barrier.cluster, mapa, getctarank."""

from collections.abc import Callable

import numpy as np

from tuner.simulator.instructions.operands import (
    PREDICATE,
    SCOPES,
    U32,
    U64,
    Operands,
    Step,
    always,
    shared_address,
)
from tuner.simulator.memory.shared_memory import RANK_BIT, RANKS_LIMIT
from tuner.simulator.ptx.dtypes import TYPES, Bools
from tuner.simulator.ptx.syntax_tree import Address, Register
from tuner.simulator.state.resident_blocks import AT_MEMORY_BARRIER, ResidentBlocks, Threads

# A shared address of block r of the cluster has r + 1 above RANK_BIT; 0: the address is in the own block.
ABOVE_MASK = 2 * RANKS_LIMIT - 1  # holds every r + 1


def arrive_at_cluster(operands: Operands) -> Step:
    """Decodes PTX ``barrier.cluster.arrive``; with ``.aligned`` a step of a partial warp raises Fault."""
    modifiers = operands.modifiers
    modifiers.need(("cluster",), "a cluster")
    modifiers.need(("arrive",), "an arrival")
    is_relaxed = modifiers.has("relaxed")
    is_aligned = modifiers.has("aligned")
    modifiers.has("release")
    operands.need(0)

    def step(resident: ResidentBlocks) -> None:
        if is_aligned:
            resident.require_whole_warps(resident.mask)
        resident.cluster_barriers.arrive(resident.active(), releases=not is_relaxed)

    return step


def wait_cluster(operands: Operands, _labels: dict[str, int]) -> Callable[[Threads, Bools, int], None]:
    """Decodes PTX ``barrier.cluster.wait``: returns a ``control_flow.Terminator``."""
    modifiers = operands.modifiers
    modifiers.need(("cluster",), "a cluster")
    modifiers.need(("wait",), "a wait")
    is_aligned = modifiers.has("aligned")
    modifiers.has("acquire")
    operands.need(0)

    def terminator(threads: Threads, lanes: Bools, following: int) -> None:
        if is_aligned:
            threads.resident.require_whole_warps(lanes)
        threads.wait_for_cluster(lanes)
        threads.basic_block[lanes] = following

    return terminator


def map_address(operands: Operands) -> Step:
    """Decodes PTX ``mapa``: a shared address becomes that of the same bytes in the block of a given rank."""
    operands.modifiers.has("shared::cluster")
    type_ = operands.modifiers.type("u32", "u64")
    operands.need(3)
    write = operands.destination(0, type_)
    address = operands.source(1, type_)
    rank = operands.source(2, U32)

    def step(resident: ResidentBlocks) -> None:
        above = rank(resident).astype(type_.dtype) + type_.dtype.type(1)
        write(resident, address(resident) + (above << type_.dtype.type(RANK_BIT)))

    return step


def rank_of(operands: Operands) -> Step:
    """Decodes PTX ``getctarank``: returns a function that computes the rank of a shared address's block."""
    operands.modifiers.has("shared::cluster")
    type_ = operands.modifiers.type("u32", "u64")
    operands.need(2)
    write = operands.destination(0, U32)
    address = operands.source(1, TYPES[type_.name])

    def step(resident: ResidentBlocks) -> None:
        above = (resident.full(address(resident)).astype(np.int64) >> RANK_BIT) & ABOVE_MASK
        own = resident.special["%cluster_ctarank"]
        write(resident, np.where(above > 0, above - 1, own).astype(np.uint32))

    return step


CLUSTERS: dict[str, Callable[[Operands], Step]] = {
    "barrier": arrive_at_cluster,
    "mapa": map_address,
    "getctarank": rank_of,
}


def mbarrier(operands: Operands) -> Step:
    """Decodes PTX mbarrier.init, arrive (returns the phase as token), expect_tx, and inval (no effect)."""
    modifiers = operands.modifiers
    modifiers.type("b64")
    operation = modifiers.need(("init", "inval", "arrive", "expect_tx"), "an operation")
    modifiers.has("release", "relaxed")
    modifiers.has(*SCOPES)
    expects = operation == "arrive" and modifiers.take("expect_tx") is not None
    is_generic = modifiers.space() == "generic"
    if operation == "inval":
        operands.need(1)
        return lambda _resident: None
    if operation == "init":
        return _init(operands, is_generic)
    return _arrive_at_mbarrier(operands, is_generic, operation, expects)


def _init(operands: Operands, is_generic: bool) -> Step:
    operands.need(2)
    address = shared_address(operands, 0, is_generic)
    count = operands.source(1, U32)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = address(resident, lanes)
        counts = resident.chosen(count(resident)).astype(np.int64)
        # raises for an unaligned or outside address
        resident.spaces.shared.starts(lanes, addresses, 8)
        resident.mbarriers.init(lanes, addresses, counts)

    return step


def _arrive_at_mbarrier(operands: Operands, is_generic: bool, operation: str, expects: bool) -> Step:
    returns = not isinstance(operands.operand(0), Address)
    first = int(returns)
    address = shared_address(operands, first, is_generic)
    given = operands.source(first + 1, U32) if len(operands) > first + 1 else always(1)
    write = operands.destination(0, U64) if returns else None
    counts, bytes_ = (always(1), given) if expects else (given, always(0))
    if operation == "expect_tx":
        counts = always(0)
        bytes_ = given

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        phases = resident.mbarriers.arrive(
            lanes,
            address(resident, lanes),
            resident.chosen(counts(resident)).astype(np.int64),
            resident.chosen(bytes_(resident)).astype(np.int64),
        )
        if write is not None:
            spread = np.zeros(len(resident.mask), np.uint64)
            spread[lanes] = phases
            write(resident, spread)

    return step


def wait_mbarrier(operands: Operands, _labels: dict[str, int]) -> Callable[[Threads, Bools, int], None]:
    """Decodes PTX mbarrier.try_wait and test_wait as waits: a kernel never sees the result False."""
    modifiers = operands.modifiers
    modifiers.type("b64")
    modifiers.need(("try_wait", "test_wait"), "an operation")
    modifiers.has("acquire", "relaxed")
    modifiers.has(*SCOPES)
    is_parity = modifiers.take("parity") is not None
    is_generic = modifiers.space() == "generic"
    operands.need(3, 4)  # the 4th, the suspend-time hint, is ignored
    result = operands.operand(0)
    address = shared_address(operands, 1, is_generic)
    state = operands.source(2, U32 if is_parity else U64)
    operands.writer(result, PREDICATE)  # raises unless a predicate
    assert isinstance(result, Register)

    def terminator(threads: Threads, lanes: Bools, following: int) -> None:
        resident = threads.resident
        indices = np.flatnonzero(lanes)
        addresses = address(resident, indices)
        blocks = resident.geometry.block_index[indices]
        awaited = zip(blocks.tolist(), addresses.tolist(), strict=True)
        lane_of = dict(zip(awaited, indices.tolist(), strict=True))  # a lane that waits at each mbarrier
        # bulk copies arrive here; a random schedule may delay them unless nothing else can run
        for (block, mbarrier), lane in lane_of.items():
            resident.bulk.land(block, mbarrier, resident.mbarriers.at(lane, mbarrier), threads.is_stuck)
        states = resident.full(state(resident))[indices].astype(np.int64)
        done = indices[resident.mbarriers.test(indices, addresses, states, is_parity)]
        waiting = lanes.copy()
        waiting[done] = False
        threads.status[waiting] = AT_MEMORY_BARRIER
        threads.basic_block[done] = following
        if len(done):
            resident.scatter(result.name, done, np.ones(len(done), bool))
            threads.is_stuck = False

    return terminator


MBARRIERS: dict[str, Callable[[Operands], Step]] = {"mbarrier": mbarrier}
