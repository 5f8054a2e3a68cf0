"""Runs a program on the simulated GPU and as loops on the host, and compares bit by bit."""

from typing import Any

import numpy as np

from tests.mlir.host_programs import Program
from tuner.machine import Machine
from tuner.target_name import TargetName
from tuner.tuning.program_compiler import ProgramCompiler
from tuner.tuning.program_execution import copies

SIMULATOR = TargetName.parse("simulator:sm_90")


def check_program(program: Program, form: str, order: str) -> None:
    """Raises AssertionError with the program's text for any difference, report, leak or double free."""
    from tuner.mlir.device_lowering import DeviceOptions
    from tuner.runtime.host_function import HostFunction
    from tuner.runtime.program import LoadedProgram
    from tuner.runtime.simulated_device import SimulatedDevice

    where = f"form {form}, order {order}\n{program.text}"
    options = DeviceOptions(form=form)  # type: ignore[arg-type] # one of its words
    code = compiler(SIMULATOR).compile(program.text, "main", None, options).code
    plain = HostFunction(compiler(TargetName("cpu")).compile(program.text, "main", None).code)
    on_host, on_device = copies(program.arguments), copies(program.arguments)
    expected = _listed(plain(*on_host))
    device = SimulatedDevice("sm_90", order, seed=0)  # type: ignore[arg-type] # one of its words
    loaded = LoadedProgram(code, device)
    try:
        found = _listed(loaded(*on_device))
    finally:
        loaded.close()
    for one, other in zip((*found, *on_device), (*expected, *on_host), strict=True):
        np.testing.assert_array_equal(one, other, where)
    assert not device.reports, f"{[str(report) for report in device.reports]}, {where}"
    assert device.counts.allocations == device.counts.frees, where
    assert plain.allocations == 0, where


def compiler(target: TargetName) -> ProgramCompiler:
    """Returns what compiles programs without scripts."""
    return ProgramCompiler(target, Machine.__new__(Machine))  # asked for nothing where there are no scripts


def _listed(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)
