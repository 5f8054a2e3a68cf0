"""mbarrier: init, inval, arrive, expect_tx; and the waits, which end a block."""

from collections.abc import Callable

import numpy as np

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.modifiers import SCOPES
from tuner.ptx.decode.operands import PREDICATE, U32, U64, Operands, Reader, Step
from tuner.ptx.decode.shared_addresses import shared_address
from tuner.ptx.dtypes import Array, Bools, Indices
from tuner.ptx.instruction import Address, Register
from tuner.ptx.threads import AT_MEMORY_BARRIER, Threads

ONE, NOTHING = np.ones(1, np.uint32), np.zeros(1, np.uint32)


def mbarrier(operands: Operands) -> Step:
    """Decodes everything but the waits."""
    modifiers = operands.modifiers
    modifiers.type("b64")
    kind = modifiers.need(("init", "inval", "arrive", "expect_tx"), "an operation")
    modifiers.has("release", "relaxed")
    modifiers.has(*SCOPES)
    expects = kind == "arrive" and modifiers.take("expect_tx") is not None
    is_generic = modifiers.space() == "generic"
    if kind == "inval":
        operands.need(1)
        return lambda _chunk: None
    if kind == "init":
        return _init(operands, is_generic)
    return _arrive(operands, is_generic, kind, expects)


def _init(operands: Operands, is_generic: bool) -> Step:
    operands.need(2)
    address, count = shared_address(operands, 0, is_generic), operands.source(1, U32)

    def step(chunk: Chunk) -> None:
        lanes = chunk.active()
        places, counts = address(chunk, lanes), chunk.chosen(count(chunk)).astype(np.int64)
        chunk.spaces.shared.starts(lanes, places, 8)
        chunk.mbarriers.init(lanes, places, counts)

    return step


def _arrive(operands: Operands, is_generic: bool, kind: str, expects: bool) -> Step:
    returns = not isinstance(operands.operand(0), Address)
    first = int(returns)
    address = shared_address(operands, first, is_generic)
    given = operands.source(first + 1, U32) if len(operands) > first + 1 else _ones
    write = operands.destination(0, U64) if returns else None
    counts: Reader = _ones if expects else given
    bytes_: Reader = given if expects else _zeros
    if kind == "expect_tx":
        counts, bytes_ = _zeros, given

    def step(chunk: Chunk) -> None:
        lanes = chunk.active()
        phases = chunk.mbarriers.arrive(
            lanes,
            address(chunk, lanes),
            chunk.chosen(counts(chunk)).astype(np.int64),
            chunk.chosen(bytes_(chunk)).astype(np.int64),
        )
        if write is not None:
            spread = np.zeros(len(chunk.mask), np.uint64)
            spread[lanes] = phases
            write(chunk, spread)

    return step


def _ones(_chunk: Chunk) -> Array:
    return ONE


def _zeros(_chunk: Chunk) -> Array:
    return NOTHING


def wait(operands: Operands, _labels: dict[str, int]) -> Callable[[Threads, Bools, int], None]:
    """Decodes try_wait and test_wait: threads wait until the phase is complete, so that they never fail."""
    modifiers = operands.modifiers
    modifiers.type("b64")
    modifiers.need(("try_wait", "test_wait"), "an operation")
    modifiers.has("acquire", "relaxed")
    modifiers.has(*SCOPES)
    is_parity = modifiers.take("parity") is not None
    is_generic = modifiers.space() == "generic"
    operands.need(3, 4)
    result, address = operands.operand(0), shared_address(operands, 1, is_generic)
    state = operands.source(2, U32 if is_parity else U64)
    operands.writer(result, PREDICATE)
    assert isinstance(result, Register)

    def terminator(threads: Threads, lanes: Bools, following: int) -> None:
        chunk = threads.chunk
        indices = np.flatnonzero(lanes)
        places = address(chunk, indices)
        for block, mbarrier, lane in _awaited(chunk, indices, places):
            chunk.bulk.land(block, mbarrier, chunk.mbarriers.at(lane, mbarrier), threads.is_stuck)
        states = chunk.full(state(chunk))[indices].astype(np.int64)
        done = indices[chunk.mbarriers.test(indices, places, states, is_parity)]
        waiting = lanes.copy()
        waiting[done] = False
        threads.status[waiting] = AT_MEMORY_BARRIER
        threads.block[done] = following
        if len(done):
            chunk.scatter(result.name, done, np.ones(len(done), bool))
            threads.is_stuck = False

    return terminator


def _awaited(chunk: Chunk, lanes: Indices, places: Array) -> list[tuple[int, int, int]]:
    """Returns (block, address, a lane that waits) of every mbarrier that is waited at."""
    blocks = chunk.geometry.place[lanes]
    found = {(int(b), int(p)): int(lane) for b, p, lane in zip(blocks, places, lanes, strict=True)}
    return [(block, place, lane) for (block, place), lane in found.items()]


DECODERS: dict[str, Callable[[Operands], Step]] = {"mbarrier": mbarrier}
