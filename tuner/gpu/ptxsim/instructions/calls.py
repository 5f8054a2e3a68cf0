"""Decoders of calls: of vprintf and of __assertfail; other calls are not simulated.

The arguments of vprintf (``gpu.printf``, printf in CUDA) are the address of a format string, as in C, and the
address of a buffer in which each value has its own size and alignment: CUDA C programming guide, "Formatted
Output". Those of __assertfail (``cf.assert``, assert in CUDA) are addresses and numbers: message, file, line,
function, bytes of a character; it does not return: "Assertion".
"""

import re
import struct
from collections.abc import Callable

import numpy as np

from tuner.gpu.ptxsim.instructions.operands import S32, U64, Operands, Step
from tuner.gpu.ptxsim.ptx.defects import Defect, Fault
from tuner.gpu.ptxsim.ptx.syntax_tree import Symbol, Vector
from tuner.gpu.ptxsim.state.resident_blocks import ResidentBlocks

PRINT = "vprintf"
FAIL = "__assertfail"
FAIL_PARAMETERS = 5
PLAIN_CALL = 2  # operands of a call without results
CONVERSION = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|j|z|t)?([diouxXcspeEfFgGaA%])")
LONG = ("l", "ll", "j", "z", "t")
LENGTH_LIMIT = 1 << 16  # bytes of a string: a longer string is treated as unterminated and cut


def call(operands: Operands) -> Step:
    """Decodes PTX ``call`` of vprintf or __assertfail; other calls raise UnsupportedInstruction.

    The returned function appends the active lanes' texts to the launch's output for vprintf, and raises Fault
    for __assertfail.
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
        size = 4
        if conversion in "speEfFgGaA" or length in LONG:
            size = 8
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
        if conversion == "c":
            return f"%{flags}c" % chr(number & 0xFF)
        if conversion in "iu":
            conversion = "d"
        return f"%{flags}{conversion}" % number

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
