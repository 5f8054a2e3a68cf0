"""cp.async.bulk (TMA): tensor tiles and plain bytes, between global and shared memory."""

from collections.abc import Callable

import numpy as np

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.operands import S32, U32, Operands, Reader, Step
from tuner.ptx.defects import Defect, Fault
from tuner.ptx.dtypes import Array
from tuner.ptx.instruction import Address
from tuner.ptx.tensor_map import PlacedMap

TILE_ALIGN_BYTES = 128  # of a tile in shared memory; PTX ISA, cp.async.bulk.tensor
BULK_ALIGN_BYTES = 16
LOAD_WORDS = ("shared::cluster", "shared::cta")
COMPLETES = "mbarrier::complete_tx::bytes"
DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "4d": 4, "5d": 5}


def bulk(operands: Operands) -> Step:
    """Decodes cp.async.bulk and its groups; multicast, reduction and im2col are not known."""
    modifiers = operands.modifiers
    if modifiers.take("commit_group"):
        return lambda chunk: chunk.bulk.commit(chunk.active())
    if modifiers.take("wait_group"):
        modifiers.take("read")
        newest = operands.constant(0)
        return lambda chunk: chunk.bulk.wait(chunk.active(), newest)
    is_load = operands.instruction.opcode.find(COMPLETES) >= 0
    modifiers.need((COMPLETES,) if is_load else ("bulk_group",), "a way to complete")
    modifiers.need(LOAD_WORDS, "shared memory")
    modifiers.need(("global",), "global memory")
    if modifiers.take("tensor"):
        rank = DIMENSIONS[modifiers.need(DIMENSIONS, "a number of dimensions")]
        modifiers.take("tile")
        return _tensor_load(operands, rank) if is_load else _tensor_store(operands, rank)
    return _plain_load(operands) if is_load else _plain_store(operands)


def _tensor_load(operands: Operands, rank: int) -> Step:
    operands.need(3)
    target, mbarrier = operands.address(0), operands.address(2)
    map_address, coordinates = _tensor(operands, 1, rank)

    def step(chunk: Chunk) -> None:
        read = _per_lane(chunk, target, mbarrier, map_address, *coordinates)
        for lane in chunk.active().tolist():
            start, barrier, place, *position = (int(values[lane]) for values in read)
            placed = _map_at(chunk, place, rank)
            _require_aligned(start, TILE_ALIGN_BYTES)
            _note(chunk, lane, placed, position, is_write=False)
            tensor = placed.tensor
            chunk.bulk.load(lane, tensor.places(start), tensor.content(position), barrier)

    return step


def _tensor_store(operands: Operands, rank: int) -> Step:
    operands.need(2)
    source = operands.address(1)
    map_address, coordinates = _tensor(operands, 0, rank)

    def step(chunk: Chunk) -> None:
        read = _per_lane(chunk, source, map_address, *coordinates)
        for lane in chunk.active().tolist():
            start, place, *position = (int(values[lane]) for values in read)
            placed = _map_at(chunk, place, rank)
            _require_aligned(start, TILE_ALIGN_BYTES)
            write = _writer(chunk, lane, placed, position)
            chunk.bulk.store(lane, placed.tensor.places(start), write)

    return step


def _writer(chunk: Chunk, lane: int, placed: PlacedMap, position: list[int]) -> Callable[[Array], None]:
    def write(content: Array) -> None:
        _note(chunk, lane, placed, position, is_write=True)
        placed.tensor.store(position, content)

    return write


def _note(chunk: Chunk, lane: int, placed: PlacedMap, position: list[int], is_write: bool) -> None:
    """Tells the races of the buffer what a thread's copy touches."""
    lanes, cells, races = np.array([lane]), placed.cells(position), placed.buffer.races
    access = races.write if is_write else races.read
    found = access(chunk.watch.clocks, lanes, cells, False)
    chunk.watch.report(found, lanes, placed.buffer.name, races.cell_bytes)


def _plain_load(operands: Operands) -> Step:
    operands.need(4)
    target, source, mbarrier = operands.address(0), operands.address(1), operands.address(3)
    size = operands.source(2, U32)

    def step(chunk: Chunk) -> None:
        read = _per_lane(chunk, target, source, size, mbarrier)
        for lane in chunk.active().tolist():
            start, place, count, barrier = (int(values[lane]) for values in read)
            _require_aligned(start | place | count, BULK_ALIGN_BYTES)
            content = chunk.spaces.global_.load_bytes(
                chunk.watch, np.array([lane]), np.array([place]), count
            )[0]
            chunk.bulk.load(lane, start + np.arange(count), content, barrier)

    return step


def _plain_store(operands: Operands) -> Step:
    operands.need(3)
    target, source = operands.address(0), operands.address(1)
    size = operands.source(2, U32)

    def step(chunk: Chunk) -> None:
        read = _per_lane(chunk, target, source, size)
        for lane in chunk.active().tolist():
            place, start, count = (int(values[lane]) for values in read)
            _require_aligned(start | place | count, BULK_ALIGN_BYTES)
            chunk.bulk.store(lane, start + np.arange(count), _global_writer(chunk, lane, place))

    return step


def _global_writer(chunk: Chunk, lane: int, place: int) -> Callable[[Array], None]:
    def write(content: Array) -> None:
        lanes = np.full(len(content), lane)
        chunk.spaces.global_.store(
            chunk.watch, lanes, place + np.arange(len(content)), content[:, None], is_strong=False
        )

    return write


def _tensor(operands: Operands, number: int, rank: int) -> tuple[Reader, list[Reader]]:
    """Returns the readers of a tensor map's address and of the coordinates, the innermost first."""
    operand = operands.operand(number)
    if not isinstance(operand, Address) or len(operand.coordinates) != rank:
        raise operands.unsupported(f"a tensor operand without {rank} coordinates")
    coordinates = [operands.reader(item, S32) for item in operand.coordinates]
    return operands.address_reader(operand), coordinates


def _per_lane(chunk: Chunk, *readers: Reader) -> list[Array]:
    return [chunk.full(read(chunk)) for read in readers]


def _map_at(chunk: Chunk, address: int, rank: int) -> PlacedMap:
    placed = chunk.tensor_maps.get(address)
    if placed is None:
        raise Fault(Defect.ILLEGAL, f"found no tensor map at {address:#x}")
    dimensions = len(placed.tensor.box)
    if dimensions != rank:
        raise Fault(Defect.ILLEGAL, f"found a tensor map of {dimensions} dimensions, allowed {rank}")
    return placed


def _require_aligned(address: int, align: int) -> None:
    if address % align:
        raise Fault(Defect.MISALIGNED, f"found {address:#x}, allowed multiples of {align} bytes")


def proxy_fence(operands: Operands) -> Step:
    """Decodes fence.proxy.async: writes become visible to bulk copies and wgmma."""
    operands.modifiers.need(("async",), "a proxy")
    operands.modifiers.has("global", "shared::cta", "shared::cluster")
    return lambda chunk: chunk.bulk.fence(chunk.active())
