"""Addresses that must be in shared memory, given as shared or as generic ones."""

from collections.abc import Callable
from typing import TypeAlias

from tuner.ptx.chunk import Chunk
from tuner.ptx.decode.operands import Operands
from tuner.ptx.defects import Defect, Fault
from tuner.ptx.dtypes import Indices
from tuner.ptx.spaces import WINDOW_BITS, WINDOWS

SharedReader: TypeAlias = Callable[[Chunk, Indices], Indices]  # lanes -> their shared addresses


def shared_address(operands: Operands, number: int, is_generic: bool) -> SharedReader:
    """Returns the reader of an address; a generic one outside shared memory is a Fault."""
    address = operands.address(number)

    def read(chunk: Chunk, lanes: Indices) -> Indices:
        found: Indices = chunk.full(address(chunk))[lanes]
        return _from_generic(chunk, lanes, found) if is_generic else found

    return read


def _from_generic(chunk: Chunk, lanes: Indices, addresses: Indices) -> Indices:
    is_elsewhere = addresses >> WINDOW_BITS != WINDOWS["shared"] >> WINDOW_BITS
    if is_elsewhere.any():
        worst = int(is_elsewhere.argmax())
        who, address = chunk.geometry.who(int(lanes[worst])), int(addresses[worst])
        reason = f"{who}: found generic address {address:#x}, allowed shared memory"
        raise Fault(Defect.OUT_OF_BOUNDS, reason)
    return addresses - WINDOWS["shared"]
