"""Decoders of control flow: branches, ret, exit, trap, and barriers of blocks."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tuner.gpu.ptxsim.instructions.clusters import wait_cluster
from tuner.gpu.ptxsim.instructions.operands import PREDICATE, U32, Operands, Reader, always
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.dtypes import Bools
from tuner.gpu.ptxsim.ptx.syntax_tree import Register, Symbol
from tuner.gpu.ptxsim.state.resident_blocks import Threads

# Moves the active lanes to their next basic block, or ends them; the number: of the fall-through block.
Terminator: TypeAlias = Callable[[Threads, Bools, int], None]
Guarded: TypeAlias = tuple[Reader | None, bool]  # (predicate, whether the predicate is negated)


def branch(operands: Operands, labels: dict[str, int]) -> Terminator:
    """Decodes PTX ``bra``: returns a function that moves the lanes to the basic block of a label."""
    operands.modifiers.take("uni")
    operands.need(1)
    target = operands.operand(0)
    assert isinstance(target, Symbol)
    block = labels[target.name]

    def terminator(threads: Threads, lanes: Bools, _following: int) -> None:
        threads.basic_block[lanes] = block

    return terminator


def end(operands: Operands, _labels: dict[str, int]) -> Terminator:
    """Decodes PTX ``ret`` and ``exit``: returns a function that ends the lanes' threads."""
    operands.modifiers.take("uni")

    def terminator(threads: Threads, lanes: Bools, _following: int) -> None:
        threads.exit(lanes)

    return terminator


def trap(_operands: Operands, _labels: dict[str, int]) -> Terminator:
    """Decodes PTX ``trap``: returns a function that raises Fault (``Defect.TRAP``) when it is called."""

    def terminator(threads: Threads, lanes: Bools, _following: int) -> None:
        who = threads.resident.geometry.who(int(np.flatnonzero(lanes)[0]))
        raise Fault(Defect.TRAP, f"{who} ran into it")

    return terminator


def barrier(operands: Operands, labels: dict[str, int]) -> Terminator:
    """Decodes PTX ``bar`` and ``barrier`` (sync, red, arrive), and ``barrier.cluster.wait``.

    Returns a Terminator. ``arrive`` does not wait.
    """
    modifiers = operands.modifiers
    if "cluster" in operands.instruction.parts:
        return wait_cluster(operands, labels)
    modifiers.take("cta")
    is_aligned = modifiers.take("aligned") is not None or operands.instruction.parts[0] == "bar"
    action = modifiers.need(("sync", "arrive", "red"), "a kind")
    if action == "red":
        return _reduction(operands, is_aligned)
    operands.need(*((2,) if action == "arrive" else (1, 2)))
    number = operands.source(0, U32)
    count = operands.source(1, U32) if len(operands) > 1 else always(0)

    def terminator(threads: Threads, lanes: Bools, following: int) -> None:
        if is_aligned:
            threads.resident.require_whole_warps(lanes)
        resident = threads.resident
        numbers = resident.full(number(resident))[lanes]
        counts = resident.full(count(resident))[lanes]
        if action == "arrive":
            threads.arrive(lanes, numbers, counts)
        else:
            threads.wait(lanes, numbers, counts)
        threads.basic_block[lanes] = following

    return terminator


def _reduction(operands: Operands, is_aligned: bool) -> Terminator:
    modifiers = operands.modifiers
    operation = modifiers.need(("and", "or", "popc"), "an operation")
    modifiers.type("u32" if operation == "popc" else "pred")
    operands.need(3, 4)
    target = operands.register(operands.operand(0))
    number = operands.constant(1)
    count = operands.source(2, U32) if len(operands) == 4 else always(0)
    value = operands.source(len(operands) - 1, PREDICATE)

    def terminator(threads: Threads, lanes: Bools, following: int) -> None:
        if is_aligned:
            threads.resident.require_whole_warps(lanes)
        resident = threads.resident
        threads.reduce(lanes, number, operation, target, resident.full(value(resident)))
        counts = resident.full(count(resident))[lanes]
        threads.wait(lanes, np.full(len(counts), number), counts)
        threads.basic_block[lanes] = following

    return terminator


def guard_of(operands: Operands) -> Guarded:
    """Returns (reader of the guard predicate, whether it is negated); (None, False) without a guard."""
    guard = operands.instruction.guard
    if guard is None:
        return None, False
    return operands.reader(Register(guard.register.name), PREDICATE), guard.is_negated


TERMINATORS: dict[str, Callable[[Operands, dict[str, int]], Terminator]] = {
    "bra": branch,
    "ret": end,
    "exit": end,
    "trap": trap,
    "bar": barrier,
    "barrier": barrier,
}
