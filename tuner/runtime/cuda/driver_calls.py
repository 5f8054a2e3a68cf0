"""The calls of the CUDA driver that are made here, written once for every way to make them.

Names are those of cuda.h and of cuda-bindings; symbols are what libcuda exports under the newest meaning that
every driver since CUDA 12.0 has. See <https://docs.nvidia.com/cuda/cuda-driver-api>.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

NAME_BYTES = 256
TENSOR_MAP_BYTES = 128  # CUtensorMap


@dataclass(frozen=True)
class Kind:
    """What a parameter is, in C and for the bindings."""

    ctype: Any
    is_output: bool = False
    enum: str = ""  # its type in cuda-bindings, which takes no plain number there


@dataclass(frozen=True)
class DriverCall:
    """One function: parameters in C's order, outputs among them."""

    symbol: str
    kinds: tuple[Kind, ...]


# Inputs
HANDLE = Kind(ctypes.c_void_p)
POINTER = Kind(ctypes.c_void_p)  # into host memory
ADDRESS = Kind(ctypes.c_uint64)  # CUdeviceptr
DEVICE = Kind(ctypes.c_int)  # CUdevice
INT = Kind(ctypes.c_int)
UINT = Kind(ctypes.c_uint)
ULONG = Kind(ctypes.c_uint64)
SIZE = Kind(ctypes.c_size_t)
TEXT = Kind(ctypes.c_char_p)
BYTE = Kind(ctypes.c_uint8)
SHORT = Kind(ctypes.c_uint16)
NUMBERS_64 = Kind(ctypes.POINTER(ctypes.c_uint64))  # a tuple
NUMBERS_32 = Kind(ctypes.POINTER(ctypes.c_uint32))
UINT64_BY_POINTER = Kind(
    ctypes.POINTER(ctypes.c_uint64), enum="cuuint64_t"
)  # a number, passed by its address
LAUNCH = Kind(ctypes.c_void_p, enum="CUlaunchConfig")  # a LaunchConfig
# Outputs
OUT_HANDLE = Kind(ctypes.c_void_p, True)
OUT_ADDRESS = Kind(ctypes.c_uint64, True)
OUT_INT = Kind(ctypes.c_int, True)
OUT_SIZE = Kind(ctypes.c_size_t, True)
OUT_FLOAT = Kind(ctypes.c_float, True)
OUT_TEXT = Kind(ctypes.c_char_p, True)
OUT_NAME = Kind(ctypes.c_char * NAME_BYTES, True)  # two parameters of C: the room and its size
OUT_MAP = Kind(ctypes.c_uint8 * TENSOR_MAP_BYTES, True)


def enum(name: str) -> Kind:
    """Returns an enumeration of cuda.h."""
    return Kind(ctypes.c_int, enum=name)


def _call(symbol: str, *kinds: Kind) -> DriverCall:
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
