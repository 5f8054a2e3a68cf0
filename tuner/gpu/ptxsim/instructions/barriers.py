"""Decoders of mbarrier instructions: init, arrive, expect_tx, inval, and waits."""

from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import (
    PREDICATE,
    SCOPES,
    U32,
    U64,
    Operands,
    Step,
    always,
    shared_address,
)
from tuner.gpu.ptxsim.ptx.dtypes import Bools
from tuner.gpu.ptxsim.ptx.syntax_tree import Address, Register
from tuner.gpu.ptxsim.state.resident_blocks import AT_MEMORY_BARRIER, ResidentBlocks, Threads


def mbarrier(operands: Operands) -> Step:
    """Decodes PTX mbarrier.init, arrive (which gives the phase as token), expect_tx, inval (no effect)."""
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
    number = always(1)
    if len(operands) > first + 1:
        number = operands.source(first + 1, U32)
    write = operands.destination(0, U64) if returns else None
    counts = number
    bytes_ = always(0)
    if expects:
        counts = always(1)
        bytes_ = number
    if operation == "expect_tx":
        counts = always(0)
        bytes_ = number

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
    """Decodes PTX mbarrier.try_wait and test_wait: returns a ``control_flow.Terminator`` that waits.

    A kernel never sees the result False.
    """
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
