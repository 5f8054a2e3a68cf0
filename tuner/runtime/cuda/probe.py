"""Describes this machine's GPU by queries that need no context and allocate no GPU memory."""

from dataclasses import dataclass, replace

from tuner.core.chips import Chip
from tuner.core.device import DeviceError
from tuner.core.machine import Machine, gpu_machine
from tuner.runtime.cuda.driver import CheckedDriver
from tuner.runtime.cuda.facts import CudaFacts, read_facts
from tuner.runtime.cuda.opening import open_driver

# CUdevice_attribute of cuda.h
PCI_BUS_ID, PCI_DEVICE_ID, PCI_DOMAIN_ID = 33, 34, 50


@dataclass(frozen=True)
class GpuHere:
    """The GPU that this process would open: its properties and its PCI address."""

    facts: CudaFacts
    bus: str  # PCI address, as NVML writes it: "00000000:3b:00.0"


def describe_gpu(library: str | None = None) -> GpuHere:
    """Returns the properties and the PCI address of this machine's first GPU; creates no context.

    ``library``: path of libcuda; None: the installed one. Raises DeviceError, which says what is missing.
    """
    driver = CheckedDriver(open_driver(library))
    driver("cuInit", 0)
    if driver("cuDeviceGetCount") == 0:
        raise DeviceError("the CUDA driver finds no GPU")
    device = driver("cuDeviceGet", 0)
    domain, bus, place = (
        int(driver("cuDeviceGetAttribute", which, device))
        for which in (PCI_DOMAIN_ID, PCI_BUS_ID, PCI_DEVICE_ID)
    )
    return GpuHere(read_facts(driver, device), f"{domain:08x}:{bus:02x}:{place:02x}.0")


def require_chip(chip: Chip, facts: CudaFacts) -> None:
    """Raises DeviceError unless the GPU with ``facts`` has the compute capability of ``chip``."""
    if facts.chip != f"sm_{chip.capability}":
        raise DeviceError(f"code is for {chip.name}, the GPU here is {facts.name}, {facts.chip}")


def machine_for(chip: Chip) -> Machine:
    """Returns this machine's GPU as a Machine if it is a ``chip``, else one with only the chip known."""
    try:
        facts = describe_gpu().facts
        require_chip(chip, facts)
    except DeviceError:
        return machine_of(chip, None)
    return machine_of(chip, facts)


def machine_of(chip: Chip, facts: CudaFacts | None) -> Machine:
    """Returns a GPU with ``chip`` and properties ``facts`` as a Machine; None: only the chip is known."""
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
