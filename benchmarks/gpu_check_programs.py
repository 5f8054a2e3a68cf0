"""The GPU check, fourth part: whole programs on the GPU against the simulated one, in every form."""

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu_check_bed import SIMULATOR, Bed
from benchmarks.gpu_check_rows import Check, Outcome, judged, passed, skipped
from tuner.device import AbstractDevice
from tuner.device_program import DeviceProgram
from tuner.program_run import FORMS, Comparison, Form
from tuner.program_times import ProgramTimes
from tuner.target_name import TargetName
from tuner.tuning.program_arguments import make_arguments
from tuner.tuning.program_comparison import compare, outputs
from tuner.tuning.program_execution import copies, reports_of

if TYPE_CHECKING:
    from tuner.mlir.device_lowering import DeviceOptions

EXAMPLES = Path(__file__).parents[1] / "examples"
SEED = 3
CALLS = 3
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


@dataclass(frozen=True)
class Seed:
    """A program of the examples, and the forms that it can take."""

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
CALLERS = (Seed("gpux_users_stream"), TWO_MATMULS)


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns the checks of programs."""
    from benchmarks.gpu_check_graphs import as_device_graph, as_graph

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


def agree(bed: Bed, seed: Seed, form: Form, is_pinned: bool = False) -> Outcome:
    """Calls a program twice on the GPU, once on the simulator, and compares. Raises TunerError."""
    from tuner.mlir.device_lowering import DeviceOptions

    options = DeviceOptions(form=form, pinned=is_pinned)
    code, device = program_of(seed.text, bed.target, options), bed.open()
    arguments = arguments_of(code)
    found = [called(device, code, arguments, calls) for calls in (1, 2)]
    return against_simulator(bed, seed.text, options, arguments, found[0], found[1], device)


def on_callers_stream(bed: Bed, seed: Seed) -> Outcome:
    """Calls a program on a stream of the caller's. Raises TunerError."""
    from tuner.mlir.device_lowering import DEFAULTS
    from tuner.runtime.program import LoadedProgram

    code, device = program_of(seed.text, bed.target, DEFAULTS), bed.open()
    arguments = arguments_of(code)
    own, stream = copies(arguments), device.create_stream()
    program = LoadedProgram(code, device)
    found = copies(outputs(code, program(*own, stream=stream), own))
    program.close()
    device.destroy_stream(stream)
    return against_simulator(bed, seed.text, DEFAULTS, arguments, found, found, device)


def call_again(bed: Bed, seed: Seed = TWO_MATMULS) -> Outcome:
    """Counts what later calls create: no stream, no module. Raises TunerError."""
    from tuner.mlir.device_lowering import DEFAULTS
    from tuner.runtime.program import LoadedProgram
    from tuner.runtime.recorder import RecordingDevice

    code = program_of(seed.text, bed.target, DEFAULTS)
    recorder = RecordingDevice(bed.open())
    arguments, counts = arguments_of(code), []
    program = LoadedProgram(code, recorder)
    for _ in range(CALLS):
        program(*copies(arguments))
        counts.append(tuple(count(recorder, word) for word in ("create stream", "load ")))
    program.close()
    streams, modules = counts[0]
    words = f"{CALLS} calls: {counts[-1][0]} streams, {counts[-1][1]} modules; one: {streams}, {modules}"
    is_right = counts[-1] == counts[0] and (streams, modules) == (code.stream_slots, 1)
    return judged(is_right, words, streams=[each[0] for each in counts], modules=[each[1] for each in counts])


def overlap(bed: Bed) -> Outcome:
    """Times two kernels that need nothing of one another: they must run at once. Raises TunerError."""
    from tuner.mlir.device_lowering import DeviceOptions
    from tuner.tuning.program_timing import kernel_times

    if not bed.is_hardware:
        return skipped(f"no clock on the {bed.device}")
    code = program_of(OVERLAPPING, bed.target, DeviceOptions(device_arguments=True))
    device = bed.open()
    views = uploaded(device, arguments_of(code))
    times = ProgramTimes(0.0, kernel_times(device, code, views), code.stream_slots)
    words = f"{times.kernel_s * 1e3:.3g} ms in {len(times.kernels)} kernels on {times.streams} streams, "
    words += f"overlap {times.overlap or 0.0:.2f}"
    return judged(not times.is_serialized, words, overlap=times.overlap, kernel_s=times.kernel_s)


def ask_random(bed: Bed) -> Outcome:
    """Runs programs drawn at random, where what draws them is installed."""
    if importlib.util.find_spec("hypothesis") is None:
        return skipped("no random programs (pip install mlir-tuner[dev])")
    from benchmarks.gpu_check_random import random_programs

    return random_programs(bed)


def program_of(text: str, target: TargetName, options: "DeviceOptions") -> DeviceProgram:
    """Compiles a payload with the scripts that its matmuls get where nobody tuned them. Raises TunerError."""
    from tuner.tuning.parts import real_composition
    from tuner.tuning.program_compiler import ProgramCompiler

    machine = real_composition().target_machine(target.text)
    return ProgramCompiler(target, machine).compile(text, options=options).code


def arguments_of(code: DeviceProgram) -> tuple[Any, ...]:
    """Returns random arguments, the same each time."""
    return make_arguments(code.arguments, (), np.random.default_rng(SEED))


def called(
    device: AbstractDevice, code: DeviceProgram, arguments: tuple[Any, ...], calls: int
) -> tuple[Any, ...]:
    """Loads a program, calls it so often, each time on fresh arguments; returns what the last call gave."""
    from tuner.runtime.program import LoadedProgram

    program = LoadedProgram(code, device)
    try:
        for _ in range(calls):
            own = copies(arguments)
            found = outputs(code, program(*own), own)
    finally:
        program.close()
    return found


def against_simulator(
    bed: Bed,
    text: str,
    options: "DeviceOptions",
    arguments: tuple[Any, ...],
    found: tuple[Any, ...],
    again: tuple[Any, ...],
    device: AbstractDevice,
) -> Outcome:
    """Compares two results with those of the simulator, which looks for what nothing orders as well."""
    from tuner.runtime.simulated_device import SimulatedDevice

    code = program_of(text, TargetName(SIMULATOR, bed.chip), options)
    simulated = SimulatedDevice(bed.chip)
    expected = called(simulated, code, arguments, 1)
    comparisons = [*compare(code, found, expected), *compare(code, again, expected)]
    streams = f"{code.stream_slots} streams" if code.stream_slots else "streams of each call"
    return judged_by(comparisons, (*reports_of(device), *reports_of(simulated)), streams)


def judged_by(comparisons: list[Comparison], reports: tuple[str, ...], words: str, **more: Any) -> Outcome:
    """Returns an outcome by numbers and by what a simulated device reported."""
    if not comparisons:
        return judged(not reports, reports[0] if reports else f"{words}, nothing to compare", **more)
    worst = max(
        comparisons, key=lambda one: one.max_error / one.tolerance if one.tolerance else one.max_error
    )
    facts = {"max_error": worst.max_error, "tolerance": worst.tolerance, "reports": list(reports), **more}
    if reports:
        return judged(False, f"{reports[0]}, and {len(reports) - 1} more", **facts)
    differs = f"{worst.name} differs by {worst.max_error:.3g}, allowed {worst.tolerance:.3g}"
    return passed(words, **facts) if worst.is_equal else judged(False, differs, **facts)


def uploaded(device: AbstractDevice, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns views of copies in device memory."""
    from tuner.runtime.device_arrays import DeviceArray

    views = []
    for array in arrays:
        address = device.allocate(array.nbytes, 0)
        device.copy(address, array.ctypes.data, array.nbytes, 0)
        views.append(DeviceArray(address, array.shape, None, array.dtype, None))
    device.synchronize_stream(0)
    return tuple(views)


def count(recorder: Any, word: str) -> int:
    """Returns how many calls of a trace begin so."""
    return sum(line.startswith(word) for line in recorder.trace)
