"""Programs for tests: read, rewritten, lowered for the host, called on the host or a simulated GPU."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir.bindings import ir
from tuner.mlir.transform import new_context
from tuner.models.lowering.host import lower_host_program
from tuner.models.lowering.read_program import read_program
from tuner.models.run.host_function import HostFunction


def host_function(text: str, rewrite: Callable[[Any], None] | None = None, scripts: Any = None) -> Any:
    """Returns a program as a function of numpy arrays; ``rewrite`` changes the bufferized payload before."""
    with new_context(), ir.Location.unknown():
        payload = read_program(text)
        if rewrite is not None:
            rewrite(payload)
        return HostFunction(lower_host_program(payload, scripts or {}))


def cpu_function(text: str, entry: str | None = None) -> HostFunction:
    """Returns a program, compiled as a whole with matmuls as loops, as a function of numpy arrays."""
    return HostFunction(compiler_of(TargetName("cpu")).compile(text, entry, None).code)


@contextmanager
def on_simulator(program: DeviceProgram, **options: Any) -> Iterator[tuple[DeviceFunction, SimulatedDevice]]:
    """Gives a program on a simulated GPU, where in the end nothing is reported and no memory is left."""
    device = SimulatedDevice(**options)
    with closing(DeviceFunction(program, device)) as loaded:
        yield loaded, device
    assert device.reports == ()
    assert device.counts.allocations == device.counts.frees


def first_script(problem: Problem, strategy: str = "matmul_gpu_naive") -> Script:
    return Script.of(GpuPoint(problem, feasible_set(problem, strategy).candidate(0)).script())


def read(text: str, rewrite: Callable[[Any], object] | None = None, entry: str | None = None) -> str:
    """Returns a program as it is read; ``rewrite`` changes it before it is verified and printed."""
    with new_context(), ir.Location.unknown():
        payload = read_program(text, entry)
        if rewrite is not None:
            rewrite(payload)
        assert payload.module.operation.verify()
        return str(payload.module)


def entry_read(text: str, entry: str | None = None) -> str:
    with new_context(), ir.Location.unknown():
        return read_program(text, entry).entry


def refusal(text: str, entry: str | None = None) -> tuple[Stage, str]:
    with pytest.raises(CandidateError) as caught:
        read(text, entry=entry)
    return caught.value.stage, caught.value.reason
