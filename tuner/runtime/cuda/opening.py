"""Opens the CUDA driver and a GPU; errors say in one line which part is missing."""

from tuner.core.device import DeviceError
from tuner.runtime.cuda.bindings_driver import BindingsDriver
from tuner.runtime.cuda.ctypes_driver import LIBRARY, CtypesDriver
from tuner.runtime.cuda.cuda_device import CudaDevice
from tuner.runtime.cuda.driver import AbstractDriver, CheckedDriver

SEE = "nvidia-smi shows what is there"


def open_device(ordinal: int = 0, library: str | None = None) -> CudaDevice:
    """Opens GPU ``ordinal`` (0: the first), which creates a context in its memory.

    ``library``: path of libcuda; None: see ``open_driver``. Raises DeviceError, which says what is missing.
    """
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
    """Returns an interface to the CUDA driver: through cuda-bindings where installed, else through libcuda.

    ``library``: path of the libcuda to use, without cuda-bindings. Raises DeviceError where libcuda cannot be
    loaded.
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
        reason = f"no CUDA driver: {library} cannot be loaded; it comes with the NVIDIA driver; {SEE}"
        raise DeviceError(reason) from error
