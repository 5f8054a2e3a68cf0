"""The table of the CUDA driver functions that the tuner calls, for both cuda-bindings and ctypes.

Names are the names in cuda.h and cuda-bindings; symbols are the names that libcuda exports, of the newest
version that every driver since CUDA 12.0 has. See <https://docs.nvidia.com/cuda/cuda-driver-api>.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

NAME_BYTES = 256
TENSOR_MAP_BYTES = 128  # CUtensorMap


@dataclass(frozen=True)
class ParameterKind:
    """The kind of a driver function's parameter: its C type, and whether it is an output or an enum."""

    ctype: Any
    is_output: bool = False
    enum: str = ""  # type in cuda-bindings, where a parameter does not accept a plain number


@dataclass(frozen=True)
class DriverCall:
    """A function of the CUDA driver: the symbol in libcuda, and its parameters in C's order."""

    symbol: str
    kinds: tuple[ParameterKind, ...]


# Inputs
HANDLE = ParameterKind(ctypes.c_void_p)
POINTER = ParameterKind(ctypes.c_void_p)  # into host memory
ADDRESS = ParameterKind(ctypes.c_uint64)  # CUdeviceptr
DEVICE = ParameterKind(ctypes.c_int)  # CUdevice
INT = ParameterKind(ctypes.c_int)
UINT = ParameterKind(ctypes.c_uint)
ULONG = ParameterKind(ctypes.c_uint64)
SIZE = ParameterKind(ctypes.c_size_t)
TEXT = ParameterKind(ctypes.c_char_p)
BYTE = ParameterKind(ctypes.c_uint8)
SHORT = ParameterKind(ctypes.c_uint16)
NUMBERS_64 = ParameterKind(ctypes.POINTER(ctypes.c_uint64))  # a tuple
NUMBERS_32 = ParameterKind(ctypes.POINTER(ctypes.c_uint32))
UINT64_BY_POINTER = ParameterKind(
    ctypes.POINTER(ctypes.c_uint64), enum="cuuint64_t"
)  # a number, passed by its address
LAUNCH = ParameterKind(ctypes.c_void_p, enum="CUlaunchConfig")  # a LaunchConfig
# Outputs
OUT_HANDLE = ParameterKind(ctypes.c_void_p, True)
OUT_ADDRESS = ParameterKind(ctypes.c_uint64, True)
OUT_INT = ParameterKind(ctypes.c_int, True)
OUT_SIZE = ParameterKind(ctypes.c_size_t, True)
OUT_FLOAT = ParameterKind(ctypes.c_float, True)
OUT_TEXT = ParameterKind(ctypes.c_char_p, True)
OUT_NAME = ParameterKind(ctypes.c_char * NAME_BYTES, True)  # two parameters of C: a buffer and its size
OUT_MAP = ParameterKind(ctypes.c_uint8 * TENSOR_MAP_BYTES, True)


def enum(name: str) -> ParameterKind:
    """Returns the kind of an input parameter whose C type is the enumeration ``name`` of cuda.h."""
    return ParameterKind(ctypes.c_int, enum=name)


def _call(symbol: str, *kinds: ParameterKind) -> DriverCall:
    return DriverCall(symbol, kinds)


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
