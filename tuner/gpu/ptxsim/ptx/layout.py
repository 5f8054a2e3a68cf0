"""What is known of a kernel before a launch: addresses of variables, widths of registers and of accesses."""

import re
from dataclasses import dataclass, field

import numpy as np

from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError
from tuner.gpu.ptxsim.ptx.dtypes import TYPES
from tuner.gpu.ptxsim.ptx.syntax_tree import Instruction, PtxKernel, PtxModule, Variable


@dataclass(frozen=True)
class Slot:
    """The location of a variable or parameter: its state space, such as "shared", and its address there."""

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
        """Returns the numpy type of a register's bits (unsigned, or bool).

        None for an undeclared register.
        """
        if register in self.widths:
            return self.widths[register]
        # %r7#2: register 7 of bank %r#2, which the scope 2 of the kernel declares
        match = re.fullmatch(r"(.*?)(\d+)((?:#\d+)?)", register)
        bank = self.banks.get(match[1] + match[3]) if match else None
        if match is None or bank is None or int(match[2]) >= bank[1]:
            return None
        return bank[0]


def layout_of(module: PtxModule, kernel: PtxKernel) -> Layout:
    """Returns the addresses of a kernel's variables and parameters, and the widths of its registers.

    Dynamic shared memory lies last; global variables get their addresses at the launch. Raises
    SimulationError for registers of a type that is not simulated.
    """
    variables = (*module.variables, *kernel.variables)
    slots, static = _slots([v for v in variables if v.space == "shared" and not v.is_extern], "shared")
    dynamic = [v for v in variables if v.space == "shared" and v.is_extern]
    if dynamic:
        align_bytes = max(v.align_bytes for v in dynamic)
        static = -(-static // align_bytes) * align_bytes
        slots |= {v.name: Slot("shared", static) for v in dynamic}
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


def _slots(variables: list[Variable], space: str) -> tuple[dict[str, Slot], int]:
    slots = {}
    end = 0
    for variable in variables:
        start = -(-end // variable.align_bytes) * variable.align_bytes
        slots[variable.name] = Slot(space, start)
        end = start + variable.bytes
    return slots, end


def _registers(
    module: PtxModule, kernel: PtxKernel
) -> tuple[dict[str, "np.dtype[np.generic]"], dict[str, tuple["np.dtype[np.generic]", int]]]:
    widths = {}
    banks = {}
    for bank in kernel.registers:
        if bank.type not in TYPES:
            line = f"{module.name}:{kernel.line}"
            reason = f"{line}: found registers of type .{bank.type}, which are not simulated"
            raise SimulationError(Defect.UNSUPPORTED, kernel.line, reason)
        type_ = TYPES[bank.type]
        width = type_.dtype if type_.name == "pred" else type_.raw
        if bank.count is None:
            widths[bank.prefix] = width
        else:
            banks[bank.prefix] = (width, bank.count)
    return widths, banks


def access_bytes(instruction: Instruction) -> int:
    """Returns the bytes that a lane accesses by ld, st, atom or red, or per element by wmma; at most 4.

    4 for parameters and other instructions. The smallest of a kernel is the cell of race detection.
    """
    parts = instruction.parts
    is_tile = parts[0] == "wmma" and parts[1:2] in (("load",), ("store",))
    if not is_tile and (parts[0] not in ("ld", "st", "atom", "red") or "param" in parts):
        return 4
    type_ = TYPES.get(parts[-1])
    count = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
    if type_:
        return min(4, type_.bytes * count)
    return 4
