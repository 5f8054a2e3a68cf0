"""Decoders of control flow: branches, ret, exit, trap, block barriers, calls of vprintf and __assertfail.

The arguments of vprintf (``gpu.printf``, printf in CUDA) are the address of a format string, as in C, and the
address of a buffer in which each value has its own size and alignment: CUDA C programming guide, "Formatted
Output". Those of __assertfail (``cf.assert``, assert in CUDA) are addresses and numbers: message, file, line,
function, bytes of a character; it does not return: "Assertion". Other calls are not simulated.
"""

import re
import struct
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tuner.simulator.instructions.barriers import wait_cluster
from tuner.simulator.instructions.operands import PREDICATE, S32, U32, U64, Operands, Reader, Step, always
from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Bools
from tuner.simulator.ptx.syntax_tree import Register, Symbol, Vector
from tuner.simulator.state.resident_blocks import ResidentBlocks, Threads

PRINT = "vprintf"
FAIL = "__assertfail"
FAIL_PARAMETERS = 5
PLAIN_CALL = 2  # operands of a call without results
CONVERSION = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|j|z|t)?([diouxXcspeEfFgGaA%])")
LONG = ("l", "ll", "j", "z", "t")
LENGTH_LIMIT = 1 << 16  # bytes of a string: a longer string is treated as unterminated and cut
# Moves the active lanes to their next basic block; the number is that of the fall-through block.
Terminator: TypeAlias = Callable[[Threads, Bools, int], None]
Guarded: TypeAlias = tuple[Reader | None, bool]  # (predicate, whether the predicate is negated)


def call(operands: Operands) -> Step:
    """Decodes PTX ``call`` of vprintf or __assertfail; other calls raise UnsupportedInstruction.

    The step of vprintf appends the active lanes' texts to the launch's output; that of __assertfail raises
    Fault.
    """
    operands.modifiers.take("uni")
    operands.need(PLAIN_CALL, PLAIN_CALL + 1)
    target = operands.operand(len(operands) - 2)
    parameters = operands.operand(len(operands) - 1)
    name = target.name if isinstance(target, Symbol) else "a register"
    if isinstance(parameters, Vector):
        if name == PRINT and len(operands) > PLAIN_CALL:
            return _print(operands, parameters)
        if name == FAIL and len(operands) == PLAIN_CALL and len(parameters.items) == FAIL_PARAMETERS:
            return _fail(operands, parameters)
    raise operands.unsupported(f"a call of {name}, only of {PRINT} and {FAIL}")


def _print(operands: Operands, parameters: Vector) -> Step:
    format_address, buffer_address = (operands.reader(item, U64) for item in parameters.items)
    write = operands.writer(operands.items(0)[0], S32)

    def step(resident: ResidentBlocks) -> None:
        formats = resident.full(format_address(resident))
        buffers = resident.full(buffer_address(resident))
        for lane in resident.active():
            text = _string(resident, lane, int(formats[lane]))
            resident.printed.append(_formatted(resident, lane, text, int(buffers[lane])))
        write(resident, np.zeros(len(resident.mask), np.int32))

    return step


def _fail(operands: Operands, parameters: Vector) -> Step:
    message_address = operands.reader(parameters.items[0], U64)

    def step(resident: ResidentBlocks) -> None:
        addresses = resident.full(message_address(resident))
        for lane in resident.active():
            who = resident.geometry.who(int(lane))
            raise Fault(Defect.ASSERTION, f"{_string(resident, lane, int(addresses[lane]))!r}, in {who}")

    return step


def _formatted(resident: ResidentBlocks, lane: int, text: str, address: int) -> str:
    offset = 0

    def value_of(match: re.Match[str]) -> str:
        nonlocal offset
        flags, length, conversion = match.groups()
        if conversion == "%":
            return "%"
        # as the CUDA ABI packs printf's arguments: each aligned to its size
        size = 8 if conversion in "speEfFgGaA" or length in LONG else 4
        offset = -(-offset // size) * size
        raw = _bytes(resident, lane, address + offset, size)
        offset += size
        if conversion in "aAeEfFgG":
            real = float(struct.unpack("<d", raw)[0])
            if conversion in "aA":
                return real.hex()
            return f"%{flags}{conversion}" % real
        number = int.from_bytes(raw, "little", signed=conversion in "di")
        if conversion == "p":
            return hex(number)
        if conversion == "s":
            return f"%{flags}s" % _string(resident, lane, number)
        return f"%{flags}{'d' if conversion in 'iu' else conversion}" % (
            chr(number & 0xFF) if conversion == "c" else number
        )

    return CONVERSION.sub(value_of, text)


def _string(resident: ResidentBlocks, lane: int, address: int) -> str:
    content = bytearray()
    while len(content) < LENGTH_LIMIT:
        byte = _bytes(resident, lane, address + len(content), 1)
        if byte == b"\0":
            break
        content += byte
    return content.decode(errors="replace")


def _bytes(resident: ResidentBlocks, lane: int, address: int, size: int) -> bytes:
    lanes = np.array([lane])
    addresses = np.array([address], np.int64)
    return resident.spaces.load(lanes, addresses, "generic", size, 1).tobytes()


DECODERS: dict[str, Callable[[Operands], Step]] = {"call": call}


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
    """Decodes PTX ``bar`` and ``barrier`` (sync, red, arrive: no wait), and ``barrier.cluster.wait``."""
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
