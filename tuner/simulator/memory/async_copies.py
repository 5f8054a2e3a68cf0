"""Asynchronous copies in flight, by cp.async and in bulk (TMA), and tensor maps in tiled mode.

cp.async takes effect when a thread waits for it. Bulk loads complete at an mbarrier, bulk stores in bulk
async-groups. The destination of a load is NaN from its issue until a thread waits at the mbarrier. A store
reads its source at issue; the source is compared again when a thread waits for the store, to detect changes
in between. A store writes when a thread waits for it without ``.read`` (which only releases the source), or,
after a wait with ``.read``, when the blocks end. PTX ISA, "Tensors", "Async-group mechanism", "Completion
Mechanisms for Asynchronous Copy Operations".
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import ml_dtypes
import numpy as np

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.errors import UsageError
from tuner.simulator.memory.access_log import Watch
from tuner.simulator.memory.global_memory import GlobalBuffer, GlobalMemory
from tuner.simulator.memory.shared_memory import POISON, MBarrier, MBarriers, SharedMemory
from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Bools, Indices, to_tf32

SWIZZLES_BYTES = (0, 32, 64, 128)
BOX_LIMIT = 256  # elements of one dimension; CUDA driver API, cuTensorMapEncodeTiled
ALIGN_BYTES = 16  # of strides
SWIZZLE_BITS = {0: 0, 32: 1, 64: 3, 128: 7}  # span in bytes -> mask: changed bits of a 16-byte chunk's index
TFLOAT32 = 11
# CUtensorMapDataType -> element type; 10 and 12, the FTZ types, flush subnormals and are not supported
DTYPES = {
    **{number: np.dtype(name) for number, name in enumerate(("u1", "u2", "u4", "i4", "u8", "i8", "f2"))},
    7: np.dtype("f4"),
    8: np.dtype("f8"),
    9: np.dtype(ml_dtypes.bfloat16),
    TFLOAT32: np.dtype("f4"),
}


@dataclass
class Copy:
    """A cp.async instruction in flight, for all threads that executed it; async-groups are per thread."""

    lanes: Indices
    starts: Indices  # offsets in the shared memory of all resident blocks
    content: Array  # [lane, byte]
    groups: Indices  # per lane: number of its async-group, from 0
    is_done: Bools
    reads_global: bool  # False: all threads only zero-fill
    who: str  # the first thread, for messages


class Copies:
    """The cp.async copies of resident blocks that are in flight."""

    def __init__(self, watch: Watch, global_: GlobalMemory, shared: SharedMemory) -> None:
        self._watch = watch
        self._global = global_
        self._shared = shared
        self._flying: list[Copy] = []
        self._groups = np.zeros(watch.geometry.lanes, np.int64)  # committed async-groups per thread

    def begin(
        self, lanes: Indices, targets: Indices, sources: Indices, size_bytes: int, source_bytes: Indices
    ) -> None:
        """Begins a cp.async per lane, from global ``sources`` to shared ``targets``: NaN until a wait.

        Each copy reads ``source_bytes`` bytes now, and fills the rest of ``size_bytes`` with zeros. Raises
        Fault for an invalid address, and for too many source bytes.
        """
        if (source_bytes > size_bytes).any():
            reason = f"found a source of {int(source_bytes.max())} bytes, allowed {size_bytes}"
            raise Fault(Defect.ILLEGAL, reason)
        starts = self._shared.begin_copy(lanes, targets, size_bytes)
        self._watch.require_aligned(lanes, sources, size_bytes)
        content = np.zeros((len(lanes), size_bytes), np.uint8)
        for size in np.unique(source_bytes[source_bytes > 0]):
            chosen = source_bytes == size
            loaded = self._global.load_bytes(self._watch, lanes[chosen], sources[chosen], int(size))
            content[chosen, :size] = loaded
        done = np.zeros(len(lanes), bool)
        who = self._watch.geometry.who(int(lanes[0]))
        groups = self._groups[lanes]
        reads_global = bool(source_bytes.any())
        self._flying.append(Copy(lanes, starts, content, groups, done, reads_global, who))

    def commit(self, lanes: Indices) -> None:
        """Closes the open async-group of each lane in ``lanes``: cp.async.commit_group."""
        self._groups[lanes] += 1

    def wait(self, mask: Bools, newest: int) -> None:
        """Completes committed copies of the lanes in ``mask``, except their ``newest`` latest groups."""
        for copy in self._flying:
            is_old = copy.groups < self._groups[copy.lanes] - newest
            lands = mask[copy.lanes] & ~copy.is_done & is_old
            if lands.any():
                self._shared.finish_copy(copy.lanes[lands], copy.starts[lands], copy.content[lands])
                copy.is_done |= lands
        self._flying = [copy for copy in self._flying if not copy.is_done.all()]

    def wait_all(self, mask: Bools) -> None:
        """Completes all copies of the lanes in ``mask``, committed or not."""
        self.commit(np.flatnonzero(mask))
        self.wait(mask, 0)

    def report_unfinished(self) -> None:
        """Reports copies that nobody waited for, except zero-fills, which pipelines issue at their end."""
        unfinished = [copy for copy in self._flying if copy.reads_global]
        if unfinished:
            example = f"{unfinished[0].who} ends with a cp.async in flight"
            self._watch.log.report(Defect.UNFINISHED, None, lambda: example, len(unfinished))


@dataclass
class BulkLoad:
    """A bulk copy to shared memory in flight: its bytes are written when a thread waits at its mbarrier."""

    offsets: Indices  # of each byte, in the shared memory of all resident blocks
    content: Array
    clock: int  # time of the write, in the mbarrier's component of the vector clocks


@dataclass
class BulkStore:
    """A bulk copy from shared memory in flight: the bytes read, and the function that writes them."""

    offsets: Indices
    content: Array
    clock: int  # time of the read, in the component of the block's bulk stores
    write: Callable[[Array], None]
    is_read: bool = False  # a thread waited for the read: the source may be overwritten


@dataclass
class BulkCopies:
    """The bulk copies (TMA) of resident blocks that are in flight."""

    watch: Watch
    shared: SharedMemory
    mbarriers: MBarriers
    store_column: int  # first column of the vector clocks for reads by stores, one per block of a cluster
    rng: np.random.Generator | None  # delays loads at random; None: no delays
    fenced: Array = field(init=False)  # per lane: clock of its last proxy fence
    _loads: dict[tuple[int, int], list[BulkLoad]] = field(default_factory=dict)  # (block, mbarrier address)
    _open_stores: dict[int, list[BulkStore]] = field(default_factory=dict)  # by lane
    _store_groups: dict[int, list[list[BulkStore]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fenced = np.zeros(self.watch.geometry.lanes, np.int32)

    @property
    def has_loads(self) -> bool:
        return bool(self._loads)

    def fence(self, lanes: Indices) -> None:
        """Makes the lanes' writes so far visible to the async proxy (PTX ISA): bulk copies and wgmma."""
        self.fenced[lanes] = self.watch.clocks.own(lanes)
        self.watch.clocks.tick(lanes)

    def multicast(self, lane: int, addresses: Indices, content: Array, mbarrier: int, mask: int) -> None:
        """Begins a bulk load of ``content`` to the blocks in ``mask`` (a bit per rank) of the lane's cluster.

        ``addresses`` has one shared address per byte; ``mbarrier`` is a shared address; both are the same in
        every block. Raises Fault for a mask that is empty or has bits above the cluster's ranks.
        """
        count = self.watch.geometry.cluster_blocks
        if not 0 < mask < 1 << count:
            raise Fault(Defect.ILLEGAL, f"found mask {mask:#x}, allowed ranks of a cluster of {count} blocks")
        for rank in range(count):
            if mask >> rank & 1:
                self.load(lane, addresses, content, mbarrier, rank)

    def load(
        self, lane: int, addresses: Indices, content: Array, mbarrier: int, rank: int | None = None
    ) -> None:
        """Begins a bulk load of ``content`` to shared ``addresses``, one per byte, NaN until a wait.

        The destination is the lane's block, or the one with ``rank``; ``mbarrier`` lies in that block. Raises
        Fault where there is no mbarrier, or for addresses out of bounds or over an mbarrier.
        """
        block = int(self.watch.geometry.block_index[lane])
        if rank is not None:
            block = int(self.watch.geometry.first_of_cluster(np.array([block]))[0]) + rank
        barrier = self.mbarriers.of_block(lane, block, mbarrier)
        whole = self._in_memory(lane, addresses, block)
        for address in self.mbarriers.addresses_of(block):
            if (addresses >> 3 == address >> 3).any():
                raise Fault(Defect.OUT_OF_BOUNDS, f"found a bulk copy over the mbarrier at {address}")
        cells = np.unique(whole // self.shared.races.cell_bytes)
        clock, found = self.shared.races.async_write(lane, cells, barrier.column)
        self.shared.report_agent(found, lane)
        self.shared.bytes[whole] = POISON
        self._loads.setdefault((block, mbarrier), []).append(BulkLoad(whole, content, clock))
        self.mbarriers.has_progress = True

    def land(self, block: int, mbarrier: int, barrier: MBarrier, must: bool) -> None:
        """Completes the bulk loads at an mbarrier; unless ``must``, a random schedule may delay them.

        ``mbarrier``: shared address; ``barrier``: its state, which the bytes are delivered to.
        """
        if (block, mbarrier) not in self._loads:
            return
        if not must and self.rng is not None and self.rng.random() < 0.5:
            return
        for load in self._loads.pop((block, mbarrier)):
            self.shared.bytes[load.offsets] = load.content
            self.mbarriers.deliver(barrier, len(load.content), load.clock)

    def store(self, lane: int, addresses: Indices, write: Callable[[Array], None]) -> None:
        """Begins a bulk store: reads bytes at shared addresses of the lane's block.

        ``write`` is called with the bytes when the lane waits for the store, or in ``end`` where it waited
        only for the read. Raises Fault for addresses out of bounds.
        """
        block = int(self.watch.geometry.block_index[lane])
        races = self.shared.races
        whole = self._in_memory(lane, addresses, block)
        cells = np.unique(whole // races.cell_bytes)
        clock, found = races.async_read(np.array([lane]), cells, self._column(lane), self.fenced)
        self.shared.report_agent(found, lane)
        content = self.shared.bytes[whole].copy()
        self._open_stores.setdefault(lane, []).append(BulkStore(whole, content, clock, write))

    def commit(self, lanes: Indices) -> None:
        """Closes the open bulk async-group of each lane: cp.async.bulk.commit_group."""
        for lane in lanes.tolist():
            self._store_groups.setdefault(lane, []).append(self._open_stores.pop(lane, []))

    def wait(self, lanes: Indices, newest: int, *, is_for_reads: bool) -> None:
        """Completes the lanes' bulk stores, but those in each lane's ``newest`` latest bulk async-groups.

        With ``is_for_reads`` (wait_group.read) only the reads of the sources are complete. Reports, as a
        hazard, a source that changed in flight.
        """
        for lane in lanes.tolist():
            groups = self._store_groups.get(lane, [])
            count = max(len(groups) - newest, 0)
            for store in itertools.chain(*groups[:count]):
                if not store.is_read:
                    store.is_read = True
                    if (self.shared.bytes[store.offsets] != store.content).any():
                        example = f"the source of a bulk store of {self.watch.geometry.who(lane)} changed"
                        instruction = self.watch.instruction
                        self.watch.log.report(Defect.IN_FLIGHT, instruction, partial(str, example))
                    self.watch.clocks.learn_agent(np.array([lane]), self._column(lane), store.clock)
                if not is_for_reads:
                    store.write(store.content)
            if not is_for_reads:
                del groups[:count]

    def _column(self, lane: int) -> int:
        geometry = self.watch.geometry
        return self.store_column + int(geometry.block_index[lane]) % geometry.cluster_blocks

    def _in_memory(self, lane: int, addresses: Indices, block: int) -> Indices:
        if addresses.min() < 0 or addresses.max() >= self.shared.limit_bytes:
            reason = f"found a bulk copy at shared bytes {addresses.min()} to {addresses.max()}"
            raise self.watch.out_of_bounds(lane, f"{reason}, allowed up to {self.shared.limit_bytes}")
        return addresses + block * self.shared.stride_bytes

    def end(self) -> None:
        """Writes stores whose read was waited for; reports other unfinished copies, and open mbarriers."""
        left = [store for groups in self._store_groups.values() for store in itertools.chain(*groups)]
        for store in left:
            if store.is_read:
                store.write(store.content)
        stores = any(self._open_stores.values()) or not all(store.is_read for store in left)
        for is_left, what in ((self.has_loads, "load"), (stores, "store")):
            if is_left:
                example = f"a bulk {what} is not waited for before the end"
                self.watch.log.report(Defect.UNFINISHED, None, partial(str, example))
        self.mbarriers.report_unfinished()


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A CUtensorMap in tiled mode over a numpy array; its dimensions and strides are those of the array.

    Raises UsageError for a swizzle other than 0, 32, 64 or 128 bytes, a box that lacks a size from 1 to 256
    per dimension or is wider than the swizzle (0: any), and outer strides that are not multiples of 16 bytes.
    """

    array: Array
    box: tuple[int, ...]  # elements of a copied box, in the order of the array's shape
    swizzle_bytes: int = 128
    is_tf32: bool = False  # CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: copies round f32 to tf32

    def __post_init__(self) -> None:
        if self.swizzle_bytes not in SWIZZLES_BYTES:
            raise UsageError(f"tensor map: found swizzle {self.swizzle_bytes}, allowed {SWIZZLES_BYTES}")
        if len(self.box) != self.array.ndim or not all(0 < size <= BOX_LIMIT for size in self.box):
            raise UsageError(
                f"tensor map: found box {self.box}, allowed {self.array.ndim} sizes from 1 to {BOX_LIMIT}"
            )
        if any(stride % ALIGN_BYTES for stride in self.array.strides[:-1]):
            raise UsageError(
                f"tensor map: found strides {self.array.strides}, allowed multiples of {ALIGN_BYTES} bytes"
            )
        inner_bytes = self.box[-1] * self.array.itemsize
        if self.swizzle_bytes and inner_bytes > self.swizzle_bytes:
            raise UsageError(
                f"tensor map: found a box {inner_bytes} bytes wide, allowed {self.swizzle_bytes}: the swizzle"
            )

    @property
    def box_bytes(self) -> int:
        return int(np.prod(self.box)) * self.array.itemsize

    def elements(self, coordinates: Sequence[int]) -> tuple[Indices, Bools]:
        """Returns (indices in the flat array, whether each lies inside) of the elements of a box.

        ``coordinates``: of the box's first element, innermost first, as in PTX; they may be outside of the
        array.
        """
        index = np.zeros(1, np.int64)
        inside = np.ones(1, bool)
        for axis, start in enumerate(reversed(coordinates)):
            index_along = start + np.arange(self.box[axis])
            stride = self.array.strides[axis] // self.array.itemsize
            index = (index[:, None] + index_along * stride).ravel()
            inside = (inside[:, None] & (index_along >= 0) & (index_along < self.array.shape[axis])).ravel()
        return index, inside

    def content(self, coordinates: Sequence[int]) -> Array:
        """Returns the bytes of the box at ``coordinates``: zeros outside, rounded if ``is_tf32``."""
        index, inside = self.elements(coordinates)
        flat = self.array.reshape(-1)
        content = np.zeros(len(index), flat.dtype)
        content[inside] = flat[index[inside]]
        if self.is_tf32:
            content = to_tf32(content.view(np.float32)).view(flat.dtype)
        return content.view(np.uint8)

    def store(self, coordinates: Sequence[int], content: Array) -> None:
        """Stores the bytes of the box at ``coordinates`` in the array; bytes outside of it are dropped."""
        index, inside = self.elements(coordinates)
        self.array.reshape(-1)[index[inside]] = content.view(self.array.dtype)[inside]

    def shared_addresses(self, start: int) -> Indices:
        """Returns the swizzled shared address of each byte of a box that begins at address ``start``."""
        return swizzled(start + np.arange(self.box_bytes), self.swizzle_bytes)


@dataclass(frozen=True, eq=False)
class PlacedMap:
    """A tensor map that a launch uses, with the global-memory buffer of its array."""

    tensor: TensorMap
    buffer: GlobalBuffer

    def cells(self, coordinates: Sequence[int]) -> Indices:
        """Returns the cells of race detection that a box covers in the array: ascending, (1, cells)."""
        index, inside = self.tensor.elements(coordinates)
        item_bytes = self.tensor.array.itemsize
        races = self.buffer.races
        return np.unique(races.cells(index[inside] * item_bytes, item_bytes))[None]


def swizzled(addresses: Indices, span_bytes: int) -> Indices:
    """Returns swizzled shared addresses: bits from 4 up are XORed with bits from 7 up (PTX ISA).

    ``span_bytes``: 0 (none), 32, 64 or 128; it says how many bits.
    """
    return addresses ^ ((addresses >> 7 & SWIZZLE_BITS[span_bytes]) << 4)


def extent_bytes(layout: TensorMapLayout) -> int:
    """Returns the bytes from a tensor's first element to the end of its last.

    Raises KeyError for an element type that is not in DTYPES.
    """
    item_bytes = int(DTYPES[layout.dtype].itemsize)
    strides = (item_bytes, *layout.strides_bytes)
    return item_bytes + sum((size - 1) * stride for size, stride in zip(layout.sizes, strides, strict=True))


def tensor_of(layout: TensorMapLayout, memory: Array, offset_bytes: int = 0) -> TensorMap:
    """Returns a layout's tensor map over ``memory`` (bytes), from ``offset_bytes`` on.

    Raises UsageError for a tensor that is not contiguous, or a map that is not simulated; KeyError for an
    element type that is not in DTYPES.
    """
    dtype = DTYPES[layout.dtype]
    shape = tuple(reversed(layout.sizes))
    strides = (*reversed(layout.strides_bytes), dtype.itemsize)
    array: Array = np.ndarray(shape, dtype, memory, offset_bytes, strides)
    if not array.flags.c_contiguous:
        raise UsageError(f"tensor map: found strides {strides}, allowed a contiguous tensor in the simulator")
    return TensorMap(
        array, tuple(reversed(layout.box)), SWIZZLES_BYTES[layout.swizzle], layout.dtype == TFLOAT32
    )
