"""The CUDA driver by cuda-bindings or libcuda alone, through one table of calls; a GPU's properties.

``AbstractDriver`` is the port; BindingsDriver uses the package cuda-bindings, CtypesDriver the library
itself, by the parameters in the table CALLS; a CheckedDriver raises DeviceError for error codes.
``read_facts`` reads a GPU's properties.
"""

import abc
import ctypes
import re
from dataclasses import dataclass
from typing import Any, final

from tuner.core.device import Extent
from tuner.core.errors import DeviceError

SUCCESS = 0
Called = tuple[int, tuple[Any, ...]]  # CUresult, and the outputs in C's order
NAME_BYTES = 256  # of the buffer for a GPU's name
TENSOR_MAP_BYTES = 128  # CUtensorMap
# CUdevice_attribute of cuda.h
CLOCK_RATE = 13
MULTIPROCESSOR_COUNT = 16
MEMORY_CLOCK_RATE = 36
L2_CACHE_SIZE = 38
CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76
MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
MEMORY_POOLS_SUPPORTED = 115
HZ_PER_KHZ = 1e3
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
# An error of a newer driver, which the bindings do not know
UNKNOWN_CODE = re.compile(r"(\d+) is not a valid CUresult")
LIBRARY = "libcuda.so.1"


class AbstractDriver(abc.ABC):
    """An interface to call functions of the CUDA driver, those of the table CALLS."""

    origin: str  # "cuda-bindings 13.5", "libcuda.so.1"

    @abc.abstractmethod
    def call(self, name: str, *inputs: Any) -> Called:
        """Calls the driver function ``name``, a key of CALLS; returns (CUresult, outputs).

        Raises DeviceError if the driver is too old to have the function.
        """


@final
class CheckedDriver:
    """Calls functions of the CUDA driver; raises DeviceError for a CUresult other than CUDA_SUCCESS."""

    def __init__(self, driver: AbstractDriver) -> None:
        self._driver = driver
        self.origin = driver.origin

    def __call__(self, name: str, *inputs: Any, doing: str = "") -> Any:
        """Calls the driver function ``name``; returns its output, a tuple of several outputs, or None.

        ``doing``: what the call is for, in the message of a DeviceError.
        """
        result, outputs = self._driver.call(name, *inputs)
        if result != SUCCESS:
            raise self._error(name, result, doing)
        if len(outputs) == 1:
            return outputs[0]
        return outputs or None

    def _error(self, name: str, result: int, doing: str) -> DeviceError:
        error_name = self._text("cuGetErrorName", result) or f"CUDA error {result}"
        description = self._text("cuGetErrorString", result)
        parts = (name, doing, error_name, description)
        return DeviceError(": ".join(filter(None, parts)), error_name)

    def _text(self, name: str, result: int) -> str:
        code, outputs = self._driver.call(name, result)
        if code == SUCCESS:
            return (outputs[0] or b"").decode()
        return ""


# The table of the CUDA driver functions that the tuner calls, for both cuda-bindings and ctypes.
#
# Names are the names in cuda.h and cuda-bindings; symbols are the names that libcuda exports, of the newest
# version that every driver since CUDA 12.0 has. See <https://docs.nvidia.com/cuda/cuda-driver-api>.


@dataclass(frozen=True)
class CallParameter:
    """A parameter of a driver function: its C type, and whether it is an output or an enumeration."""

    ctype: Any
    is_output: bool = False
    enum: str = ""  # type in cuda-bindings, where a parameter does not accept a plain number


@dataclass(frozen=True)
class DriverCall:
    """A function of the CUDA driver: the symbol in libcuda, and its parameters in C's order."""

    symbol: str
    parameters: tuple[CallParameter, ...]


# Inputs
HANDLE = CallParameter(ctypes.c_void_p)
POINTER = CallParameter(ctypes.c_void_p)  # into host memory
ADDRESS = CallParameter(ctypes.c_uint64)  # CUdeviceptr
DEVICE = CallParameter(ctypes.c_int)  # CUdevice
INT = CallParameter(ctypes.c_int)
UINT = CallParameter(ctypes.c_uint)
ULONG = CallParameter(ctypes.c_uint64)
SIZE = CallParameter(ctypes.c_size_t)
TEXT = CallParameter(ctypes.c_char_p)
BYTE = CallParameter(ctypes.c_uint8)
SHORT = CallParameter(ctypes.c_uint16)
NUMBERS_64 = CallParameter(ctypes.POINTER(ctypes.c_uint64))  # a tuple
NUMBERS_32 = CallParameter(ctypes.POINTER(ctypes.c_uint32))
UINT64_BY_POINTER = CallParameter(ctypes.POINTER(ctypes.c_uint64), enum="cuuint64_t")  # by its address
LAUNCH = CallParameter(ctypes.c_void_p, enum="CUlaunchConfig")  # a LaunchConfig
# Outputs
OUT_HANDLE = CallParameter(ctypes.c_void_p, True)
OUT_ADDRESS = CallParameter(ctypes.c_uint64, True)
OUT_INT = CallParameter(ctypes.c_int, True)
OUT_SIZE = CallParameter(ctypes.c_size_t, True)
OUT_FLOAT = CallParameter(ctypes.c_float, True)
OUT_TEXT = CallParameter(ctypes.c_char_p, True)
OUT_NAME = CallParameter(ctypes.c_char * NAME_BYTES, True)  # two parameters of C: a buffer and its size
OUT_MAP = CallParameter(ctypes.c_uint8 * TENSOR_MAP_BYTES, True)


def enum(name: str) -> CallParameter:
    """Returns the CallParameter of an input whose C type is the enumeration ``name`` of cuda.h."""
    return CallParameter(ctypes.c_int, enum=name)


def _call(symbol: str, *parameters: CallParameter) -> DriverCall:
    return DriverCall(symbol, parameters)


CALLS: dict[str, DriverCall] = {
    "cuInit": _call("cuInit", UINT),
    "cuDriverGetVersion": _call("cuDriverGetVersion", OUT_INT),
    "cuGetErrorName": _call("cuGetErrorName", enum("CUresult"), OUT_TEXT),
    "cuGetErrorString": _call("cuGetErrorString", enum("CUresult"), OUT_TEXT),
    # devices and contexts
    "cuDeviceGetCount": _call("cuDeviceGetCount", OUT_INT),
    "cuDeviceGet": _call("cuDeviceGet", OUT_INT, INT),
    "cuDeviceGetName": _call("cuDeviceGetName", OUT_NAME, DEVICE),
    "cuDeviceTotalMem": _call("cuDeviceTotalMem_v2", OUT_SIZE, DEVICE),
    "cuDeviceGetAttribute": _call("cuDeviceGetAttribute", OUT_INT, enum("CUdevice_attribute"), DEVICE),
    "cuDevicePrimaryCtxRetain": _call("cuDevicePrimaryCtxRetain", OUT_HANDLE, DEVICE),
    "cuDevicePrimaryCtxRelease": _call("cuDevicePrimaryCtxRelease_v2", DEVICE),
    "cuCtxSetCurrent": _call("cuCtxSetCurrent", HANDLE),
    # modules and launches
    "cuModuleLoadData": _call("cuModuleLoadData", OUT_HANDLE, POINTER),
    "cuModuleUnload": _call("cuModuleUnload", HANDLE),
    "cuModuleGetFunction": _call("cuModuleGetFunction", OUT_HANDLE, HANDLE, TEXT),
    "cuFuncSetAttribute": _call("cuFuncSetAttribute", HANDLE, enum("CUfunction_attribute"), INT),
    "cuLaunchKernel": _call("cuLaunchKernel", HANDLE, *(UINT,) * 7, HANDLE, POINTER, POINTER),
    "cuLaunchKernelEx": _call("cuLaunchKernelEx", LAUNCH, HANDLE, POINTER, POINTER),
    # streams and events
    "cuStreamCreate": _call("cuStreamCreate", OUT_HANDLE, UINT),
    "cuStreamDestroy": _call("cuStreamDestroy_v2", HANDLE),
    "cuStreamSynchronize": _call("cuStreamSynchronize", HANDLE),
    "cuStreamWaitEvent": _call("cuStreamWaitEvent", HANDLE, HANDLE, UINT),
    "cuEventCreate": _call("cuEventCreate", OUT_HANDLE, UINT),
    "cuEventDestroy": _call("cuEventDestroy_v2", HANDLE),
    "cuEventRecord": _call("cuEventRecord", HANDLE, HANDLE),
    "cuEventSynchronize": _call("cuEventSynchronize", HANDLE),
    "cuEventElapsedTime": _call("cuEventElapsedTime", OUT_FLOAT, HANDLE, HANDLE),
    # memory
    "cuMemAlloc": _call("cuMemAlloc_v2", OUT_ADDRESS, SIZE),
    "cuMemFree": _call("cuMemFree_v2", ADDRESS),
    "cuMemAllocAsync": _call("cuMemAllocAsync", OUT_ADDRESS, SIZE, HANDLE),
    "cuMemFreeAsync": _call("cuMemFreeAsync", ADDRESS, HANDLE),
    "cuDeviceGetDefaultMemPool": _call("cuDeviceGetDefaultMemPool", OUT_HANDLE, DEVICE),
    "cuMemPoolSetAttribute": _call(
        "cuMemPoolSetAttribute", HANDLE, enum("CUmemPool_attribute"), UINT64_BY_POINTER
    ),
    "cuMemAllocHost": _call("cuMemAllocHost_v2", OUT_HANDLE, SIZE),
    "cuMemFreeHost": _call("cuMemFreeHost", POINTER),
    "cuMemHostRegister": _call("cuMemHostRegister_v2", POINTER, SIZE, UINT),
    "cuMemHostUnregister": _call("cuMemHostUnregister", POINTER),
    "cuMemcpyAsync": _call("cuMemcpyAsync", ADDRESS, ADDRESS, SIZE, HANDLE),
    "cuMemsetD8Async": _call("cuMemsetD8Async", ADDRESS, BYTE, SIZE, HANDLE),
    "cuMemsetD16Async": _call("cuMemsetD16Async", ADDRESS, SHORT, SIZE, HANDLE),
    "cuMemsetD32Async": _call("cuMemsetD32Async", ADDRESS, UINT, SIZE, HANDLE),
    # graphs
    "cuStreamBeginCapture": _call("cuStreamBeginCapture_v2", HANDLE, enum("CUstreamCaptureMode")),
    "cuStreamEndCapture": _call("cuStreamEndCapture", HANDLE, OUT_HANDLE),
    "cuGraphInstantiate": _call("cuGraphInstantiateWithFlags", OUT_HANDLE, HANDLE, ULONG),
    "cuGraphLaunch": _call("cuGraphLaunch", HANDLE, HANDLE),
    "cuGraphExecDestroy": _call("cuGraphExecDestroy", HANDLE),
    "cuGraphDestroy": _call("cuGraphDestroy", HANDLE),
    # tensor maps
    "cuTensorMapEncodeTiled": _call(
        "cuTensorMapEncodeTiled",
        OUT_MAP,
        enum("CUtensorMapDataType"),
        UINT,
        POINTER,
        *(NUMBERS_64, NUMBERS_64, NUMBERS_32, NUMBERS_32),
        enum("CUtensorMapInterleave"),
        enum("CUtensorMapSwizzle"),
        enum("CUtensorMapL2promotion"),
        enum("CUtensorMapFloatOOBfill"),
    ),
}


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
    """Returns the properties of the GPU with the CUdevice ``device``; creates no context.

    Raises DeviceError if a query fails.
    """

    def attribute(number: int) -> int:
        return int(driver("cuDeviceGetAttribute", number, device))

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


@dataclass(frozen=True)
class LaunchConfig:
    """The configuration of a kernel launch: grid, block, cluster, bytes of dynamic shared memory, stream."""

    grid: Extent
    block: Extent
    shared_bytes: int
    stream: int
    cluster: Extent


class CLaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h as a ctypes struct: an id and 64 bytes; a cluster's size comes first."""

    _fields_ = [
        ("id", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("cluster", ctypes.c_uint * 3),
        ("rest", ctypes.c_uint8 * 52),
    ]


class CLaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h as a ctypes struct: grid, block, shared memory, stream, attributes."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(CLaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def c_config(config: LaunchConfig) -> CLaunchConfig:
    """Returns a launch configuration as CUlaunchConfig, which keeps its attribute's memory alive."""
    attribute = CLaunchAttribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint * 3)(*config.cluster))
    return CLaunchConfig(
        (ctypes.c_uint * 3)(*config.grid),
        (ctypes.c_uint * 3)(*config.block),
        config.shared_bytes,
        config.stream,
        ctypes.pointer(attribute),
        1,
    )


@final
class BindingsDriver(AbstractDriver):
    """Calls the CUDA driver through NVIDIA's package cuda-bindings."""

    def __init__(self) -> None:
        """Imports cuda-bindings. Raises ImportError; a missing driver fails at the first call."""
        import cuda.bindings
        from cuda.bindings import driver

        self._driver: Any = driver
        self.origin = f"cuda-bindings {cuda.bindings.__version__}"

    def call(self, name: str, *inputs: Any) -> Called:
        parameters = CALLS[name].parameters
        values = iter(inputs)
        try:
            # the bindings allocate the buffer for a name; its size is an input
            arguments = [
                NAME_BYTES if parameter is OUT_NAME else self._input(parameter, next(values))
                for parameter in parameters
                if parameter is OUT_NAME or not parameter.is_output
            ]
            result, *outputs = getattr(self._driver, name)(*arguments)
        except (RuntimeError, AttributeError) as error:  # the function or the library is missing
            raise DeviceError(f"{name}: {' '.join(str(error).split())}") from error
        except ValueError as error:
            unknown = UNKNOWN_CODE.match(str(error))
            if unknown is None:
                raise
            return int(unknown[1]), ()
        if int(result) != 0:
            return int(result), ()
        written = zip([parameter for parameter in parameters if parameter.is_output], outputs, strict=True)
        return 0, tuple(_bindings_output(parameter, output) for parameter, output in written)

    def _input(self, parameter: CallParameter, value: Any) -> Any:
        if parameter is NUMBERS_64 or parameter is NUMBERS_32:
            number = self._driver.cuuint64_t if parameter is NUMBERS_64 else self._driver.cuuint32_t
            return list(map(number, value))
        if parameter is not LAUNCH:
            if parameter.enum:
                return getattr(self._driver, parameter.enum)(value)
            return value
        attribute = self._driver.CUlaunchAttribute()
        config = self._driver.CUlaunchConfig()
        attribute.id = self._driver.CUlaunchAttributeID(CLUSTER_DIMENSION)
        sizes = attribute.value.clusterDim
        sizes.x, sizes.y, sizes.z = value.cluster
        config.gridDimX, config.gridDimY, config.gridDimZ = value.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = value.block
        config.sharedMemBytes = value.shared_bytes
        config.hStream = value.stream
        config.attrs = [attribute]
        config.numAttrs = 1
        return config


def _bindings_output(parameter: CallParameter, output: Any) -> Any:
    if parameter is OUT_MAP:
        return ctypes.string_at(output.getPtr(), TENSOR_MAP_BYTES)
    if parameter is OUT_NAME or parameter is OUT_TEXT:
        return (output or b"").split(b"\0")[0]
    if parameter is OUT_HANDLE or not isinstance(output, int | float):
        return int(output)
    return output


@final
class CtypesDriver(AbstractDriver):
    """Calls the CUDA driver through ctypes, in the shared library libcuda."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Loads the library. Raises OSError where it is missing."""
        self._library = ctypes.CDLL(library)
        self._functions: dict[str, Any] = {}
        self.origin = library

    def call(self, name: str, *inputs: Any) -> Called:
        call = CALLS[name]
        function = self._functions.get(name) or self._function(name, call)
        values = iter(inputs)
        outputs = []
        arguments: list[Any] = []
        for parameter in call.parameters:
            if parameter.is_output:
                outputs.append(parameter.ctype())
                arguments.append(ctypes.byref(outputs[-1]))
                arguments += [NAME_BYTES] if parameter is OUT_NAME else []
            else:
                arguments.append(_input(parameter, next(values)))
        result = function(*arguments)
        return result, tuple(map(_output, outputs))

    def _function(self, name: str, call: DriverCall) -> Any:
        function: Any = getattr(self._library, call.symbol, None)
        if function is None:
            raise DeviceError(f"{name}: {self.origin} has no {call.symbol}: the CUDA driver is too old")
        function.restype = ctypes.c_int
        function.argtypes = [
            ctype
            for parameter in call.parameters
            for ctype in (
                (ctypes.c_void_p, ctypes.c_int)
                if parameter is OUT_NAME
                else (ctypes.c_void_p if parameter.is_output else parameter.ctype,)
            )
        ]
        self._functions[name] = function
        return function


def _input(parameter: CallParameter, value: Any) -> Any:
    if parameter is NUMBERS_64 or parameter is NUMBERS_32:
        return (parameter.ctype._type_ * len(value))(*value)
    if parameter is UINT64_BY_POINTER:
        return ctypes.pointer(ctypes.c_uint64(value))
    if parameter is LAUNCH:
        return ctypes.byref(c_config(value))
    return value


def _output(written: Any) -> Any:
    if isinstance(written, ctypes.Array):
        if written._type_ is ctypes.c_char:
            return written.value
        return bytes(written)
    if isinstance(written, ctypes.c_void_p):
        return written.value or 0
    return written.value
