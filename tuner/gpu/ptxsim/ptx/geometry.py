"""The thread and thread block of each lane, and the special registers that describe them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np

from tuner.gpu.ptxsim.ptx.dtypes import Array, Indices

WARP_LANES = 32
THREADS_LIMIT = 1024  # of a block; CUDA C programming guide, compute capabilities
Index3: TypeAlias = tuple[int, int, int]  # x, y, z
Number = TypeVar("Number", int, Indices)


def linear(index: Index3, extent: Index3) -> int:
    """Returns the linear index of the index (x, y, z) in a grid of ``extent``; x varies fastest."""
    return index[0] + extent[0] * (index[1] + extent[1] * index[2])


def unravel(number: Number, extent: Index3) -> tuple[Number, Number, Number]:
    """Returns the index (x, y, z) of linear index ``number`` in a grid of ``extent``; x varies fastest."""
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


@dataclass(frozen=True)
class Geometry:
    """The thread blocks that are simulated together; each lane executes a thread, or pads a warp."""

    grid: Index3  # blocks
    block: Index3  # threads
    blocks: tuple[int, ...]  # linear indices in the grid; blocks of one cluster are adjacent
    cluster: Index3 = (1, 1, 1)  # blocks
    lanes: int = field(init=False)
    block_lanes: int = field(init=False)  # lanes of one block
    threads: int = field(init=False)  # threads of one block
    thread: Indices = field(init=False)  # per lane: thread number in its block
    block_index: Indices = field(init=False)  # per lane: index into ``blocks``
    cluster_index: Indices = field(init=False)  # per lane: number of its cluster among the resident clusters
    member: Indices = field(init=False)  # per lane: number in its cluster

    def __post_init__(self) -> None:
        threads = math.prod(self.block)
        block_lanes = -(-threads // WARP_LANES) * WARP_LANES
        count = len(self.blocks)
        object.__setattr__(self, "threads", threads)
        object.__setattr__(self, "block_lanes", block_lanes)
        object.__setattr__(self, "lanes", block_lanes * count)
        object.__setattr__(self, "thread", np.tile(np.arange(block_lanes), count))
        object.__setattr__(self, "block_index", np.repeat(np.arange(count), block_lanes))
        object.__setattr__(self, "cluster_index", self.block_index // self.cluster_blocks)
        object.__setattr__(self, "member", np.arange(self.lanes) % self.cluster_lanes)

    @property
    def warps(self) -> int:
        """Returns the number of warps of one thread block, a partial warp included."""
        return self.block_lanes // WARP_LANES

    @property
    def cluster_blocks(self) -> int:
        return math.prod(self.cluster)

    @property
    def cluster_lanes(self) -> int:
        return self.block_lanes * self.cluster_blocks

    @property
    def cluster_warps(self) -> int:
        return self.cluster_lanes // WARP_LANES

    def first_of_cluster(self, block_index: Indices) -> Indices:
        return block_index // self.cluster_blocks * self.cluster_blocks

    def lanes_of_cluster(self, number: int) -> slice:
        return slice(number * self.cluster_lanes, (number + 1) * self.cluster_lanes)

    def lanes_of(self, block_index: int) -> slice:
        return slice(block_index * self.block_lanes, (block_index + 1) * self.block_lanes)

    def who(self, lane: int) -> str:
        """Returns a lane's thread and block as text: "thread (3, 0, 0) of block (1, 0, 0)"."""
        block = unravel(self.blocks[int(self.block_index[lane])], self.grid)
        return f"thread {unravel(int(self.thread[lane]), self.block)} of block {block}"

    def special_registers(self) -> dict[str, Array]:
        """Returns the simulated special registers: name, such as "%tid.x" -> value per lane (uint32).

        Clocks, %smid and %gridid are not simulated. PTX ISA, "Special Registers".
        """
        number = np.asarray(self.blocks)[self.block_index]
        lane = self.thread % WARP_LANES
        bit = np.uint64(1) << lane.astype(np.uint64)
        values: dict[str, Array | int] = {
            "%laneid": lane,
            "%warpid": self.thread // WARP_LANES,
            "%nwarpid": self.warps,
            "%cluster_ctarank": self.block_index % self.cluster_blocks,
            "%cluster_nctarank": self.cluster_blocks,
            "%lanemask_eq": bit,
            "%lanemask_lt": bit - np.uint64(1),
            "%lanemask_le": 2 * bit - np.uint64(1),
            "%lanemask_gt": ~(2 * bit - np.uint64(1)),
            "%lanemask_ge": ~(bit - np.uint64(1)),
        }
        threads_of = unravel(self.thread, self.block)
        blocks_of = unravel(number, self.grid)
        columns = ("xyz", threads_of, self.block, blocks_of, self.grid, self.cluster)
        for axis, thread, threads, block, blocks, size in zip(*columns, strict=True):
            values |= {f"%tid.{axis}": thread, f"%ntid.{axis}": threads}
            values |= {f"%ctaid.{axis}": block, f"%nctaid.{axis}": blocks}
            values |= {f"%clusterid.{axis}": block // size, f"%nclusterid.{axis}": blocks // size}
            values |= {f"%cluster_ctaid.{axis}": block % size, f"%cluster_nctaid.{axis}": size}
        return {name: np.full(self.lanes, value).astype(np.uint32) for name, value in values.items()}


def whole_clusters(blocks: Iterable[Index3], cluster: Index3) -> tuple[Index3, ...]:
    """Returns all blocks (x, y, z) of the clusters that contain one of ``blocks``, by cluster, then rank."""
    width, height, depth = cluster
    corners = dict.fromkeys((x - x % width, y - y % height, z - z % depth) for x, y, z in blocks)
    within = [unravel(rank, cluster) for rank in range(math.prod(cluster))]
    return tuple((x + i, y + j, z + k) for x, y, z in corners for i, j, k in within)
