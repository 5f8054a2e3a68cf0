"""The GPU check, fourth part: whole programs on the GPU against the simulated one, in every form."""

import functools
import importlib.util
from typing import Any

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, skipped
from benchmarks.gpu_check.device_under_test import SIMULATOR, Bed
from benchmarks.gpu_check.program_runs import (
    CALLS,
    SEEDS,
    TWO_MATMULS,
    Seed,
    arguments_of,
    called,
    evaluated_by,
    program_of,
    uploaded,
)
from tuner.core.candidate import TargetName
from tuner.core.device import AbstractDevice
from tuner.core.device_programs import DEFAULTS, DeviceOptions, Form
from tuner.models.comparison import compare, outputs
from tuner.models.execution import copies, reports_of
from tuner.models.program_times import ProgramTimes

# Few blocks and a long K: kernels of a millisecond that leave room for one another
OVERLAPPING = """func.func @main(%a: memref<128x16384xf32>, %b: memref<16384x128xf32>,
                            %c: memref<128x128xf32>, %d: memref<128x128xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<128x128xf32>)
  linalg.fill ins(%zero : f32) outs(%d : memref<128x128xf32>)
  linalg.matmul ins(%a, %b : memref<128x16384xf32>, memref<16384x128xf32>) outs(%c : memref<128x128xf32>)
  linalg.matmul ins(%a, %b : memref<128x16384xf32>, memref<16384x128xf32>) outs(%d : memref<128x128xf32>)
  return
}"""


CALLERS = (Seed("gpux_users_stream"), TWO_MATMULS)


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns the checks of programs."""
    from benchmarks.gpu_check.graphs import as_device_graph, as_graph

    forms = [(seed, form) for seed in SEEDS for form in seed.forms[: 1 if bed.is_quick else None]]
    found = [Check(f"{seed.name}, {form}", functools.partial(agree, bed, seed, form)) for seed, form in forms]
    callers = CALLERS[:1] if bed.is_quick else CALLERS
    found += [
        Check(f"{seed.name} on the caller's stream", functools.partial(on_callers_stream, bed, seed))
        for seed in callers
    ]
    found.append(Check("two_matmuls, pinned", lambda: agree(bed, TWO_MATMULS, "streams", is_pinned=True)))
    found.append(Check("calls again", lambda: call_again(bed)))
    found.append(Check("graph of host memory", lambda: as_graph(bed)))
    found.append(Check("graph of device memory", lambda: as_device_graph(bed)))
    found.append(Check("overlap of two kernels", lambda: overlap(bed)))
    found.append(Check("random programs", lambda: ask_random(bed)))
    return tuple(found)


def agree(bed: Bed, seed: Seed, form: Form, is_pinned: bool = False) -> CheckOutcome:
    """Calls a program twice on the GPU, once on the simulator, and compares. Raises TunerError."""
    options = DeviceOptions(form=form, pinned=is_pinned)
    code, device = program_of(seed.text, bed.target, options), bed.open()
    arguments = arguments_of(code)
    found = [called(device, code, arguments, calls) for calls in (1, 2)]
    return against_simulator(bed, seed.text, options, arguments, found[0], found[1], device)


def on_callers_stream(bed: Bed, seed: Seed) -> CheckOutcome:
    """Calls a program on a stream of the caller's. Raises TunerError."""
    from tuner.gpu.run.device_function import DeviceFunction

    code, device = program_of(seed.text, bed.target, DEFAULTS), bed.open()
    arguments = arguments_of(code)
    own, stream = copies(arguments), device.create_stream()
    program = DeviceFunction(code, device)
    found = copies(outputs(code, program(*own, stream=stream), own))
    program.close()
    device.destroy_stream(stream)
    return against_simulator(bed, seed.text, DEFAULTS, arguments, found, found, device)


def call_again(bed: Bed, seed: Seed = TWO_MATMULS) -> CheckOutcome:
    """Checks that later calls create no stream and no module. Raises TunerError."""
    from tuner.gpu.run.device_function import DeviceFunction
    from tuner.models.recording_device import RecordingDevice

    code = program_of(seed.text, bed.target, DEFAULTS)
    recorder = RecordingDevice(bed.open())
    arguments, counts = arguments_of(code), []
    program = DeviceFunction(code, recorder)
    for _ in range(CALLS):
        program(*copies(arguments))
        counts.append(tuple(count(recorder, name) for name in ("create stream", "load ")))
    program.close()
    streams, modules = counts[0]
    phrase = f"{CALLS} calls: {counts[-1][0]} streams, {counts[-1][1]} modules; one: {streams}, {modules}"
    is_right = counts[-1] == counts[0] == (code.stream_slots, code.llvm.count("gpu.binary @"))
    return evaluated(
        is_right, phrase, streams=[each[0] for each in counts], modules=[each[1] for each in counts]
    )


def overlap(bed: Bed) -> CheckOutcome:
    """Times two independent kernels, which must run concurrently. Raises TunerError."""
    from tuner.models.execution import kernel_times

    if not bed.is_hardware:
        return skipped(f"no clock on the {bed.device}")
    code = program_of(OVERLAPPING, bed.target, DeviceOptions(device_arguments=True))
    device = bed.open()
    views = uploaded(device, arguments_of(code))
    times = ProgramTimes(0.0, kernel_times(device, code, views), code.stream_slots)
    phrase = f"{times.kernel_s * 1e3:.3g} ms in {len(times.kernels)} kernels on {times.streams} streams, "
    phrase += f"overlap {times.overlap or 0.0:.2f}"
    return evaluated(not times.is_serialized, phrase, overlap=times.overlap, kernel_s=times.kernel_s)


def ask_random(bed: Bed) -> CheckOutcome:
    """Runs random programs, where hypothesis is installed."""
    if importlib.util.find_spec("hypothesis") is None:
        return skipped("no random programs (pip install -e '.[dev]')")
    from benchmarks.gpu_check.random_programs import random_programs

    return random_programs(bed)


def against_simulator(
    bed: Bed,
    text: str,
    options: DeviceOptions,
    arguments: tuple[Any, ...],
    found: tuple[Any, ...],
    again: tuple[Any, ...],
    device: AbstractDevice,
) -> CheckOutcome:
    """Compares two results with those of the simulator, which also detects work without an order."""
    from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice

    code = program_of(text, TargetName(SIMULATOR, bed.chip), options)
    simulated = SimulatedDevice(bed.chip)
    expected = called(simulated, code, arguments, 1)
    comparisons = [*compare(code, found, expected), *compare(code, again, expected)]
    streams = f"{code.stream_slots} streams" if code.stream_slots else "streams of each call"
    return evaluated_by(comparisons, (*reports_of(device), *reports_of(simulated)), streams)


def count(recorder: Any, name: str) -> int:
    """Returns how many calls of a trace begin with ``word``."""
    return sum(line.startswith(name) for line in recorder.trace)
