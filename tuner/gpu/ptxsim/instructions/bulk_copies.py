"""Decoders of asynchronous copies: cp.async, and cp.async.bulk of bytes and of tensors (TMA)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import S32, U16, U32, Operands, Reader, Step, always
from tuner.gpu.ptxsim.memory.tensor_maps import PlacedMap
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import Array
from tuner.gpu.ptxsim.ptx.syntax_tree import Address
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

TILE_ALIGN_BYTES = 128  # of a box in shared memory; PTX ISA, "cp.async.bulk.tensor"
BULK_ALIGN_BYTES = 16  # of addresses and size; PTX ISA, "cp.async.bulk"
SHARED_SPACES = ("shared::cluster", "shared::cta")
COMPLETES = "mbarrier::complete_tx::bytes"
DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "4d": 4, "5d": 5}
SIZES_BYTES = (4, 8, 16)


def copy(operands: Operands) -> Step:
    """Decodes PTX ``cp.async`` from global to shared memory, its groups and waits, and ``cp.async.bulk``."""
    modifiers = operands.modifiers
    modifiers.need_each("async")
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
        raise operands.unsupported("this instruction between these spaces")
    operands.need(3, 4)
    size = operands.constant(2)
    if size not in SIZES_BYTES or (cache == "cg" and size != 16):
        raise operands.unsupported(f"a copy of {size} bytes with .{cache}")
    target = operands.address(0)
    source = operands.address(1)
    source_bytes = always(size)
    if len(operands) == 4:
        source_bytes = operands.source(3, U32)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        sizes = resident.chosen(source_bytes(resident)).astype(np.int64)
        targets = resident.chosen(target(resident))
        sources = resident.chosen(source(resident))
        resident.copies.begin(lanes, targets, sources, size, sizes)

    return step


def bulk(operands: Operands) -> Step:
    """Decodes PTX cp.async.bulk: copies of bytes, or of tensors in tiled mode; commit_group; wait_group."""
    modifiers = operands.modifiers
    if modifiers.take("commit_group"):
        return lambda resident: resident.bulk.commit(resident.active())
    if modifiers.take("wait_group"):
        is_for_reads = modifiers.take("read") is not None
        newest = operands.constant(0)
        return lambda resident: resident.bulk.wait(resident.active(), newest, is_for_reads=is_for_reads)
    is_load = operands.instruction.opcode.find(COMPLETES) >= 0
    modifiers.need((COMPLETES,) if is_load else ("bulk_group",), "a completion mechanism")
    modifiers.need(SHARED_SPACES, "shared memory")
    modifiers.need(("global",), "global memory")
    if modifiers.take("tensor"):
        rank = DIMENSIONS[modifiers.need(DIMENSIONS, "a number of dimensions")]
        modifiers.take("tile")
        if is_load:
            return _tensor_load(operands, rank)
        return _tensor_store(operands, rank)
    if is_load:
        return _plain_load(operands)
    return _plain_store(operands)


def _tensor_load(operands: Operands, rank: int) -> Step:
    is_multicast = operands.modifiers.take("multicast::cluster") is not None
    operands.need(4 if is_multicast else 3)
    target = operands.address(0)
    mbarrier = operands.address(2)
    mask = operands.source(3, U16) if is_multicast else always(0)
    map_address, coordinates = _tensor(operands, 1, rank)

    def step(resident: ResidentBlocks) -> None:
        read = _per_lane(resident, target, mbarrier, mask, map_address, *coordinates)
        for lane in resident.active().tolist():
            start, barrier, ranks, at, *position = (int(values[lane]) for values in read)
            placed = _map_at(resident, at, rank)
            _require_aligned(start, TILE_ALIGN_BYTES)
            _report_races(resident, lane, placed, position, is_write=False)
            addresses = placed.tensor.shared_addresses(start)
            content = placed.tensor.content(position)
            if is_multicast:
                resident.bulk.multicast(lane, addresses, content, barrier, ranks)
            else:
                resident.bulk.load(lane, addresses, content, barrier)

    return step


def _tensor_store(operands: Operands, rank: int) -> Step:
    operands.need(2)
    source = operands.address(1)
    map_address, coordinates = _tensor(operands, 0, rank)

    def step(resident: ResidentBlocks) -> None:
        read = _per_lane(resident, source, map_address, *coordinates)
        for lane in resident.active().tolist():
            start, at, *position = (int(values[lane]) for values in read)
            placed = _map_at(resident, at, rank)
            _require_aligned(start, TILE_ALIGN_BYTES)
            write = partial(_write_box, resident, lane, placed, position)
            resident.bulk.store(lane, placed.tensor.shared_addresses(start), write)

    return step


def _write_box(
    resident: ResidentBlocks, lane: int, placed: PlacedMap, position: list[int], content: Array
) -> None:
    _report_races(resident, lane, placed, position, is_write=True)
    placed.tensor.store(position, content)


def _report_races(
    resident: ResidentBlocks, lane: int, placed: PlacedMap, position: list[int], is_write: bool
) -> None:
    lanes = np.array([lane])
    cells = placed.cells(position)
    races = placed.buffer.races
    access = races.write if is_write else races.read
    found = access(resident.watch.clocks, lanes, cells, False)
    resident.watch.report(found, lanes, placed.buffer.name, races.cell_bytes)


def _plain_load(operands: Operands) -> Step:
    operands.need(4)
    target = operands.address(0)
    source = operands.address(1)
    mbarrier = operands.address(3)
    size = operands.source(2, U32)

    def step(resident: ResidentBlocks) -> None:
        read = _per_lane(resident, target, source, size, mbarrier)
        for lane in resident.active().tolist():
            start, address, count, barrier = (int(values[lane]) for values in read)
            for number in (start, address, count):
                _require_aligned(number, BULK_ALIGN_BYTES)
            lanes = np.array([lane])
            addresses = np.array([address])
            content = resident.spaces.global_.load_bytes(resident.watch, lanes, addresses, count)[0]
            resident.bulk.load(lane, start + np.arange(count), content, barrier)

    return step


def _plain_store(operands: Operands) -> Step:
    operands.need(3)
    target = operands.address(0)
    source = operands.address(1)
    size = operands.source(2, U32)

    def step(resident: ResidentBlocks) -> None:
        read = _per_lane(resident, target, source, size)
        for lane in resident.active().tolist():
            address, start, count = (int(values[lane]) for values in read)
            for number in (start, address, count):
                _require_aligned(number, BULK_ALIGN_BYTES)
            write = partial(_write_bytes, resident, lane, address)
            resident.bulk.store(lane, start + np.arange(count), write)

    return step


def _write_bytes(resident: ResidentBlocks, lane: int, address: int, content: Array) -> None:
    lanes = np.full(len(content), lane)
    addresses = address + np.arange(len(content))
    resident.spaces.global_.store(resident.watch, lanes, addresses, content[:, None], is_strong=False)


def _tensor(operands: Operands, number: int, rank: int) -> tuple[Reader, list[Reader]]:
    """Returns the readers of a tensor map's address and of its coordinates, innermost first."""
    operand = operands.operand(number)
    if not isinstance(operand, Address) or len(operand.coordinates) != rank:
        raise operands.unsupported(f"a tensor operand without {rank} coordinates")
    coordinates = [operands.reader(item, S32) for item in operand.coordinates]
    return operands.address_reader(operand), coordinates


def _per_lane(resident: ResidentBlocks, *readers: Reader) -> list[Array]:
    return [resident.full(read(resident)) for read in readers]


def _map_at(resident: ResidentBlocks, address: int, rank: int) -> PlacedMap:
    placed = resident.tensor_maps.get(address)
    if placed is None:
        raise Fault(Defect.ILLEGAL, f"found no tensor map at {address:#x}")
    dimensions = len(placed.tensor.box)
    if dimensions != rank:
        raise Fault(Defect.ILLEGAL, f"found a tensor map of {dimensions} dimensions, allowed {rank}")
    return placed


def _require_aligned(address: int, align: int) -> None:
    if address % align:
        raise Fault(Defect.MISALIGNED, f"found {address:#x}, allowed multiples of {align} bytes")


ASYNC_COPIES: dict[str, Callable[[Operands], Step]] = {"cp": copy}
