"""Decoders of memory accesses: loads, stores, atomics, fences, asynchronous copies (cp.async, TMA).

A decoder consumes the modifiers of an opcode (``need``: required, ``take`` and ``has``: optional), makes
readers and writers of its operands, and returns a step: a function that runs the instruction for the active
lanes.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from tuner.simulator.instructions.operands import S32, SCOPES, U16, U32, Operands, Reader, Step, always
from tuner.simulator.memory.async_copies import PlacedMap
from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Array, Indices, PtxType
from tuner.simulator.ptx.syntax_tree import Address
from tuner.simulator.state.resident_blocks import ResidentBlocks

Update = Callable[[Array, Array, Array], Array]  # (old, operand, second operand) -> new
ORDERS = ("relaxed", "acquire", "release", "acq_rel")
TILE_ALIGN_BYTES = 128  # of a box in shared memory; PTX ISA, "cp.async.bulk.tensor"
BULK_ALIGN_BYTES = 16  # of addresses and size; PTX ISA, "cp.async.bulk"
SHARED_SPACES = ("shared::cluster", "shared::cta")
COMPLETES = "mbarrier::complete_tx::bytes"
DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3, "4d": 4, "5d": 5}
SIZES_BYTES = (4, 8, 16)


def load(operands: Operands) -> Step:
    """Decodes PTX ``ld``: returns a function that loads memory into registers of the active lanes."""
    modifiers = operands.modifiers
    type_ = modifiers.type()
    count = modifiers.vector()
    space = modifiers.space()
    is_strong = modifiers.take_memory_order()
    operands.need(2)
    address = operands.address(1)
    writers = [operands.writer(item, type_) for item in operands.items(0)]
    _check_count(operands, len(writers), count)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = resident.chosen(address(resident))
        loaded = resident.spaces.load(lanes, addresses, space, type_.bytes, count, is_strong=is_strong)
        columns = np.ascontiguousarray(loaded.T).view(type_.dtype)
        for write, values in zip(writers, columns, strict=True):
            if resident.is_full:
                write(resident, values)
                continue
            spread = np.zeros(len(resident.mask) * type_.elements, type_.dtype)
            spread.reshape(len(resident.mask), -1)[lanes] = values.reshape(len(lanes), -1)
            write(resident, spread)

    return step


def store(operands: Operands) -> Step:
    """Decodes PTX ``st``: returns a function that stores registers of the active lanes to memory."""
    modifiers = operands.modifiers
    type_ = modifiers.type()
    count = modifiers.vector()
    space = modifiers.space()
    is_strong = modifiers.take_memory_order()
    operands.need(2)
    address = operands.address(0)
    readers = _sources(operands, 1, type_, count)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = resident.chosen(address(resident))
        resident.spaces.store(lanes, addresses, space, _columns(resident, readers), is_strong=is_strong)

    return step


def _sources(operands: Operands, number: int, type_: PtxType, count: int) -> list[Reader]:
    """Returns the readers of a vector operand's elements as unsigned integers."""
    raw = PtxType(type_.name, type_.raw)
    readers = [operands.reader(item, raw) for item in operands.items(number)]
    _check_count(operands, len(readers), count)
    return readers


def _columns(resident: ResidentBlocks, readers: list[Reader]) -> Array:
    return np.stack([resident.chosen(read(resident)) for read in readers], axis=-1)


def _check_count(operands: Operands, registers: int, count: int) -> None:
    if registers != count:
        raise operands.unsupported(f"{registers} registers for a vector of {count}")


def fence_or_hint(operands: Operands) -> Step:
    """Decodes prefetch, fence and the like; only ``fence.proxy.async`` has an effect: memory is coherent."""
    if operands.instruction.opcode.startswith("fence.proxy.async"):
        operands.modifiers.need_each("proxy")
        return proxy_fence(operands)
    operands.modifiers.need_each(*operands.instruction.parts[1:])
    return lambda _resident: None


ACCESSES: dict[str, Callable[[Operands], Step]] = {
    "ld": load,
    "st": store,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "membar", "fence", "nanosleep", "griddepcontrol"), fence_or_hint
    ),
}
UPDATES: dict[str, Update] = {
    "add": lambda old, b, _c: old + b,
    "min": lambda old, b, _c: np.minimum(old, b),
    "max": lambda old, b, _c: np.maximum(old, b),
    "and": lambda old, b, _c: old & b,
    "or": lambda old, b, _c: old | b,
    "xor": lambda old, b, _c: old ^ b,
    "exch": lambda _old, b, _c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "inc": lambda old, b, _c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, b, _c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
}


def update(operands: Operands) -> Step:
    """Decodes PTX ``atom``, which writes old values to registers, and ``red``; lanes update in order."""
    modifiers = operands.modifiers
    returns = operands.instruction.parts[0] == "atom"
    type_ = modifiers.type()
    count = modifiers.vector()
    if modifiers.take("noftz") is None and type_.name in ("f16", "f16x2", "bf16", "bf16x2"):
        raise operands.unsupported("it without .noftz")
    modifiers.has(*ORDERS)
    modifiers.has(*SCOPES)
    space = modifiers.space()
    name = modifiers.need(UPDATES, "an operation")
    first = int(returns)
    operands.need(first + (3 if name == "cas" else 2))
    address = operands.address(first)
    sources = _sources(operands, first + 1, type_, count)
    seconds = _sources(operands, first + 2, type_, count) if name == "cas" else sources
    results = operands.names(0) if returns else ()

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        addresses = resident.chosen(address(resident))
        operand = _columns(resident, sources)
        second = _columns(resident, seconds)
        old = np.empty((len(lanes), count), type_.raw)
        updates = resident.spaces.updates(lanes, addresses, space, type_.bytes, count)
        for numbers, which, starts in updates:
            old[which] = _apply(UPDATES[name], type_, numbers, starts, operand[which], second[which])
        for number, result in enumerate(results):
            resident.scatter(result, lanes, old[:, number])

    return step


def _apply(
    function: Update, type_: PtxType, numbers: Array, starts: Indices, operand: Array, second: Array
) -> Array:
    """Updates numbers in lane order; returns each lane's old value."""
    old = np.empty_like(operand)
    columns = np.arange(operand.shape[1])
    # in rounds, each with at most one access per address
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rounds = np.arange(len(starts)) - np.repeat(begins, np.diff(np.r_[begins, len(starts)]))
    for number in range(int(rounds.max()) + 1):
        lanes = order[rounds == number]
        where = starts[lanes][:, None] + columns
        before = numbers[where]
        new = function(_typed(before, type_), _typed(operand[lanes], type_), _typed(second[lanes], type_))
        numbers[where] = np.ascontiguousarray(new.astype(type_.dtype)).view(type_.raw)
        old[lanes] = before
    return old


def _typed(bits: Array, type_: PtxType) -> Array:
    return np.ascontiguousarray(bits).view(type_.dtype)


ATOMICS: dict[str, Callable[[Operands], Step]] = {"atom": update, "red": update}


# Decoders of asynchronous copies: cp.async with its async-groups, and cp.async.bulk (TMA).


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
            _note(resident, lane, placed, position, is_write=False)
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
    _note(resident, lane, placed, position, is_write=True)
    placed.tensor.store(position, content)


def _note(
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


def proxy_fence(operands: Operands) -> Step:
    """Decodes ``fence.proxy.async``: makes the lanes' writes so far visible to bulk copies and wgmma."""
    operands.modifiers.need(("async",), "a proxy")
    operands.modifiers.has("global", "shared::cta", "shared::cluster")
    return lambda resident: resident.bulk.fence(resident.active())


def copy(operands: Operands) -> Step:
    """Decodes PTX ``cp.async`` from global to shared memory, its commit_group, wait_group and wait_all."""
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
        raise operands.unsupported("it between these spaces")
    operands.need(3, 4)
    size = operands.constant(2)
    if size not in SIZES_BYTES or (cache == "cg" and size != 16):
        raise operands.unsupported(f"a copy of {size} bytes with .{cache}")
    target = operands.address(0)
    source = operands.address(1)
    source_bytes = operands.source(3, U32) if len(operands) == 4 else always(size)

    def step(resident: ResidentBlocks) -> None:
        lanes = resident.active()
        sizes = resident.chosen(source_bytes(resident)).astype(np.int64)
        targets = resident.chosen(target(resident))
        sources = resident.chosen(source(resident))
        resident.copies.begin(lanes, targets, sources, size, sizes)

    return step


ASYNC_COPIES: dict[str, Callable[[Operands], Step]] = {"cp": copy}
