"""The GPU of this machine: finds, describes and opens it."""

from dataclasses import dataclass, replace

from tuner.core.errors import DeviceError
from tuner.core.gpu import Chip
from tuner.core.machine import Machine, gpu_machine
from tuner.gpu.driver.device import CudaDevice
from tuner.gpu.driver.driver import (
    LIBRARY,
    AbstractDriver,
    BindingsDriver,
    CheckedDriver,
    CtypesDriver,
    CudaFacts,
    read_facts,
)

HINT = "nvidia-smi shows what is there"
# CUdevice_attribute of cuda.h
PCI_BUS_ID = 33
PCI_DEVICE_ID = 34
PCI_DOMAIN_ID = 50


def open_device(ordinal: int = 0, library: str | None = None) -> CudaDevice:
    """Opens the GPU with index ``ordinal`` with its primary context; returns the device.

    ``library``: path of libcuda; None: the installed one. Raises DeviceError without a driver, and for a GPU
    that does not exist.
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
    """Returns the CUDA driver, called by cuda-bindings if installed, else by ctypes.

    ``library``: path of libcuda, which is then called by ctypes; None: the installed one. Raises DeviceError
    if libcuda is missing.
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

    ``library``: path of libcuda; None: the installed one. Raises DeviceError without a driver or a GPU.
    """
    driver = CheckedDriver(open_driver(library))
    driver("cuInit", 0)
    if driver("cuDeviceGetCount") == 0:
        raise DeviceError(f"the CUDA driver finds no GPU; {HINT}")
    device = driver("cuDeviceGet", 0)
    domain, bus, slot = (
        int(driver("cuDeviceGetAttribute", number, device))
        for number in (PCI_DOMAIN_ID, PCI_BUS_ID, PCI_DEVICE_ID)
    )
    return GpuHere(read_facts(driver, device), f"{domain:08x}:{bus:02x}:{slot:02x}.0")


def require_chip(chip: Chip, facts: CudaFacts) -> None:
    """Raises DeviceError unless the GPU described by ``facts`` has the compute capability of ``chip``."""
    if facts.chip != f"sm_{chip.capability}":
        raise DeviceError(f"code is for {chip.name}, the GPU here is {facts.name}, {facts.chip}")


def machine_for(chip: Chip) -> Machine:
    """Returns the Machine of this machine's GPU if its chip is ``chip``.

    Without such a GPU or a driver, returns a Machine with the chip alone: all sizes are 0.
    """
    try:
        facts = describe_gpu().facts
        require_chip(chip, facts)
    except DeviceError:
        return machine_of(chip, None)
    return machine_of(chip, facts)


def machine_of(chip: Chip, facts: CudaFacts | None) -> Machine:
    """Returns the Machine of a GPU; ``facts`` None: only the chip is known, and all sizes are 0."""
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
