"""Addresses of a kernel's variables and parameters in their state spaces, and widths of its registers."""

import re
from dataclasses import dataclass, field

import numpy as np

from tuner.simulator.ptx.defects import Defect, SimulationError
from tuner.simulator.ptx.dtypes import TYPES
from tuner.simulator.ptx.instruction import Instruction, PtxKernel, PtxModule, Variable


@dataclass(frozen=True)
class Slot:
    """The place of a variable or parameter: a state space, such as "shared", and the address in it."""

    space: str
    address: int


@dataclass(frozen=True)
class Layout:
    """What is known of a kernel before a launch: addresses of variables, sizes, widths of registers."""

    kernel: PtxKernel
    slots: dict[str, Slot]  # name -> slot, of shared and local variables and of parameters
    static_shared_bytes: int  # static shared memory; dynamic shared memory begins here
    local_bytes: int
    parameter_bytes: int
    cell_bytes: int  # granularity of race detection: the kernel's smallest access
    widths: dict[str, "np.dtype[np.generic]"] = field(repr=False)  # of registers declared one by one
    banks: dict[str, tuple["np.dtype[np.generic]", int]] = field(repr=False)  # prefix -> (width, count)

    def width(self, register: str) -> "np.dtype[np.generic] | None":
        """Returns the numpy type of the bits of ``register``: unsigned, or bool; None where undeclared."""
        if register in self.widths:
            return self.widths[register]
        match = re.fullmatch(r"(.*?)(\d+)((?:#\d+)?)", register)
        bank = self.banks.get(match[1] + match[3]) if match else None
        if match is None or bank is None or int(match[2]) >= bank[1]:
            return None
        return bank[0]


def layout_of(module: PtxModule, kernel: PtxKernel) -> Layout:
    """Returns the addresses of a kernel's variables and parameters, and the widths of its registers.

    Variables lie one after another in shared and local memory, dynamic shared memory last; global variables
    get their addresses at the launch. Raises SimulationError for registers of a type that is not simulated.
    """
    variables = (*module.variables, *kernel.variables)
    slots, static = _shared_slots([v for v in variables if v.space == "shared"])
    local_slots, local = _slots([v for v in variables if v.space == "local"], "local")
    parameters = [Variable(p.name, "param", p.align_bytes, p.bytes, False) for p in kernel.parameters]
    parameter_slots, parameter_bytes = _slots(parameters, "param")
    widths, banks = _registers(module, kernel)
    return Layout(
        kernel=kernel,
        slots=slots | local_slots | parameter_slots,
        static_shared_bytes=static,
        local_bytes=local,
        parameter_bytes=parameter_bytes,
        cell_bytes=min((access_bytes(i) for i in kernel.body if isinstance(i, Instruction)), default=4),
        widths=widths,
        banks=banks,
    )


def _shared_slots(variables: list[Variable]) -> tuple[dict[str, Slot], int]:
    slots, end = _slots([v for v in variables if not v.is_extern], "shared")
    dynamic = [v for v in variables if v.is_extern]
    start = _aligned(end, max((v.align_bytes for v in dynamic), default=16))
    slots |= {variable.name: Slot("shared", start) for variable in dynamic}
    return slots, start if dynamic else end


def _slots(variables: list[Variable], space: str) -> tuple[dict[str, Slot], int]:
    slots, end = {}, 0
    for variable in variables:
        start = _aligned(end, variable.align_bytes)
        slots[variable.name] = Slot(space, start)
        end = start + variable.bytes
    return slots, end


def _aligned(start: int, align: int) -> int:
    return -(-start // align) * align


def _registers(
    module: PtxModule, kernel: PtxKernel
) -> tuple[dict[str, "np.dtype[np.generic]"], dict[str, tuple["np.dtype[np.generic]", int]]]:
    widths, banks = {}, {}
    for bank in kernel.registers:
        if bank.type not in TYPES:
            reason = (
                f"{module.name}:{kernel.line}: found registers of type .{bank.type}, which are not simulated"
            )
            raise SimulationError(Defect.UNSUPPORTED, kernel.line, reason)
        type_ = TYPES[bank.type]
        width = type_.dtype if type_.name == "pred" else type_.raw
        if bank.count is None:
            widths[bank.prefix] = width
        else:
            prefix, _, scope = bank.prefix.partition("#")
            banks[f"{prefix}#{scope}" if scope else prefix] = (width, bank.count)
    return widths, banks


def access_bytes(instruction: Instruction) -> int:
    """Returns the bytes of memory that an ld, st, atom, red, wmma.load or wmma.store accesses, but at most 4.

    4 for every other instruction, and for accesses to parameters. The smallest value in a kernel is the size
    of its race-detection cells.
    """
    parts = instruction.parts
    is_tile = parts[0] == "wmma" and parts[1:2] in (("load",), ("store",))
    if not is_tile and (parts[0] not in ("ld", "st", "atom", "red") or "param" in parts):
        return 4
    type_ = TYPES.get(parts[-1])
    count = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
    return min(4, type_.bytes * count) if type_ else 4
