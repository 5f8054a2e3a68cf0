"""Cluster instructions: barrier.cluster, mapa and getctarank."""

from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.operands import U32, Operands, Step
from tuner.simulator.ptx.dtypes import TYPES, Bools
from tuner.simulator.ptx.memory.cluster_memory import RANK_BIT
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks
from tuner.simulator.ptx.state.thread_states import Threads


def arrive(operands: Operands) -> Step:
    """Decodes PTX ``barrier.cluster.arrive``: returns a function that counts the active lanes' arrivals.

    The function raises Fault for a second arrival without a wait in between, and, with ``.aligned``, for a
    partial warp.
    """
    modifiers = operands.modifiers
    modifiers.need(("cluster",), "a cluster")
    modifiers.need(("arrive",), "an arrival")
    is_relaxed, is_aligned = modifiers.has("relaxed"), modifiers.has("aligned")
    modifiers.has("release")
    operands.need(0)

    def step(resident: ResidentBlocks) -> None:
        if is_aligned:
            resident.require_whole_warps(resident.mask)
        resident.cluster_barriers.arrive(resident.active(), releases=not is_relaxed)

    return step


def wait(operands: Operands, _labels: dict[str, int]) -> Callable[[Threads, Bools, int], None]:
    """Decodes PTX ``barrier.cluster.wait``: returns a function that makes lanes wait for their cluster.

    The function is called with (states of the threads, mask of the lanes, number of the basic block that
    follows). ``_labels`` is unused: all decoders of terminators have the same parameters.
    """
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
    """Decodes PTX ``mapa``: returns a function that maps a shared address to another block of the cluster.

    The result addresses the same offset in the shared memory of the block with the given rank.
    """
    operands.modifiers.has("shared::cluster")
    type_ = operands.modifiers.type("u32", "u64")
    operands.need(3)
    write = operands.destination(0, type_)
    address, rank = operands.source(1, type_), operands.source(2, U32)

    def step(resident: ResidentBlocks) -> None:
        above = rank(resident).astype(type_.dtype) + type_.dtype.type(1)
        write(resident, address(resident) + (above << type_.dtype.type(RANK_BIT)))

    return step


def rank_of(operands: Operands) -> Step:
    """Decodes PTX ``getctarank``: returns a function that computes which block a shared address belongs to.

    The result is the block's rank in its cluster; an address without a rank gives the rank of the lane's
    block.
    """
    operands.modifiers.has("shared::cluster")
    type_ = operands.modifiers.type("u32", "u64")
    operands.need(2)
    write, address = operands.destination(0, U32), operands.source(1, TYPES[type_.name])

    def step(resident: ResidentBlocks) -> None:
        above = (resident.full(address(resident)).astype(np.int64) >> RANK_BIT) & 0x1F
        own = resident.special["%cluster_ctarank"]
        write(resident, np.where(above > 0, above - 1, own).astype(np.uint32))

    return step


DECODERS: dict[str, Callable[[Operands], Step]] = {
    "barrier": arrive,
    "mapa": map_address,
    "getctarank": rank_of,
}
