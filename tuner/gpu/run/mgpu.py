"""The ``mgpu*`` functions that compiled host code calls, implemented on any ``AbstractDevice``.

The signatures are those of MLIR's CudaRuntimeWrappers.cpp, see
<https://github.com/llvm/llvm-project/blob/main/mlir/lib/ExecutionEngine/CudaRuntimeWrappers.cpp>.
"""

import contextlib
import ctypes
from ctypes import c_int8, c_int16, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import AbstractDevice, Extent, KernelLaunch
from tuner.core.errors import DeviceError
from tuner.runtime.arrays import MemRef, element_bytes_of_tensor_map
from tuner.runtime.programs.host_errors import KeptError, addresses_of

SIZES_3 = (c_int64, c_int64, c_int64)
LAUNCH_END = (c_int32, c_void_p, c_void_p, c_void_p)  # shared bytes, stream, parameters, extra

# Name -> result type, argument types. A pointer is an address; NULL is passed as None.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "mgpuModuleLoad": (c_void_p, c_void_p, c_size_t),
    "mgpuModuleLoadJIT": (c_void_p, c_void_p, c_int32),
    "mgpuModuleUnload": (None, c_void_p),
    "mgpuModuleGetFunction": (c_void_p, c_void_p, c_void_p),
    "mgpuLaunchKernel": (None, c_void_p, *SIZES_3, *SIZES_3, *LAUNCH_END, c_size_t),
    "mgpuLaunchClusterKernel": (None, c_void_p, *SIZES_3, *SIZES_3, *SIZES_3, *LAUNCH_END, c_size_t),
    "mgpuLaunchKernelCooperative": (None, c_void_p, *SIZES_3, *SIZES_3, *SIZES_3, *LAUNCH_END),
    "mgpuStreamCreate": (c_void_p,),
    "mgpuStreamDestroy": (None, c_void_p),
    "mgpuStreamSynchronize": (None, c_void_p),
    "mgpuStreamWaitEvent": (None, c_void_p, c_void_p),
    "mgpuEventCreate": (c_void_p,),
    "mgpuEventDestroy": (None, c_void_p),
    "mgpuEventSynchronize": (None, c_void_p),
    "mgpuEventRecord": (None, c_void_p, c_void_p),
    "mgpuMemAlloc": (c_void_p, c_size_t, c_void_p, c_int8),
    "mgpuMemFree": (None, c_void_p, c_void_p),
    "mgpuMemcpy": (None, c_void_p, c_void_p, c_size_t, c_void_p),
    "mgpuMemset32": (None, c_void_p, c_int32, c_size_t, c_void_p),
    "mgpuMemset16": (None, c_void_p, c_int16, c_size_t, c_void_p),
    "mgpuMemHostRegister": (None, c_void_p, c_int64),
    "mgpuMemHostUnregister": (None, c_void_p),
    "mgpuMemHostRegisterMemRef": (None, c_int64, c_void_p, c_int64),
    "mgpuMemHostUnregisterMemRef": (None, c_int64, c_void_p, c_int64),
    "mgpuSetDefaultDevice": (None, c_int32),
    "mgpuTensorMapEncodeTiledMemref": (c_void_p, c_int64, c_void_p, *(c_int64,) * 5, c_void_p),
}
# Functions that are implemented by a device method with the same arguments.
PASSED_ON = {
    "mgpuStreamCreate": "create_stream",
    "mgpuStreamDestroy": "destroy_stream",
    "mgpuStreamSynchronize": "synchronize_stream",
    "mgpuStreamWaitEvent": "wait_event",
    "mgpuEventCreate": "create_event",
    "mgpuEventDestroy": "destroy_event",
    "mgpuEventSynchronize": "synchronize_event",
    "mgpuEventRecord": "record_event",
    "mgpuMemcpy": "copy",
    "mgpuMemHostRegister": "register_host",
    "mgpuMemHostUnregister": "unregister_host",
}


class MgpuTable:
    """The ``mgpu*`` C functions of MLIR's GPU runtime, on one device.

    Their addresses are valid as long as this object. After a call of compiled code, call ``error.raise_it``,
    which raises the error of a function that failed.
    """

    def __init__(self, device: AbstractDevice) -> None:
        self.device = device
        self.error = KeptError()
        self._shared: set[int] = set()  # host_shared memory, which the program frees like other memory
        self._after_error: list[Any] = []  # memory for programs that continue after an error
        self._maps: dict[bytes, int] = {}  # tensor map -> address of its copy on the device
        self._functions = {name: self._function(name) for name in SIGNATURES}

    def addresses(self) -> dict[str, int]:
        """Returns the address of each function by its name."""
        return addresses_of(self._functions)

    def free_shared(self, address: int) -> bool:
        """Frees memory of ``gpu.alloc host_shared``; returns whether the address was such memory."""
        is_shared = address in self._shared
        if is_shared:
            self._MemFree(address, 0)
        return is_shared

    def close(self) -> None:
        """Frees the tensor maps on the device, and host memory that replaced allocations after an error."""
        for address in self._maps.values():
            self.device.free(address, 0)
        self._maps.clear()
        self._after_error.clear()

    def _function(self, name: str) -> Any:
        def guarded(*arguments: int | None) -> int | None:
            values = [argument or 0 for argument in arguments]
            if not self.error.is_there:
                own = "_" + name.removeprefix("mgpu")
                holder, method = (self.device, PASSED_ON[name]) if name in PASSED_ON else (self, own)
                try:
                    result: int | None = getattr(holder, method)(*values)
                except DeviceError as error:
                    self.error.keep(DeviceError(f"{name}: {error}", error.error_name))
                except BaseException as error:  # noqa: BLE001 - kept, and raised again
                    self.error.keep(error)
                else:
                    return result
            if name == "mgpuMemAlloc" and values[2]:  # host_shared: the code may write there after the error
                self._after_error.append(ctypes.create_string_buffer(max(values[0], 1)))
                return ctypes.addressof(self._after_error[-1])
            if SIGNATURES[name][0]:
                return 0
            return None

        return ctypes.CFUNCTYPE(*SIGNATURES[name])(guarded)

    # One method per remaining function, with its name; arguments as in SIGNATURES.

    def _ModuleLoad(self, image: int, size_bytes: int) -> int:  # noqa: N802
        return self.device.load_module(ctypes.string_at(image, size_bytes))

    def _ModuleLoadJIT(self, image: int, level: int) -> int:  # noqa: N802
        return self.device.load_module(ctypes.string_at(image))

    def _ModuleUnload(self, module: int) -> None:  # noqa: N802
        if module:  # null if loading failed
            self.device.unload_module(module)

    def _ModuleGetFunction(self, module: int, name: int) -> int:  # noqa: N802
        return self.device.function(module, ctypes.string_at(name).decode())

    def _LaunchKernel(self, function: int, *values: int) -> None:  # noqa: N802
        grid = Extent(*values[:3])
        block = Extent(*values[3:6])
        shared_bytes, stream, parameters, _, count = values[6:]
        self.device.launch(KernelLaunch(function, grid, block, shared_bytes, parameters, count), stream)

    def _LaunchClusterKernel(self, function: int, *values: int) -> None:  # noqa: N802
        cluster = Extent(*values[:3])
        grid = Extent(*values[3:6])
        block = Extent(*values[6:9])
        shared_bytes, stream, parameters, _, count = values[9:]
        launch = KernelLaunch(function, grid, block, shared_bytes, parameters, count, cluster)
        self.device.launch(launch, stream)

    def _LaunchKernelCooperative(self, function: int, *values: int) -> None:  # noqa: N802
        raise DeviceError("cooperative launches are not supported")

    def _MemAlloc(self, size_bytes: int, stream: int, is_host_shared: int) -> int:  # noqa: N802
        if not is_host_shared:
            return self.device.allocate(size_bytes, stream)
        address = self.device.allocate_host(size_bytes)
        self._shared.add(address)
        return address

    def _MemFree(self, address: int, stream: int) -> None:  # noqa: N802
        if address in self._shared:
            self._shared.discard(address)
            self.device.free_host(address)
        else:
            self.device.free(address, stream)

    def _Memset32(self, address: int, value: int, count: int, stream: int) -> None:  # noqa: N802
        self.device.fill(address, value & 0xFFFF_FFFF, 4, count, stream)

    def _Memset16(self, address: int, value: int, count: int, stream: int) -> None:  # noqa: N802
        self.device.fill(address, value & 0xFFFF, 2, count, stream)

    def _MemHostRegisterMemRef(self, rank: int, descriptor: int, item_bytes: int) -> None:  # noqa: N802
        view = MemRef.at(descriptor, rank)
        self.device.register_host(view.address(item_bytes), view.extent_bytes(item_bytes))

    def _MemHostUnregisterMemRef(self, rank: int, descriptor: int, item_bytes: int) -> None:  # noqa: N802
        self.device.unregister_host(MemRef.at(descriptor, rank).address(item_bytes))

    def _SetDefaultDevice(self, ordinal: int) -> None:  # noqa: N802
        if ordinal:
            raise DeviceError(f"found device {ordinal}, allowed 0: a program runs on the device it was given")

    def _TensorMapEncodeTiledMemref(  # noqa: N802
        self,
        rank: int,
        descriptor: int,
        dtype: int,
        interleave: int,
        swizzle: int,
        l2: int,
        fill: int,
        box: int,
    ) -> int:
        """Returns the address of a tensor map in device memory; equal tensor maps are copied once."""
        view = MemRef.at(descriptor, rank)
        item_bytes = element_bytes_of_tensor_map(dtype)
        strides = tuple(stride * item_bytes for stride in reversed(view.strides[:-1]))
        sides = tuple(reversed((c_int64 * rank).from_address(box)))
        sizes = tuple(reversed(view.sizes))
        layout = TensorMapLayout(sizes, strides, sides, dtype, interleave, swizzle, l2, fill)
        content = self.device.tensor_map(view.address(item_bytes), layout)
        if content not in self._maps:
            self._maps[content] = self._copy_to_device(content)
        return self._maps[content]

    def _copy_to_device(self, content: bytes) -> int:
        watch = self.device.watch
        with watch.outside_of_calls() if watch is not None else contextlib.nullcontext():
            source = ctypes.create_string_buffer(content, len(content))
            stream = self.device.create_stream()
            address = self.device.allocate(len(content), stream)
            self.device.copy(address, ctypes.addressof(source), len(content), stream)
            self.device.synchronize_stream(stream)
            self.device.destroy_stream(stream)
        if watch is not None:
            watch.keep(address)
        return address
