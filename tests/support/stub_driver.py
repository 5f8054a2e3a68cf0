"""A stub of libcuda: built once, its kernels run by the PTX simulator.

stub = StubDriver()            # raises NoCompilerError where there is no C compiler
device = stub.open()           # a CudaDevice on it, by ctypes
stub.fail("cuMemAllocAsync", 2)
"""

import atexit
import ctypes
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.device import Extent, KernelLaunch
from tuner.core.errors import DeviceError
from tuner.core.gpu import chip_of
from tuner.gpu.driver.device import CudaDevice
from tuner.gpu.driver.probe import open_device
from tuner.gpu.ptxsim.device.kernels import SimulatedKernels
from tuner.gpu.ptxsim.device.memory import MemoryKind, MemoryRegion

SOURCE = Path(__file__).with_name("stub_driver.c")
DESCRIBE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_void_p
)
OnLaunch = Callable[[str, tuple[int, ...]], None]  # kernel; grid, block, dynamic shared bytes
FAILED = 1
CURRENT: list["StubDriver"] = []  # keeps the callbacks that the library has alive


class NoCompilerError(Exception):
    """There is no C compiler to build the stand-in with."""


@functools.cache
def stub_library() -> Path:
    """Returns the path of the library, named like the real one. Raises NoCompilerError."""
    given = os.environ.get("STUB_DRIVER")  # of a test that starts a process
    if given is not None:
        return Path(given)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NoCompilerError("stand-in for libcuda: found no C compiler, allowed cc or gcc on PATH")
    folder = Path(tempfile.mkdtemp(prefix="stub-driver-"))
    atexit.register(shutil.rmtree, folder)
    library = folder / "libcuda.so.1"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run([compiler, *flags, "-o", library, SOURCE, "-ldl"], check=True)
    return library


def new_library() -> Path:
    """Returns a library with a state of its own: a copy, except for a library built by another process.

    Memory that an earlier device left to the garbage collector is freed at addresses that a shared library
    may have handed out again. Raises NoCompilerError.
    """
    built = stub_library()
    if "STUB_DRIVER" in os.environ:
        return built
    library = Path(tempfile.mkdtemp(dir=built.parent)) / built.name
    shutil.copyfile(built, library)
    return library


class StubDriver:
    """The stub in its initial state. One at a time: allocations of an earlier one are freed."""

    def __init__(self, on_launch: OnLaunch | None = None, library: str | None = None) -> None:
        """Resets the library.

        ``on_launch`` is called for launches, in addition to the simulator that runs PTX.

        ``library`` is one that another process has built. Raises NoCompilerError.
        """
        for earlier in CURRENT:
            earlier.forget_all()
        self.path = library or str(new_library())
        self.errors: list[DeviceError] = []  # of kernels; the driver says LAUNCH_FAILED
        self.launches: list[tuple[str, tuple[int, ...]]] = []
        self._library = ctypes.CDLL(self.path)
        self.forget_all()
        self._kernels = SimulatedKernels(chip_of("sm_90"))
        self._handles = itertools.count(1)
        self._on_launch = on_launch
        self._callbacks = (DESCRIBE(self._describe), LAUNCH(self._launch))
        self._library.stub_on_launch(*self._callbacks)
        CURRENT[:] = [self]

    def open(self, ordinal: int = 0) -> CudaDevice:
        """Opens the GPU by ctypes."""
        return open_device(ordinal, library=self.path)

    def forget_all(self) -> None:
        """Frees all allocations and clears the record of calls."""
        self._library.stub_reset()

    def machine(self, gpus: int = 1, has_pools: bool = True) -> None:
        """Sets the number of GPUs, and whether they have memory pools."""
        self._library.stub_machine(gpus, int(has_pools))

    def fail(self, name: str, result: int, after: int = 0) -> None:
        """Makes a call fail once with ``result``, after ``after`` successful calls."""
        self._library.stub_fail(name.encode(), result, after)

    def calls(self, name: str) -> int:
        """Returns how often a function was called."""
        return int(self._library.stub_calls(name.encode()))

    @property
    def live_blocks(self) -> int:
        """Returns how many allocations were not freed."""
        return int(self._library.stub_live_blocks())

    def variable(self, name: str, type_: Any) -> Any:
        """Returns a variable of the library."""
        return type_.in_dll(self._library, name)

    def _describe(self, image: bytes, name: bytes, sizes: Any) -> int:
        """Writes the bytes of each kernel parameter to ``sizes``.

        Returns their number, -1 for no such kernel.

        Returns 0 for code that is not PTX.
        """
        if not image.lstrip().startswith((b"//", b".version")):
            return 0
        try:
            kernel = self._kernels.kernel(self._function(image, name))
        except DeviceError:
            return -1
        for number, parameter in enumerate(kernel.parameters):
            sizes[number] = parameter.bytes
        return len(kernel.parameters)

    def _launch(self, image: bytes, name: bytes, sizes: Any, parameters: int) -> int:
        numbers = tuple(sizes[:7])
        self.launches.append((name.decode(), numbers))
        if self._on_launch is not None:
            self._on_launch(name.decode(), numbers)
        if not image.lstrip().startswith((b"//", b".version")):
            return 0
        try:
            function = self._function(image, name)
            count = len(self._kernels.kernel(function).parameters)
            grid, block = Extent(*numbers[:3]), Extent(*numbers[3:6])
            launch = KernelLaunch(function, grid, block, numbers[6], parameters or 0, count)
            self._kernels.prepare(launch).run(self._near, None)
        except DeviceError as error:
            self.errors.append(error)
            return FAILED
        return 0

    def _function(self, image: bytes, name: bytes) -> int:
        module, _ = self._kernels.load(image, lambda: next(self._handles))
        return self._kernels.function(module, name.decode(), lambda: next(self._handles))

    def _near(self, address: int) -> MemoryRegion | None:
        """Returns the allocation that holds an address."""
        start, size = ctypes.c_uint64(), ctypes.c_size_t()
        where = ctypes.byref(start), ctypes.byref(size)
        if not self._library.stub_find(ctypes.c_uint64(address), *where):
            return None
        memory = (ctypes.c_uint8 * size.value).from_address(start.value)
        return MemoryRegion(f"{start.value:#x}", MemoryKind.DEVICE, np.ctypeslib.as_array(memory))
