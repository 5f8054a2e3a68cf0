"""Programs of one ``gpu.launch`` for tests: two blocks of 64 threads on two buffers, run on the simulator."""

from contextlib import closing
from typing import Any

import numpy as np

from tests.models.file_check import filled
from tests.support.fuzzing.program_check import SIMULATOR
from tests.support.program_compiler import compiler_of
from tuner.core.device_programs import DEFAULTS, DeviceOptions
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import DeviceFunction

ARRAY = "memref<2x64xf32>"


def program(body: str, attributions: str = "", more: str = "", before: str = "", element: str = "f32") -> str:
    """Returns a module whose @main launches ``body``; %v is the thread's element of %x, %y the result.

    ``more`` are arguments of @main, ``before`` its ops.
    """
    parts = {"before": before, "attributions": attributions, "element": element, "body": body}
    return filled(__file__, "PROGRAM", more=more and f", {more}", **parts)


def store(value: str, element: str = "f32", target: str = "%y") -> str:
    return f"memref.store {value}, {target}[%bx, %tx] : {ARRAY.replace('f32', element)}"


def ran(text: str, *arguments: Any, order: str = "fifo", options: DeviceOptions = DEFAULTS) -> Any:
    """Runs on the simulator, which must find nothing wrong; returns what the program returns."""
    return called(compiler_of(SIMULATOR).compile(text, None, None, options).code, *arguments, order=order)


def called(code: Any, *arguments: Any, order: str = "fifo") -> Any:
    """Calls compiled code once on the simulator, which must find nothing wrong; returns its results."""
    device = SimulatedDevice("sm_90", order, seed=0)  # type: ignore[arg-type] # one of its words
    with closing(DeviceFunction(code, device)) as program:
        results = program(*arguments)
    assert device.reports == ()
    return results


def arrays(dtype: Any = np.float32) -> tuple[Any, Any]:
    """Returns the two buffers: small whole numbers, and zeros."""
    rng = np.random.default_rng(0)
    return rng.integers(-8, 8, (2, 64)).astype(dtype), np.zeros((2, 64), dtype)
