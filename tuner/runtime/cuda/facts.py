"""Properties of a GPU as the driver reports them."""

from dataclasses import dataclass

from tuner.runtime.cuda.driver import CheckedDriver

# CUdevice_attribute of cuda.h
CLOCK_RATE, MULTIPROCESSOR_COUNT, MEMORY_CLOCK_RATE, L2_CACHE_SIZE = 13, 16, 36, 38
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, MEMORY_POOLS_SUPPORTED = 97, 115
HZ_PER_KHZ = 1e3


@dataclass(frozen=True)
class CudaFacts:
    """Properties of a GPU and of its driver, as the driver reports them: chip, memory, clocks, version."""

    name: str  # "NVIDIA H200"
    chip: str  # "sm_90"
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    max_shared_bytes: int  # of a block, static and dynamic
    clock_hz: float  # highest clock of the multiprocessors
    memory_clock_hz: float
    driver_version: str  # the newest CUDA that the driver supports: "13.0"
    has_memory_pools: bool  # for stream-ordered allocation


def read_facts(driver: CheckedDriver, device: int) -> CudaFacts:
    """Returns the properties of a GPU, given as CUdevice; creates no context. Raises DeviceError."""

    def attribute(which: int) -> int:
        return int(driver("cuDeviceGetAttribute", which, device))

    version = driver("cuDriverGetVersion")
    return CudaFacts(
        name=driver("cuDeviceGetName", device).decode(errors="replace"),
        chip=f"sm_{attribute(CAPABILITY_MAJOR)}{attribute(CAPABILITY_MINOR)}",
        multiprocessors=attribute(MULTIPROCESSOR_COUNT),
        memory_bytes=driver("cuDeviceTotalMem", device),
        l2_bytes=attribute(L2_CACHE_SIZE),
        max_shared_bytes=attribute(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        clock_hz=attribute(CLOCK_RATE) * HZ_PER_KHZ,
        memory_clock_hz=attribute(MEMORY_CLOCK_RATE) * HZ_PER_KHZ,
        driver_version=f"{version // 1000}.{version % 1000 // 10}",
        has_memory_pools=attribute(MEMORY_POOLS_SUPPORTED) != 0,
    )
