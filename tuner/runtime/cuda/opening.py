"""Opens the driver and the GPU; the error of a missing part says which, in one line."""

from tuner.core.device import DeviceError
from tuner.runtime.cuda.bindings_driver import BindingsDriver
from tuner.runtime.cuda.ctypes_driver import LIBRARY, CtypesDriver
from tuner.runtime.cuda.cuda_device import CudaDevice
from tuner.runtime.cuda.driver import AbstractDriver, CheckedDriver

SEE = "nvidia-smi shows what is there"


def open_device(ordinal: int = 0, library: str | None = None) -> CudaDevice:
    """Opens a GPU, whose context takes memory there. Raises DeviceError with what is missing."""
    driver = CheckedDriver(open_driver(library))
    try:
        driver("cuInit", 0)
        count = driver("cuDeviceGetCount")
    except DeviceError as error:
        raise DeviceError(f"no CUDA GPU can be used: {error}; {SEE}", error.error_name) from error
    if not 0 <= ordinal < count:
        raise DeviceError(f"CUDA GPU {ordinal}: found {count} GPUs, allowed 0 to {count - 1}; {SEE}")
    return CudaDevice(driver, ordinal)


def open_driver(library: str | None = None) -> AbstractDriver:
    """Returns the driver through cuda-bindings where installed, else through libcuda or the named library."""
    if library is not None:
        return _by_ctypes(library)
    by_ctypes = _by_ctypes(LIBRARY)  # first: its absence has a message of its own
    try:
        return BindingsDriver()
    except ImportError:
        return by_ctypes


def _by_ctypes(library: str) -> CtypesDriver:
    try:
        return CtypesDriver(library)
    except OSError as error:
        reason = f"no CUDA driver: {library} cannot be loaded; it comes with the NVIDIA driver; {SEE}"
        raise DeviceError(reason) from error
