"""An NVIDIA GPU, used through the CUDA driver API, with its loaded modules and kernels.

``Modules`` counts how often an image is loaded and keeps its kernels. ``CudaDevice`` has the methods of
``AbstractDevice``, each a call of the driver.
"""

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import AbstractDevice, Extent, KernelLaunch
from tuner.core.errors import DeviceError
from tuner.gpu.driver.driver import CheckedDriver, LaunchConfig, read_facts

SHARED_DEFAULT_BYTES = 48 * 1024  # CUDA programming guide, "Shared Memory": more needs an opt-in
PORTABLE_CLUSTER = 8  # blocks; CUDA programming guide, "Thread Block Clusters": more needs an opt-in
# CUfunction_attribute
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
NO_MODULE = "the module is not loaded"
# Flags and enumerations of cuda.h
STREAM_NON_BLOCKING = 1
EVENT_DEFAULT = 0
EVENT_DISABLE_TIMING = 2
CAPTURE_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: calls of other threads and allocations are allowed
AUTO_FREE_ON_LAUNCH = 1  # CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
POOL_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
KEEP_ALL = 2**64 - 1
FILLS = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}


@dataclass(eq=False)
class LoadedModule:
    """A module loaded on a GPU: its image, loads that were not unloaded yet, and handles of its kernels."""

    image: bytes
    users: int = 1  # loads without an unload
    functions: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class LoadedFunction:
    """A kernel of a loaded module: its name, and the function attributes that were set for it."""

    name: str
    shared_bytes: int = SHARED_DEFAULT_BYTES  # limit of the kernel's dynamic shared memory
    allows_large_clusters: bool = False


@final
class Modules:
    """The modules and kernels that are loaded in one CUDA context; each image is loaded once."""

    def __init__(self, call: Callable[..., Any], max_shared_bytes: int) -> None:
        self._call = call
        self._max_shared_bytes = max_shared_bytes
        self._by_image: dict[bytes, int] = {}
        self._modules: dict[int, LoadedModule] = {}
        self._functions: dict[int, LoadedFunction] = {}  # by function

    def load(self, image: bytes) -> int:
        """Loads a cubin, fatbin or PTX image; returns its CUmodule.

        Equal images share one module, which is unloaded after as many ``unload`` calls as ``load`` calls.
        Raises DeviceError if the driver rejects the image.
        """
        if image in self._by_image:
            module = self._by_image[image]
            self._modules[module].users += 1
            return module
        content = ctypes.create_string_buffer(image)  # PTX must end with a zero byte, which this adds
        module = int(self._call("cuModuleLoadData", ctypes.addressof(content), doing=f"{len(image)} bytes"))
        self._by_image[image] = module
        self._modules[module] = LoadedModule(image)
        return module

    def unload(self, module: int) -> None:
        """Undoes one ``load`` of a module, and unloads the module if that was the last.

        Raises DeviceError for an unknown CUmodule.
        """
        loaded = self._require(module)
        loaded.users -= 1
        if loaded.users:
            return
        self._call("cuModuleUnload", module)
        for function in loaded.functions.values():
            del self._functions[function]
        del self._modules[module], self._by_image[loaded.image]

    def function(self, module: int, name: str) -> int:
        """Returns the CUfunction of the kernel ``name``. Raises DeviceError for an unknown module or name."""
        functions = self._require(module).functions
        if name not in functions:
            handle = int(self._call("cuModuleGetFunction", module, name.encode(), doing=name))
            functions[name] = handle
            self._functions[handle] = LoadedFunction(name)
        return functions[name]

    def name_of(self, function: int) -> str:
        """Returns the name of a kernel by its CUfunction, for messages; an unknown CUfunction in hex."""
        if function in self._functions:
            return self._functions[function].name
        return f"{function:#x}"

    def raise_shared_limit(self, function: int, size_bytes: int) -> None:
        """Raises a kernel's limit of dynamic shared memory to ``size_bytes``, if it is lower.

        Raises DeviceError for more than the GPU has; does nothing for a CUfunction that was not loaded here.
        """
        known = self._functions.get(function)
        if known is None or size_bytes <= known.shared_bytes:
            return
        if size_bytes > self._max_shared_bytes:
            line = f"found {size_bytes} bytes of dynamic shared memory, allowed {self._max_shared_bytes}"
            raise DeviceError(f"{known.name}: {line}", "CUDA_ERROR_INVALID_VALUE")
        self._call(
            "cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, size_bytes, doing=known.name
        )
        known.shared_bytes = size_bytes

    def allow_cluster(self, function: int, cluster: Extent) -> None:
        """Allows a kernel clusters of more than 8 blocks, if ``cluster`` has more.

        Raises DeviceError if refused. Does nothing for a CUfunction that was not loaded here.
        """
        known = self._functions.get(function)
        size = cluster.x * cluster.y * cluster.z
        if known is None or known.allows_large_clusters or size <= PORTABLE_CLUSTER:
            return
        self._call("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, doing=known.name)
        known.allows_large_clusters = True

    def _require(self, module: int) -> LoadedModule:
        if module not in self._modules:
            raise DeviceError(f"module {module:#x}: {NO_MODULE}", "CUDA_ERROR_INVALID_HANDLE")
        return self._modules[module]


@final
class CudaDevice(AbstractDevice):
    """A GPU through its primary context, which PyTorch and CuPy use too.

    One thread at a time loads modules.
    """

    def __init__(self, driver: CheckedDriver, ordinal: int = 0) -> None:
        """Retains the primary context of GPU ``ordinal``. Raises DeviceError."""
        self._driver = driver
        self._device: int = driver("cuDeviceGet", ordinal)
        self.facts = read_facts(driver, self._device)
        self.name = self.facts.name
        self.chip = self.facts.chip
        self._context: int = driver("cuDevicePrimaryCtxRetain", self._device)
        self._thread = threading.local()  # whether the context is current in the thread
        self._modules = Modules(self._call, self.facts.max_shared_bytes)
        if self.facts.has_memory_pools:
            pool = self._call("cuDeviceGetDefaultMemPool", self._device)
            self._call("cuMemPoolSetAttribute", pool, POOL_RELEASE_THRESHOLD, KEEP_ALL)

    def close(self) -> None:
        self._driver("cuDevicePrimaryCtxRelease", self._device)

    def load_module(self, image: bytes) -> int:
        return self._modules.load(image)

    def unload_module(self, module: int) -> None:
        self._modules.unload(module)

    def function(self, module: int, name: str) -> int:
        return self._modules.function(module, name)

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        function = launch.function
        cluster = launch.cluster
        self._modules.raise_shared_limit(function, launch.shared_bytes)
        doing = f"launch of {self._modules.name_of(function)}"
        if cluster is None:
            sizes = (*launch.grid, *launch.block, launch.shared_bytes)
            self._call("cuLaunchKernel", function, *sizes, stream, launch.parameters, 0, doing=doing)
            return
        self._modules.allow_cluster(function, cluster)
        config = LaunchConfig(launch.grid, launch.block, launch.shared_bytes, stream, cluster)
        self._call("cuLaunchKernelEx", config, function, launch.parameters, 0, doing=doing)

    def create_stream(self) -> int:
        return int(self._call("cuStreamCreate", STREAM_NON_BLOCKING))

    def destroy_stream(self, stream: int) -> None:
        self._call("cuStreamDestroy", stream)

    def synchronize_stream(self, stream: int) -> None:
        self._call("cuStreamSynchronize", stream)

    def create_event(self, *, is_timed: bool = False) -> int:
        return int(self._call("cuEventCreate", EVENT_DEFAULT if is_timed else EVENT_DISABLE_TIMING))

    def destroy_event(self, event: int) -> None:
        self._call("cuEventDestroy", event)

    def record_event(self, event: int, stream: int) -> None:
        self._call("cuEventRecord", event, stream)

    def wait_event(self, stream: int, event: int) -> None:
        self._call("cuStreamWaitEvent", stream, event, 0)

    def synchronize_event(self, event: int) -> None:
        self._call("cuEventSynchronize", event)

    def elapsed_s(self, start: int, stop: int) -> float:
        return float(self._call("cuEventElapsedTime", start, stop)) / 1e3

    def allocate(self, size_bytes: int, stream: int) -> int:
        doing = f"{size_bytes} bytes"
        if self.facts.has_memory_pools:
            return int(self._call("cuMemAllocAsync", max(size_bytes, 1), stream, doing=doing))
        return int(self._call("cuMemAlloc", max(size_bytes, 1), doing=doing))

    def free(self, address: int, stream: int) -> None:
        if address == 0:  # which cuMemFree accepts and cuMemFreeAsync does not
            return
        if self.facts.has_memory_pools:
            self._call("cuMemFreeAsync", address, stream)
        else:  # waits for work that uses the memory
            self._call("cuMemFree", address)

    def allocate_host(self, size_bytes: int) -> int:
        return int(self._call("cuMemAllocHost", max(size_bytes, 1), doing=f"{size_bytes} bytes"))

    def free_host(self, address: int) -> None:
        self._call("cuMemFreeHost", address)

    def register_host(self, address: int, size_bytes: int) -> None:
        self._call("cuMemHostRegister", address, size_bytes, 0)

    def unregister_host(self, address: int) -> None:
        self._call("cuMemHostUnregister", address)

    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        if size_bytes:
            self._call("cuMemcpyAsync", target, source, size_bytes, stream, doing=f"{size_bytes} bytes")

    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        if item_bytes not in FILLS:
            raise DeviceError(f"fill: found items of {item_bytes} bytes, allowed {tuple(FILLS)}")
        bits = value & (1 << 8 * item_bytes) - 1
        self._call(FILLS[item_bytes], address, bits, count, stream, doing=f"{item_bytes * count} bytes")

    def begin_capture(self, stream: int) -> None:
        self._call("cuStreamBeginCapture", stream, CAPTURE_RELAXED)

    def end_capture(self, stream: int) -> int:
        captured = self._call("cuStreamEndCapture", stream)
        try:
            return int(self._call("cuGraphInstantiate", captured, AUTO_FREE_ON_LAUNCH))
        finally:
            self._call("cuGraphDestroy", captured)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._call("cuGraphLaunch", graph, stream)

    def destroy_graph(self, graph: int) -> None:
        self._call("cuGraphExecDestroy", graph)

    def tensor_map(self, address: int, layout: TensorMapLayout) -> bytes:
        rank = len(layout.sizes)
        encoded = self._call(
            "cuTensorMapEncodeTiled",
            *(layout.dtype, rank, address, layout.sizes, layout.strides_bytes, layout.box, (1,) * rank),
            *(layout.interleave, layout.swizzle, layout.l2_promotion, layout.out_of_bounds),
            doing=f"tensor of sizes {layout.sizes}, box {layout.box}",
        )
        return bytes(encoded)

    def _call(self, name: str, *inputs: Any, doing: str = "") -> Any:
        if not getattr(self._thread, "is_current", False):
            self._driver("cuCtxSetCurrent", self._context)
            self._thread.is_current = True
        return self._driver(name, *inputs, doing=doing)
