"""Modules and kernels on a GPU: each image loaded once, each kernel looked up once."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from tuner.device import DeviceError, Extent

SHARED_WITHOUT_ASKING_BYTES = 48 * 1024  # CUDA programming guide, shared memory: more must be asked for
CLUSTER_WITHOUT_ASKING = 8  # blocks; CUDA programming guide, thread block clusters
MAX_DYNAMIC_SHARED_SIZE_BYTES, NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 8, 14  # CUfunction_attribute
NO_MODULE = "found a module that is not loaded, allowed one that is"


@dataclass(eq=False)
class Loaded:
    """A module and its kernels."""

    image: bytes
    users: int = 1  # loads that were not taken back
    functions: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class Known:
    """A kernel and what was asked for it."""

    name: str
    shared_bytes: int = SHARED_WITHOUT_ASKING_BYTES
    is_cluster_asked: bool = False


@final
class Modules:
    """What is loaded through one context."""

    def __init__(self, call: Callable[..., Any], max_shared_bytes: int) -> None:
        """Takes what makes a driver call, and the most that a block may ask for."""
        self._call = call
        self._max_shared_bytes = max_shared_bytes
        self._by_image: dict[bytes, int] = {}
        self._loaded: dict[int, Loaded] = {}
        self._known: dict[int, Known] = {}  # by function

    def load(self, image: bytes) -> int:
        """Returns the module of an image."""
        if image in self._by_image:
            module = self._by_image[image]
            self._loaded[module].users += 1
            return module
        content = ctypes.create_string_buffer(image)  # PTX must end with a zero byte: this adds one
        module = int(self._call("cuModuleLoadData", ctypes.addressof(content), doing=f"{len(image)} bytes"))
        self._by_image[image], self._loaded[module] = module, Loaded(image)
        return module

    def unload(self, module: int) -> None:
        """Takes a load back; the last one unloads."""
        loaded = self._require(module)
        loaded.users -= 1
        if loaded.users:
            return
        self._call("cuModuleUnload", module)
        for function in loaded.functions.values():
            del self._known[function]
        del self._loaded[module], self._by_image[loaded.image]

    def function(self, module: int, name: str) -> int:
        """Returns a kernel."""
        functions = self._require(module).functions
        if name not in functions:
            found = int(self._call("cuModuleGetFunction", module, name.encode(), doing=name))
            functions[name], self._known[found] = found, Known(name)
        return functions[name]

    def name_of(self, function: int) -> str:
        """Returns a kernel's name."""
        return self._known[function].name if function in self._known else f"{function:#x}"

    def allow_shared(self, function: int, size_bytes: int) -> None:
        """Raises the limit of a kernel's dynamic shared memory, where that is needed. Raises DeviceError."""
        known = self._known.get(function)
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
        """Allows clusters that not every chip can hold, where that is needed."""
        known = self._known.get(function)
        size = cluster.x * cluster.y * cluster.z
        if known is None or known.is_cluster_asked or size <= CLUSTER_WITHOUT_ASKING:
            return
        self._call("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, doing=known.name)
        known.is_cluster_asked = True

    def _require(self, module: int) -> Loaded:
        if module not in self._loaded:
            raise DeviceError(f"module {module:#x}: {NO_MODULE}", "CUDA_ERROR_INVALID_HANDLE")
        return self._loaded[module]
