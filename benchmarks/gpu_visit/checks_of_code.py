"""Sections 0, 1 and 8 of a visit: all code loads, micro-kernels, strategies whose code changed."""

import functools
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_check.checks import Check, CheckOutcome, failed, passed, skipped
from benchmarks.gpu_check.device_runs import fault_of
from benchmarks.gpu_check.sanitizer_tool import LIMIT_S, SANITIZER, TOOLS, installed_sanitizer, watched
from benchmarks.gpu_check.unchanged import EarlierRows
from benchmarks.gpu_visit.code_folder import SANITIZED, CodeEntry
from benchmarks.gpu_visit.kept_bits import BITS_PREFIX, kept_bits
from benchmarks.gpu_visit.workbench import Workbench, entry_facts
from tuner.core.interfaces import Effort
from tuner.core.records import GpuState
from tuner.gpu.driver.cublas_files import find_cublas

LOAD_LIMIT_S = 120.0
MICRO_EFFORT = Effort(budget_s=0.02, min_samples=5, max_samples=20)
FILL, FILL_BYTES = 0x3F3F3F3F, 4  # of inputs that the folder does not have
NO_RESULT = "nothing is computed on the {}"


def code_checks(bench: Workbench) -> tuple[Check, ...]:
    """Returns section 0: the GPU, its sensors, all modules, on a stand-in all cubins through nvdisasm."""
    checks = [
        Check("gpu", lambda: describe(bench)),
        Check("clocks and power", lambda: read_sensors(bench)),
        Check(
            "cuBLAS", lambda: passed(Path(find_cublas()).name) if bench.bed.is_hardware else _no_clock(bench)
        ),
        Check("modules", lambda: load_all(bench), LOAD_LIMIT_S),
    ]
    if not bench.bed.is_hardware:
        checks.append(Check("cubins through nvdisasm", lambda: disassemble_all(bench), LOAD_LIMIT_S))
    return tuple(checks)


def describe(bench: Workbench) -> CheckOutcome:
    """Reports the card, which every other figure of the file is of."""
    here = bench.bed.here()
    assert here is not None
    facts = here.facts
    words = (
        f"{facts.name}, {facts.chip}, {facts.multiprocessors} multiprocessors, driver {facts.driver_version}"
    )
    return passed(words, gpu=asdict(facts))


def read_sensors(bench: Workbench) -> CheckOutcome:
    """Reads clocks, power and temperature of the idle GPU."""
    state: GpuState | None = bench.gpu.read_sensors()
    if state is None:
        return skipped("no sensors")
    return passed(
        f"{state.sm_clock_hz} Hz, {state.power_w} W, {state.temperature_c} C", sensors=asdict(state)
    )


def load_all(bench: Workbench) -> CheckOutcome:
    """Loads every module, and gets its functions."""
    entries = {entry.code: entry for entry in bench.code.manifest.entries if entry.code}
    for entry in entries.values():
        program = bench.code.program(entry)
        module = bench.gpu.device.load_module(program.binary)
        for launch in program.launches:
            bench.gpu.device.function(module, launch.kernel)
        bench.gpu.device.unload_module(module)
    missing = [f"{entry.section} {entry.name}" for entry in bench.code.manifest.entries if entry.failure]
    return passed(f"{len(entries)} modules", modules=len(entries), not_compiled=missing)


def disassemble_all(bench: Workbench) -> CheckOutcome:
    """Loads every cubin through nvdisasm."""
    from benchmarks.gpu_visit.disassembly import disassembled  # loads MLIR, which a GPU machine may lack

    return disassembled(bench.code)


def micro_checks(bench: Workbench) -> tuple[Check, ...]:
    """Returns section 1: a check for each measurement of a micro-kernel."""
    entries = bench.code.of("micro_kernels")
    return tuple(Check(entry.name, functools.partial(run_micro_kernel, bench, entry)) for entry in entries)


def run_micro_kernel(bench: Workbench, entry: CodeEntry) -> CheckOutcome:
    """Runs a micro-kernel; reports the cycles of its blocks, its time, and the clock that follows."""
    device = bench.gpu.device
    given = bench.code.input_words(entry)
    with ExitStack() as memory:
        addresses = {}
        for buffer in entry.buffers:
            addresses[buffer.name] = device.allocate(buffer.bytes, 0)
            memory.callback(device.free, addresses[buffer.name], 0)
            device.fill(addresses[buffer.name], FILL, FILL_BYTES, buffer.bytes // FILL_BYTES, 0)
            if buffer.name in given:
                words = given[buffer.name]
                device.copy(addresses[buffer.name], words.ctypes.data, words.nbytes, 0)
        device.synchronize_stream(0)
        work = bench.load(bench.code.program(entry)).work(addresses)
        work(0)
        measurement, clocks = bench.measure(work, MICRO_EFFORT)
        results = {}
        for buffer in entry.buffers:
            if buffer.role == "output":
                results[buffer.name] = np.empty(buffer.bytes, np.uint8)
                target = results[buffer.name].ctypes.data
                device.copy(target, addresses[buffer.name], buffer.bytes, 0)
        device.synchronize_stream(0)
    if not bench.bed.is_hardware:
        return _no_clock(bench, **_micro_facts(entry))
    cycles = results["cycles"].view(np.uint64)
    facts = _micro_facts(entry) | cycle_facts(entry, cycles, measurement.median_s) | clocks
    if entry.name.startswith(BITS_PREFIX):
        facts["kept_bits"] = kept_bits(results["sums"].view(np.float32))
        return passed(f"kept bits {facts['kept_bits']}", **facts)
    return passed(f"{facts['cycles_per_operation']:.3f} cycles per {entry.unit}", **facts)


def _micro_facts(entry: CodeEntry) -> dict[str, Any]:
    threads = entry.launches[0].block[0]
    return {"unit": entry.unit, "operations": entry.operations, "warps": threads // 32} | entry_facts(entry)


def cycle_facts(entry: CodeEntry, cycles: "np.typing.NDArray[np.uint64]", run_s: float) -> dict[str, Any]:
    """Returns a block's cycles, the median over blocks of the longest of its warps, and the clock."""
    warps = entry.launches[0].block[0] // 32
    of_blocks = cycles.reshape(-1, warps).max(axis=1)
    block_cycles = float(statistics.median(of_blocks.tolist()))
    return {
        "block_cycles": block_cycles,
        "cycles_per_operation": block_cycles / entry.operations,
        "median_s": run_s,
        "least_clock_hz": block_cycles / run_s,  # the launch counts in the time, and not in the cycles
    }


def correctness_checks(bench: Workbench) -> tuple[Check, ...]:
    """Returns section 8: small cases of every strategy, and points under the sanitizer, by changed code."""
    earlier = EarlierRows.read(bench.bed.earlier)
    small = bench.code.of("correctness")
    checks = [Check(entry.name, functools.partial(run_case, bench, entry, earlier)) for entry in small]
    return (*checks, *_sanitizer_checks(bench, earlier))


def run_case(bench: Workbench, entry: CodeEntry, earlier: EarlierRows) -> CheckOutcome:
    """Compares every element with float64, unless the same code has passed before."""
    return earlier.or_ask("correctness", entry.name, entry.ptx_sha256, lambda: compare_case(bench, entry))


def compare_case(bench: Workbench, entry: CodeEntry) -> CheckOutcome:
    """Runs one case on fresh memory. Raises DeviceError, CandidateError."""
    assert entry.problem is not None
    fault = fault_of(bench.gpu.device, entry.problem, bench.code.program(entry))
    if not bench.bed.is_hardware:
        return _no_clock(bench, **entry_facts(entry))
    return failed(fault, **entry_facts(entry)) if fault else passed("", **entry_facts(entry))


def _sanitizer_checks(bench: Workbench, earlier: EarlierRows) -> Iterator[Check]:
    path = installed_sanitizer()
    entries = bench.code.of(SANITIZED)
    if path is None or not bench.bed.is_hardware:
        reason = f"no {SANITIZER} here" if path is None else f"nothing to watch on the {bench.bed.device}"
        yield Check(SANITIZER, lambda: skipped(reason))
        return
    for tool in TOOLS:
        for entry in entries:
            name = f"{entry.name}, {tool}"
            module = [
                "benchmarks.gpu_visit.watched_run",
                "--code",
                str(bench.code.path),
                "--name",
                entry.name,
            ]
            module += ["--device", bench.bed.device, "--chip", bench.bed.chip]
            ask = functools.partial(watched, path, tool, module)
            once = functools.partial(earlier.or_ask, "correctness", name, entry.ptx_sha256, ask)
            yield Check(name, once, LIMIT_S + 10.0)


def _no_clock(bench: Workbench, **facts: Any) -> CheckOutcome:
    return CheckOutcome("skipped", NO_RESULT.format(bench.bed.device), facts)
