"""Calls of vprintf, which implements ``gpu.printf`` and printf in CUDA; other calls are not simulated.

The arguments of vprintf are the address of a format string, as in C, and the address of a buffer in which
each value has its own size and alignment. CUDA C programming guide, "Formatted Output".
"""

import re
import struct
from collections.abc import Callable

import numpy as np

from tuner.simulator.ptx.decode.operands import S32, U64, Operands, Step
from tuner.simulator.ptx.instruction import Symbol, Vector
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

PRINT = "vprintf"
CONVERSION = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|j|z|t)?([diouxXcspeEfFgGaA%])")
LONG = ("l", "ll", "j", "z", "t")
LENGTH_LIMIT = 1 << 16  # bytes of a string: a longer string is treated as unterminated and cut


def call(operands: Operands) -> Step:
    """Decodes PTX ``call`` of vprintf: returns a function that prints each active lane's text, in order.

    The text is appended to the output of the launch, ``ResidentBlocks.printed``; the result register becomes
    0. A call of another function raises UnsupportedInstruction.
    """
    operands.modifiers.take("uni")
    operands.need(3)
    target = operands.operand(1)
    results, parameters = operands.items(0), operands.operand(2)
    if not isinstance(target, Symbol) or target.name != PRINT or not isinstance(parameters, Vector):
        name = target.name if isinstance(target, Symbol) else "a register"
        raise operands.unsupported(f"a call of {name}; only {PRINT} is simulated, and it")
    format_address, buffer_address = (operands.reader(item, U64) for item in parameters.items)
    write = operands.writer(results[0], S32)

    def step(resident: ResidentBlocks) -> None:
        formats, buffers = resident.full(format_address(resident)), resident.full(buffer_address(resident))
        for lane in resident.active():
            text = _string(resident, lane, int(formats[lane]))
            resident.printed.append(_formatted(resident, lane, text, int(buffers[lane])))
        write(resident, np.zeros(len(resident.mask), np.int32))

    return step


def _formatted(resident: ResidentBlocks, lane: int, text: str, address: int) -> str:
    offset = 0

    def value_of(match: re.Match[str]) -> str:
        nonlocal offset
        flags, length, kind = match.groups()
        if kind == "%":
            return "%"
        size = 8 if kind in "speEfFgGaA" or length in LONG else 4
        offset = -(-offset // size) * size
        raw = _bytes(resident, lane, address + offset, size)
        offset += size
        return _converted(resident, lane, (flags, kind), raw)

    return CONVERSION.sub(value_of, text)


def _converted(resident: ResidentBlocks, lane: int, conversion: tuple[str, str], raw: bytes) -> str:
    flags, kind = conversion
    if kind in "aA":
        return float(struct.unpack("<d", raw)[0]).hex()
    if kind in "eEfFgG":
        return f"%{flags}{kind}" % float(struct.unpack("<d", raw)[0])
    if kind == "s":
        return f"%{flags}s" % _string(resident, lane, int.from_bytes(raw, "little"))
    number = int.from_bytes(raw, "little", signed=kind in "di")
    if kind == "p":
        return hex(number)
    return f"%{flags}{'d' if kind in 'iu' else kind}" % (chr(number & 0xFF) if kind == "c" else number)


def _string(resident: ResidentBlocks, lane: int, address: int) -> str:
    content = bytearray()
    while len(content) < LENGTH_LIMIT:
        byte = _bytes(resident, lane, address + len(content), 1)
        if byte == b"\0":
            break
        content += byte
    return content.decode(errors="replace")


def _bytes(resident: ResidentBlocks, lane: int, address: int, size: int) -> bytes:
    lanes, addresses = np.array([lane]), np.array([address], np.int64)
    return resident.spaces.load(lanes, addresses, "generic", size, 1).tobytes()


DECODERS: dict[str, Callable[[Operands], Step]] = {"call": call}
