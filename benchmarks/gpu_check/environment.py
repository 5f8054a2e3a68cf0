"""The GPU check, first part: the environment of this machine."""

import importlib
import importlib.metadata
import platform
from dataclasses import asdict
from pathlib import Path

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, passed, skipped
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_check.sanitizer_tool import SANITIZER, installed_sanitizer
from tuner.core.gpu import chip_of
from tuner.gpu.target.compiler import locate

PACKAGES = (
    *("numba-cuda-mlir", "torch-mlir", "numpy", "ml_dtypes", "optuna", "cuda-bindings", "cuda-core"),
    *("cuda-pathfinder", "nvidia-cuda-nvcc", "nvidia-ml-py", "nvidia-cublas", "nvidia-cublas-cu12"),
    "nvidia-cuda-sanitizer-api",
    *("torch", "cupy-cuda12x", "cupy-cuda13x"),
)


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns the questions about the machine."""
    return (
        Check("gpu", lambda: ask_gpu(bed)),
        Check("packages", ask_packages),
        Check("ptxas", lambda: ask_ptxas(bed)),
        Check("sensors", lambda: ask_sensors(bed)),
        Check("cublas", lambda: ask_cublas(bed)),
        Check("sanitizer", ask_sanitizer),
    )


def ask_gpu(bed: Bed) -> CheckOutcome:
    """Reports the GPU and its driver; allocates a few bytes of device memory."""
    here, device = bed.here(), bed.open()
    stream = device.create_stream()
    device.free(device.allocate(256, stream), stream)
    device.synchronize_stream(stream)
    device.destroy_stream(stream)
    if here is None:
        return passed(f"{device.name}, {device.chip}")
    facts = here.facts
    text = (
        f"{facts.name}, {facts.chip}, {facts.multiprocessors} multiprocessors, driver {facts.driver_version}"
    )
    return passed(text, gpu=asdict(facts), bus=here.bus)


def ask_packages() -> CheckOutcome:
    """Reports versions of packages; fails where the MLIR bindings cannot be loaded."""
    importlib.import_module("tuner.mlir.bindings")
    from tuner.mlir.fingerprint import llvm_version

    versions = {name: version for name in PACKAGES if (version := _version(name)) is not None}
    llvm = llvm_version()
    text = f"Python {platform.python_version()}, LLVM {llvm}, {len(versions)} packages"
    return passed(text, packages=versions, llvm=llvm)


def ask_ptxas(bed: Bed) -> CheckOutcome:
    """Reports the version of ptxas; fails where ptxas does not support the chip."""
    from tuner.gpu.target.compiler import find_ptxas

    ptxas = find_ptxas()
    if ptxas is None:
        return skipped("no ptxas: the driver assembles PTX when it loads it")
    ptxas.require(chip_of(bed.chip))
    return passed(f"ptxas {ptxas.version} of {ptxas.tool.origin}", ptxas=ptxas.version)


def ask_sensors(bed: Bed) -> CheckOutcome:
    """Reads clocks, temperature and power."""
    from tuner.gpu.driver.sensors import GpuSensors, SensorsError

    here = bed.here()
    if here is None or not bed.is_hardware:
        return skipped(f"no sensors on the {bed.device}")
    try:
        state = GpuSensors(here.bus).read()
    except SensorsError as error:
        return skipped(str(error))
    known = {name: value for name, value in asdict(state).items() if value is not None}
    return evaluated(bool(known), f"{state.temperature_c} C, {state.power_w} W", sensors=known)


def ask_cublas(bed: Bed) -> CheckOutcome:
    """Reports the cuBLAS that is the baseline of timings."""
    from tuner.core.errors import TunerError
    from tuner.gpu.driver.cublas_files import find_cublas

    if not bed.is_hardware:
        return skipped(f"no cuBLAS on the {bed.device}")
    try:
        return passed(Path(find_cublas()).name)
    except TunerError as error:
        return skipped(str(error))


def ask_sanitizer() -> CheckOutcome:
    """Reports the path of compute-sanitizer."""
    path = find_sanitizer()
    return (
        skipped(f"no {SANITIZER} (pip install nvidia-cuda-sanitizer-api)")
        if path is None
        else passed(path.name)
    )


def find_sanitizer() -> Path | None:
    """Returns compute-sanitizer from its wheel, from PATH, or from CUDA's installation.

    None where it is missing.
    """
    tool = locate(SANITIZER)
    if tool is not None:
        return tool.path
    return installed_sanitizer()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
