"""Operands that must be addresses of shared memory, given as shared or generic addresses."""

from collections.abc import Callable
from typing import TypeAlias

from tuner.simulator.ptx.decode.operands import Operands
from tuner.simulator.ptx.defects import Defect, Fault
from tuner.simulator.ptx.dtypes import Indices
from tuner.simulator.ptx.memory.state_spaces import WINDOW_BITS, WINDOWS
from tuner.simulator.ptx.state.resident_blocks import ResidentBlocks

SharedReader: TypeAlias = Callable[[ResidentBlocks, Indices], Indices]  # lanes -> shared addresses


def shared_address(operands: Operands, number: int, is_generic: bool) -> SharedReader:
    """Returns a function (resident blocks, lanes) -> shared addresses of the operand at position ``number``.

    With ``is_generic`` the operand holds generic addresses, which the function converts; it raises Fault for
    one that is not in shared memory. Raises UnsupportedInstruction for an operand that is no address.
    """
    address = operands.address(number)

    def read(resident: ResidentBlocks, lanes: Indices) -> Indices:
        found: Indices = resident.full(address(resident))[lanes]
        return _from_generic(resident, lanes, found) if is_generic else found

    return read


def _from_generic(resident: ResidentBlocks, lanes: Indices, addresses: Indices) -> Indices:
    is_outside = addresses >> WINDOW_BITS != WINDOWS["shared"] >> WINDOW_BITS
    if is_outside.any():
        worst = int(is_outside.argmax())
        who, address = resident.geometry.who(int(lanes[worst])), int(addresses[worst])
        reason = f"{who}: found generic address {address:#x}, allowed shared memory"
        raise Fault(Defect.OUT_OF_BOUNDS, reason)
    return addresses - WINDOWS["shared"]
