"""Modules and kernels on a GPU: each image is loaded once, each kernel looked up once."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from tuner.core.device import DeviceError, Extent

SHARED_DEFAULT_BYTES = 48 * 1024  # CUDA programming guide, "Shared Memory": more needs an opt-in
PORTABLE_CLUSTER = 8  # blocks; CUDA programming guide, "Thread Block Clusters": more needs an opt-in
MAX_DYNAMIC_SHARED_SIZE_BYTES, NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 8, 14  # CUfunction_attribute
NO_MODULE = "the module is not loaded"


@dataclass(eq=False)
class LoadedModule:
    """A module loaded on a GPU: its image, how many times it was loaded, and the handles of its kernels."""

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
        """Takes a function that makes driver calls, and the bytes of shared memory that a block may have."""
        self._call = call
        self._max_shared_bytes = max_shared_bytes
        self._by_image: dict[bytes, int] = {}
        self._modules: dict[int, LoadedModule] = {}
        self._functions: dict[int, LoadedFunction] = {}  # by function

    def load(self, image: bytes) -> int:
        """Returns the CUmodule of an image (cubin, fatbin or PTX); an equal image is loaded once.

        Raises DeviceError where the driver rejects the image.
        """
        if image in self._by_image:
            module = self._by_image[image]
            self._modules[module].users += 1
            return module
        content = ctypes.create_string_buffer(image)  # PTX must end with a zero byte, which this adds
        module = int(self._call("cuModuleLoadData", ctypes.addressof(content), doing=f"{len(image)} bytes"))
        self._by_image[image], self._modules[module] = module, LoadedModule(image)
        return module

    def unload(self, module: int) -> None:
        """Undoes one ``load`` of a CUmodule; the last unloads it. Raises DeviceError for an unknown one."""
        loaded = self._require(module)
        loaded.users -= 1
        if loaded.users:
            return
        self._call("cuModuleUnload", module)
        for function in loaded.functions.values():
            del self._functions[function]
        del self._modules[module], self._by_image[loaded.image]

    def function(self, module: int, name: str) -> int:
        """Returns the CUfunction of kernel ``name`` in a loaded CUmodule; the kernel is looked up once.

        Raises DeviceError for an unknown module or kernel.
        """
        functions = self._require(module).functions
        if name not in functions:
            found = int(self._call("cuModuleGetFunction", module, name.encode(), doing=name))
            functions[name], self._functions[found] = found, LoadedFunction(name)
        return functions[name]

    def name_of(self, function: int) -> str:
        """Returns the name of a kernel, by its CUfunction, for messages; an unknown handle in hexadecimal."""
        return self._functions[function].name if function in self._functions else f"{function:#x}"

    def raise_shared_limit(self, function: int, size_bytes: int) -> None:
        """Increases a kernel's limit of dynamic shared memory to ``size_bytes``, if it is lower.

        ``function``: the kernel's CUfunction; an unknown one is left alone. Raises DeviceError for more than
        a block of this GPU may have.
        """
        known = self._functions.get(function)
        if known is None or size_bytes <= known.shared_bytes:
            return
        if size_bytes > self._max_shared_bytes:
            found = f"found {size_bytes} bytes of dynamic shared memory, allowed {self._max_shared_bytes}"
            raise DeviceError(f"{known.name}: {found}", "CUDA_ERROR_INVALID_VALUE")
        self._call(
            "cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, size_bytes, doing=known.name
        )
        known.shared_bytes = size_bytes

    def allow_cluster(self, function: int, cluster: Extent) -> None:
        """Allows a kernel clusters of more than 8 blocks (PORTABLE_CLUSTER), if ``cluster`` is that large.

        ``function``: the kernel's CUfunction; an unknown one is left alone. Raises DeviceError where the
        driver refuses; whether the GPU can run a cluster of this size is not checked.
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
