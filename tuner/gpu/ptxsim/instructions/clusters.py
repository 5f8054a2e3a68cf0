"""Decoders of instructions of thread block clusters: barrier.cluster, mapa, getctarank."""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import U32, Operands, Step
from tuner.gpu.ptxsim.memory.shared_memory import RANK_BIT, RANKS_LIMIT
from tuner.gpu.ptxsim.ptx.dtypes import TYPES, Bools
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks, Threads

# A shared address of block r of the cluster has r + 1 above RANK_BIT; 0: the address is in the own block.
ABOVE_MASK = 2 * RANKS_LIMIT - 1  # holds every r + 1


def arrive_at_cluster(operands: Operands) -> Step:
    """Decodes PTX ``barrier.cluster.arrive``: returns a function that counts an arrival of the active lanes.

    With ``.aligned`` the function raises Fault for a partial warp.
    """
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
    """Decodes PTX ``mapa``: returns a function that computes an address in a block of the cluster.

    It is the address of the same bytes as a shared address, in the block of a given rank.
    """
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
