"""Runs a program on the simulated GPU and as loops on the host, and compares bit by bit."""

from typing import Any

import numpy as np

from benchmarks.fuzzing.host_programs import RandomProgram
from benchmarks.program_compiler import compiler_of
from tuner.core.target_name import TargetName
from tuner.programs.execution import copies
from tuner.programs.lower.device_options import DeviceOptions

SIMULATOR = TargetName.parse("simulator:sm_90")


def check_program(program: RandomProgram, form: str, order: str) -> None:
    """Raises AssertionError with the program's text for any difference, report, leak or double free."""
    from tuner.programs.run.device_function import DeviceFunction
    from tuner.programs.run.host_function import HostFunction
    from tuner.simulator.device.simulated_device import SimulatedDevice

    where = f"form {form}, order {order}\n{program.text}"
    options = DeviceOptions(form=form)  # type: ignore[arg-type] # one of its words
    code = compiler_of(SIMULATOR).compile(program.text, "main", None, options).code
    plain = HostFunction(compiler_of(TargetName("cpu")).compile(program.text, "main", None).code)
    on_host, on_device = copies(program.arguments), copies(program.arguments)
    expected = _listed(plain(*on_host))
    device = SimulatedDevice("sm_90", order, seed=0)  # type: ignore[arg-type] # one of its words
    loaded = DeviceFunction(code, device)
    try:
        found = _listed(loaded(*on_device))
    finally:
        loaded.close()
    for one, other in zip((*found, *on_device), (*expected, *on_host), strict=True):
        np.testing.assert_array_equal(one, other, where)
    assert not device.reports, f"{[str(report) for report in device.reports]}, {where}"
    assert device.counts.allocations == device.counts.frees, where
    assert plain.allocations == 0, where


def _listed(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)
