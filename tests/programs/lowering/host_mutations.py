"""Mutants of compiled host programs, and what the simulated GPU finds in them."""

from dataclasses import replace
from typing import Any

import numpy as np

from tests.mlir.kernels import parsed
from tuner.core.gpu import DeviceError, chip_of
from tuner.core.gpu_code import DeviceProgram
from tuner.programs.request import DeviceOptions, Form
from tuner.simulator.device.happens_before import HostDefect
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import Order

# Kinds of findings beside those of ``HostDefect``.
FAULT = "fault"  # the device refused a call, or a kernel or the host reached for what it cannot
NUMBERS = "other numbers"  # the caller's arrays are not as they should be
Finding = HostDefect | str


class Outcome:
    """What a run left in the caller's arrays, and what was reported."""

    def __init__(self, arrays: list[Any], reports: tuple[Any, ...], fault: str) -> None:
        self.arrays = tuple(tuple(array.tolist()) for array in arrays)
        self.reports = tuple(map(str, reports))
        self.fault = fault
        self._kinds = {report.kind for report in reports}

    @property
    def is_clean(self) -> bool:
        return not self.reports and not self.fault

    def findings(self, right: "Outcome") -> set[Finding]:
        """Returns the kinds of what was found, given the outcome of the program as it should be."""
        found: set[Finding] = {*self._kinds}
        if self.fault:
            found.add(FAULT)
        elif str(self.arrays) != str(right.arrays):  # NaN is like NaN
            found.add(NUMBERS)
        return found


def lowered(text: str, form: Form = "streams") -> DeviceProgram:
    from tuner.programs.lowering.device import lower_device_program

    with parsed(text) as module:
        return lower_device_program(module, "main", chip_of("sm_90"), DeviceOptions(form=form))


def run(program: DeviceProgram, others: tuple[Any, ...], order: Order) -> Outcome:
    """Runs a program on two arrays of 16 numbers and other arguments."""
    from tuner.programs.run.device_function import DeviceFunction

    device = SimulatedDevice("sm_90", order)
    arrays = [np.arange(16, dtype=np.float32) * (number + 1) for number in range(2)]
    loaded = DeviceFunction(program, device)
    try:
        loaded(*arrays, *others)
        fault = ""
    except DeviceError as error:
        fault = str(error)
    return Outcome(arrays, device.reports, fault)


def with_line(program: DeviceProgram, number: int, *lines: str) -> DeviceProgram:
    """Returns a program with other lines, or none, in the place of one."""
    old = program.llvm.splitlines()
    return replace(program, llvm="\n".join([*old[:number], *lines, *old[number + 1 :]]))
