"""The example programs of the GPU check, and how each is called and verified."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_check.checks import CheckOutcome, evaluated, passed
from tuner.core.candidate import TargetName
from tuner.core.device import AbstractDevice
from tuner.core.device_programs import FORMS, DeviceOptions, DeviceProgram, Form
from tuner.models.arguments import make_arguments
from tuner.models.comparison import outputs
from tuner.models.execution import copies
from tuner.models.report import Comparison

EXAMPLES = Path(__file__).parents[2] / "examples"

SEED = 3

CALLS = 3


@dataclass(frozen=True)
class Seed:
    """An example program, and the forms that its device work can take."""

    name: str
    forms: tuple[Form, ...] = FORMS

    @property
    def text(self) -> str:
        """Returns its MLIR."""
        return (EXAMPLES / f"{self.name}.mlir").read_text()


TWO_MATMULS = Seed("two_matmuls")

SEEDS = (
    Seed("async_matmul"),
    TWO_MATMULS,
    Seed("gpux_own_streams", ("streams",)),  # which names its streams itself
    Seed("gpux_users_stream", ("streams",)),
)


def program_of(text: str, target: TargetName, options: DeviceOptions) -> DeviceProgram:
    """Compiles a payload with the default scripts of its matmuls. Raises TunerError."""
    from tests.support.program_compiler import compiler_of

    return compiler_of(target).compile(text, options=options).code


def arguments_of(code: DeviceProgram) -> tuple[Any, ...]:
    """Returns random arguments, the same each time."""
    return make_arguments(code.arguments, (), np.random.default_rng(SEED))


def called(
    device: AbstractDevice, code: DeviceProgram, arguments: tuple[Any, ...], calls: int
) -> tuple[Any, ...]:
    """Loads a program and calls it ``calls`` times, each time on fresh arguments.

    Returns the last results.
    """
    from tuner.gpu.run.device_function import DeviceFunction

    program = DeviceFunction(code, device)
    try:
        for _ in range(calls):
            own = copies(arguments)
            found = outputs(code, program(*own), own)
    finally:
        program.close()
    return found


def evaluated_by(
    comparisons: list[Comparison], reports: tuple[str, ...], texts: str, **more: Any
) -> CheckOutcome:
    """Returns an outcome from comparisons of numbers and from the reports of a simulated device."""
    if not comparisons:
        return evaluated(not reports, reports[0] if reports else f"{texts}, nothing to compare", **more)
    worst = max(
        comparisons, key=lambda one: one.max_error / one.tolerance if one.tolerance else one.max_error
    )
    facts = {"max_error": worst.max_error, "tolerance": worst.tolerance, "reports": list(reports), **more}
    if reports:
        return evaluated(False, f"{reports[0]}, and {len(reports) - 1} more", **facts)
    differs = f"{worst.name} differs by {worst.max_error:.3g}, allowed {worst.tolerance:.3g}"
    return passed(texts, **facts) if worst.is_equal else evaluated(False, differs, **facts)


def uploaded(device: AbstractDevice, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns views of copies in device memory."""
    from tuner.runtime.arrays import ArrayView

    views = []
    for array in arrays:
        address = device.allocate(array.nbytes, 0)
        device.copy(address, array.ctypes.data, array.nbytes, 0)
        views.append(ArrayView(address, array.shape, None, array.dtype, None))
    device.synchronize_stream(0)
    return tuple(views)
