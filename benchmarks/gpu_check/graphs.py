"""Calls as CUDA graphs, for the GPU check: each launch reads the arguments anew."""

import numpy as np

from benchmarks.gpu_check.checks import CheckOutcome
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_check.program_runs import (
    TWO_MATMULS,
    Seed,
    arguments_of,
    evaluated_by,
    program_of,
    uploaded,
)
from tuner.core.device_programs import DeviceOptions
from tuner.models.comparison import compare
from tuner.models.execution import reports_of

ROUNDS = 3


def as_graph(bed: Bed) -> CheckOutcome:
    """Launches a captured call on host memory that changes between launches. Raises TunerError."""
    from tuner.gpu.run.device_function import DeviceFunction

    code = program_of(TWO_MATMULS.text, bed.target, DeviceOptions(pinned=False))
    device, arguments = bed.open(), arguments_of(code)
    program = DeviceFunction(code, device)
    graph = program.as_graph(*arguments)
    errors = []
    for _ in range(ROUNDS):
        (found,) = graph.launch()
        a, b, c, d = (each.astype(np.float64) for each in arguments)
        errors.append(compare(code, (found,), (a @ b + c @ d,))[0])
        arguments[0][...] *= -2.0
    graph.close()
    program.close()
    return evaluated_by(errors, reports_of(device), f"{ROUNDS} launches of one graph")


def as_device_graph(bed: Bed) -> CheckOutcome:
    """Launches a captured call on device memory whose input changes between launches. Raises TunerError."""
    from tuner.gpu.run.device_function import DeviceFunction

    text = Seed("async_matmul").text
    code = program_of(text, bed.target, DeviceOptions(device_arguments=True))
    device, (a, b, c) = bed.open(), arguments_of(code)
    program, views = DeviceFunction(code, device), uploaded(device, (a, b, c))
    graph, errors = program.as_graph(*views), []
    stream = device.create_stream()
    for _ in range(ROUNDS):
        device.copy(views[0].address, a.ctypes.data, a.nbytes, stream)
        graph.launch(stream)
        device.copy(c.ctypes.data, views[2].address, c.nbytes, stream)
        device.synchronize_stream(stream)
        errors.append(compare(code, (c,), (a.astype(np.float64) @ b.astype(np.float64),))[0])
        a *= -2.0
    graph.close()
    program.close()
    for view in views:
        device.free(view.address, stream)
    device.synchronize_stream(stream)
    device.destroy_stream(stream)
    return evaluated_by(errors, reports_of(device), f"{ROUNDS} launches of one graph")
