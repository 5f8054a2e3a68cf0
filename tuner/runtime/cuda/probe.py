"""The GPU of this machine: finds, describes and opens it, reads its sensors and its roofline."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

from tuner.core.errors import TunerError
from tuner.core.gpu import CLOCK_FLOP, AbstractDevice, Chip, DeviceError
from tuner.core.machine import GpuState, Machine, Roofline, gpu_machine
from tuner.runtime.cuda.device import CudaDevice
from tuner.runtime.cuda.driver import (
    LIBRARY,
    AbstractDriver,
    BindingsDriver,
    CheckedDriver,
    CtypesDriver,
    CudaFacts,
    read_facts,
)

MODULE = "pynvml"  # of nvidia-ml-py
HZ_OF_MHZ = 1e6
W_OF_MW = 1e-3
# nvmlClocksEventReason* of nvml.h that make the GPU slower than it could be; not among them: an idle GPU,
# clocks that the user chose, and clocks synchronised with another GPU
SLOWDOWNS = (
    (0x004, "power cap"),
    (0x008, "hardware slowdown"),
    (0x020, "thermal (software)"),
    (0x040, "thermal (hardware)"),
    (0x080, "power brake"),
)
HINT = "nvidia-smi shows what is there"
# CUdevice_attribute of cuda.h
PCI_BUS_ID = 33
PCI_DEVICE_ID = 34
PCI_DOMAIN_ID = 50
COPY_BYTES = 1 << 30  # many times any cache
# of the GPU's memory at most an eighth, a multiple of 256 bytes
COPY_SHARE = 8
COPY_MULTIPLE = 256
COPIES = 10


class SensorsError(TunerError):
    """The error of a GPU whose sensors cannot be read: NVML is missing or does not know the GPU."""


@final
class GpuSensors:
    """The sensors of one GPU, read through NVML: clocks, temperature, power, and what limits the clocks."""

    def __init__(self, bus: str) -> None:
        """Takes the GPU's PCI address, "00000000:3b:00.0". Raises SensorsError where NVML has none."""
        try:
            self._nvml: Any = importlib.import_module(MODULE)
        except ImportError as error:
            raise SensorsError("no clocks or temperatures: pip install nvidia-ml-py") from error
        try:
            self._nvml.nvmlInit()
            self._gpu = self._nvml.nvmlDeviceGetHandleByPciBusId(bus.encode())
        except self._nvml.NVMLError as error:
            raise SensorsError(f"no clocks or temperatures: NVML: {error}") from error

    def read(self) -> GpuState:
        """Reads the sensors, in about a millisecond; a number that the GPU does not report is None."""
        nvml = self._nvml
        gpu = self._gpu

        def scaled(unit: float, query: Callable[..., int], *which: int) -> float | None:
            try:
                return query(gpu, *which) * unit
            except nvml.NVMLError:  # GPU or driver does not support the query
                return None

        reasons = scaled(1, nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return GpuState(
            sm_clock_hz=scaled(HZ_OF_MHZ, nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            memory_clock_hz=scaled(HZ_OF_MHZ, nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
            temperature_c=scaled(1.0, nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            power_w=scaled(W_OF_MW, nvml.nvmlDeviceGetPowerUsage),
            slowdowns=slowdowns_in(int(reasons or 0)),
        )


def slowdowns_in(reasons: int) -> tuple[str, ...]:
    """Returns the names of the reasons that slow a GPU down, such as "power cap".

    ``reasons``: bits of nvmlClocksEventReasons.
    """
    return tuple(name for bit, name in SLOWDOWNS if reasons & bit)


def open_device(ordinal: int = 0, library: str | None = None) -> CudaDevice:
    """Opens the GPU number ``ordinal`` with its primary context. ``library``: path of libcuda.

    Raises DeviceError without a driver, and for a GPU that does not exist.
    """
    driver = CheckedDriver(open_driver(library))
    try:
        driver("cuInit", 0)
        count = driver("cuDeviceGetCount")
    except DeviceError as error:
        raise DeviceError(f"no CUDA GPU can be used: {error}; {HINT}", error.error_name) from error
    if not count:
        raise DeviceError(f"the CUDA driver finds no GPU; {HINT}")
    if not 0 <= ordinal < count:
        raise DeviceError(f"CUDA GPU {ordinal}: found {count} GPUs, allowed 0 to {count - 1}; {HINT}")
    return CudaDevice(driver, ordinal)


def open_driver(library: str | None = None) -> AbstractDriver:
    """Returns the driver: by ctypes with ``library``, a path of libcuda; else by cuda-bindings if installed.

    Without cuda-bindings by ctypes as well. Raises DeviceError if libcuda is missing.
    """
    if library is not None:
        return _by_ctypes(library)
    by_ctypes = _by_ctypes(LIBRARY)  # first: a missing libcuda has a separate message
    try:
        return BindingsDriver()
    except ImportError:
        return by_ctypes


def _by_ctypes(library: str) -> CtypesDriver:
    try:
        return CtypesDriver(library)
    except OSError as error:
        reason = f"no CUDA driver: {library} cannot be loaded; it comes with the NVIDIA driver; {HINT}"
        raise DeviceError(reason) from error


@dataclass(frozen=True)
class GpuHere:
    """The GPU that this process would open: its properties and its PCI address."""

    facts: CudaFacts
    bus: str  # PCI address, as NVML writes it: "00000000:3b:00.0"


def describe_gpu(library: str | None = None) -> GpuHere:
    """Returns properties and PCI address of the first GPU, without creating a context.

    Raises DeviceError without a driver or a GPU.
    """
    driver = CheckedDriver(open_driver(library))
    driver("cuInit", 0)
    if driver("cuDeviceGetCount") == 0:
        raise DeviceError(f"the CUDA driver finds no GPU; {HINT}")
    device = driver("cuDeviceGet", 0)
    domain, bus, slot = (
        int(driver("cuDeviceGetAttribute", which, device))
        for which in (PCI_DOMAIN_ID, PCI_BUS_ID, PCI_DEVICE_ID)
    )
    return GpuHere(read_facts(driver, device), f"{domain:08x}:{bus:02x}:{slot:02x}.0")


def require_chip(chip: Chip, facts: CudaFacts) -> None:
    """Raises DeviceError unless the GPU described by ``facts`` has the compute capability of ``chip``."""
    if facts.chip != f"sm_{chip.capability}":
        raise DeviceError(f"code is for {chip.name}, the GPU here is {facts.name}, {facts.chip}")


def machine_for(chip: Chip) -> Machine:
    """Returns the Machine of this machine's GPU if it is a ``chip``.

    Else one of which only the chip is known.
    """
    try:
        facts = describe_gpu().facts
        require_chip(chip, facts)
    except DeviceError:
        return machine_of(chip, None)
    return machine_of(chip, facts)


def machine_of(chip: Chip, facts: CudaFacts | None) -> Machine:
    """Returns the Machine of a GPU; ``facts`` None: only its chip is known, all sizes are 0."""
    unknown = gpu_machine("cuda", chip, "NVIDIA GPU")
    if facts is None:
        return unknown
    return replace(
        unknown,
        name=facts.name,
        processor=f"{facts.name}, CUDA driver {facts.driver_version}",
        physical_cores=facts.multiprocessors,
        logical_cores=facts.multiprocessors,
        l3_bytes=facts.l2_bytes,
        memory_bytes=facts.memory_bytes,
    )


def gpu_roofline(device: AbstractDevice, facts: CudaFacts, dtype: str) -> Roofline:
    """Returns a GPU's roofline: documented peak flop/s of ``dtype``, and measured bytes/s of copies.

    Raises TunerError if no peak is documented.
    """
    flop_per_s = documented_flop_per_s(facts, dtype)
    source = f"documented, at {facts.clock_hz / HZ_OF_MHZ:.0f} MHz"
    return Roofline(flop_per_s, copied_bytes_per_s(device, facts.memory_bytes), source)


def documented_flop_per_s(facts: CudaFacts, dtype: str) -> float:
    """Returns the documented peak flop/s of ``dtype`` at the GPU's highest clock.

    Raises TunerError if no peak is documented for the chip or the dtype.
    """
    known = CLOCK_FLOP.get(facts.chip)
    if known is None:
        raise TunerError(f"roofline: found {facts.chip}, allowed {', '.join(CLOCK_FLOP)}: no documented peak")
    if dtype not in known:
        raise TunerError(f"roofline: found {dtype}, allowed {', '.join(known)}: no documented peak")
    return known[dtype] * facts.multiprocessors * facts.clock_hz


def copied_bytes_per_s(device: AbstractDevice, memory_bytes: int) -> float:
    """Returns the bytes read plus written per second by the fastest of 10 copies of at most 1 GiB.

    ``memory_bytes``: of the GPU; a small one copies less.
    """
    size = min(COPY_BYTES, memory_bytes // COPY_SHARE // COPY_MULTIPLE * COPY_MULTIPLE)
    stream = device.create_stream()
    source, target = (device.allocate(size, stream) for _ in range(2))
    start, stop = (device.create_event(is_timed=True) for _ in range(2))
    device.fill(source, 0, 4, size // 4, stream)
    taken_s = []
    for _ in range(COPIES):
        device.copy(target, source, size, stream)  # during this copy the next one is launched
        device.record_event(start, stream)
        device.copy(target, source, size, stream)
        device.record_event(stop, stream)
        device.synchronize_event(stop)
        taken_s.append(device.elapsed_s(start, stop))
    for event in (start, stop):
        device.destroy_event(event)
    for address in (source, target):
        device.free(address, stream)
    device.destroy_stream(stream)
    return 2 * size / min(taken_s)
