"""Modules and kernels of the simulated GPU: PTX text, parsed once, run by the PTX simulator."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

from tuner.chips import Chip
from tuner.device import DeviceError, Extent, KernelLaunch
from tuner.errors import UsageError
from tuner.ptx import (
    Argument,
    Module,
    Pointer,
    Simulation,
    SimulationError,
    Touched,
    UnsupportedInstruction,
    parse,
    simulate_touching,
)
from tuner.ptx.arguments import check_launch
from tuner.ptx.instruction import Kernel, Parameter
from tuner.ptx.launch import kernel_of
from tuner.runtime.simulated.memory import Region
from tuner.runtime.simulated.refusal import refused
from tuner.runtime.simulated.tensor_maps import MAP_BYTES, EncodedMap, is_map

POINTER_BYTES = 8
Near = Callable[[int], Region | None]


@dataclass(frozen=True, eq=False)
class PreparedLaunch:
    """A launch with the bytes of its parameters, as they were at the call."""

    module: Module
    kernel: Kernel
    grid: Extent
    block: Extent
    shared_bytes: int
    parameters: tuple[bytes, ...]

    def run(self, near: Near, seed: int | None) -> tuple[Simulation, tuple[Touched, ...]]:
        """Runs the kernel on the memory that its parameters point into. Raises DeviceError for a fault."""
        arguments = tuple(
            _argument(parameter, content, near)
            for parameter, content in zip(self.kernel.parameters, self.parameters, strict=True)
        )
        try:
            return simulate_touching(
                self.module,
                self.kernel.name,
                self.grid,
                self.block,
                arguments,
                self.shared_bytes,
                schedule_seed=seed,
            )
        except UnsupportedInstruction as error:
            raise DeviceError(f"kernel {self.kernel.name}: {error.reason}") from error
        except SimulationError as error:
            reason = f"kernel {self.kernel.name}: CUDA_ERROR_LAUNCH_FAILED: {error.reason}"
            raise DeviceError(reason, "CUDA_ERROR_LAUNCH_FAILED") from error
        except UsageError as error:
            raise refused("INVALID_VALUE", str(error)) from error


@dataclass(eq=False)
class Loaded:
    """A module and its kernels."""

    image: bytes
    parsed: Module
    users: int = 1  # loads that were not taken back
    functions: dict[str, int] = field(default_factory=dict)


class SimulatedKernels:
    """The modules that are loaded."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._parsed: dict[bytes, Module] = {}
        self._by_image: dict[bytes, int] = {}
        self._loaded: dict[int, Loaded] = {}
        self._kernels: dict[int, tuple[Module, Kernel]] = {}  # by function

    def load(self, image: bytes, handle: Callable[[], int]) -> tuple[int, bool]:
        """Returns the module of an image, and whether it is new."""
        text = image.rstrip(b"\0")
        if text in self._by_image:
            module = self._by_image[text]
            self._loaded[module].users += 1
            return module, False
        if text not in self._parsed:
            self._parsed[text] = _parsed(text)
        module = handle()
        self._by_image[text], self._loaded[module] = module, Loaded(text, self._parsed[text])
        return module, True

    def unload(self, module: int) -> bool:
        """Takes a load back; tells whether it was the last. Raises DeviceError."""
        loaded = self._require(module)
        loaded.users -= 1
        if loaded.users:
            return False
        for function in loaded.functions.values():
            del self._kernels[function]
        del self._loaded[module], self._by_image[loaded.image]
        return True

    def function(self, module: int, name: str, handle: Callable[[], int]) -> int:
        """Returns the handle of a kernel. Raises DeviceError."""
        loaded = self._require(module)
        if name not in loaded.functions:
            try:
                kernel = kernel_of(loaded.parsed, name)
            except UsageError as error:
                raise DeviceError(f"CUDA_ERROR_NOT_FOUND: {error}", "CUDA_ERROR_NOT_FOUND") from error
            number = handle()
            loaded.functions[name], self._kernels[number] = number, (loaded.parsed, kernel)
        return loaded.functions[name]

    def kernel(self, function: int) -> Kernel:
        """Returns the kernel of a handle. Raises DeviceError."""
        return self._known(function)[1]

    def prepare(self, launch: KernelLaunch) -> PreparedLaunch:
        """Reads the parameters now. Raises DeviceError for a launch that the chip or the kernel refuses."""
        parsed, kernel = self._known(launch.function)
        count, expected = launch.parameter_count, len(kernel.parameters)
        if count != expected:
            raise refused(
                "INVALID_VALUE", f"kernel {kernel.name}: found {count} parameters, allowed {expected}"
            )
        try:
            check_launch(kernel, launch.grid, launch.block, (0,) * count)
        except UsageError as error:
            raise refused("INVALID_VALUE", str(error)) from error
        limit, shared_bytes = self._chip.max_shared_bytes, launch.shared_bytes
        if not 0 <= shared_bytes <= limit:
            found = (
                f"found {shared_bytes} bytes of dynamic shared memory, allowed {limit} on {self._chip.name}"
            )
            raise refused("INVALID_VALUE", f"kernel {kernel.name}: {found}")
        pointers = (ctypes.c_void_p * count).from_address(launch.parameters) if count else ()
        content = tuple(
            ctypes.string_at(pointer, parameter.bytes)
            for pointer, parameter in zip(pointers, kernel.parameters, strict=True)
        )
        return PreparedLaunch(parsed, kernel, launch.grid, launch.block, shared_bytes, content)

    def _known(self, function: int) -> tuple[Module, Kernel]:
        if function not in self._kernels:
            raise refused("INVALID_HANDLE", f"found function {function:#x}, allowed one of a loaded module")
        return self._kernels[function]

    def _require(self, module: int) -> Loaded:
        if module not in self._loaded:
            raise refused("INVALID_HANDLE", f"found module {module:#x}, allowed one that is loaded")
        return self._loaded[module]


def _parsed(image: bytes) -> Module:
    """Parses PTX. Raises DeviceError for machine code."""
    if image[:4] in (b"\x7fELF", b"\x50\xed\x55\xba"):  # a cubin, a fatbin
        raise refused("NO_BINARY_FOR_GPU", "found machine code, allowed PTX: the simulator reads format=isa")
    try:
        return parse(image.decode())
    except (SimulationError, UnicodeDecodeError) as error:
        raise refused("INVALID_PTX", str(error)) from error


def _argument(parameter: Parameter, content: bytes, near: Near) -> Argument:
    """Returns what the PTX simulator gets for the bytes of a parameter."""
    if parameter.is_array:
        is_by_value = len(content) == MAP_BYTES and is_map(content)
        return EncodedMap.decode(content).tensor(near) if is_by_value else content
    if len(content) != POINTER_BYTES:
        return content
    address = int.from_bytes(content, "little")
    region = near(address)
    if region is None:
        return content
    offset = address - region.address
    inside = bytes(region.bytes[offset : offset + MAP_BYTES]) if offset >= 0 else b""
    if len(inside) == MAP_BYTES and is_map(inside):
        return EncodedMap.decode(inside).tensor(near)
    return Pointer(region.name, region.bytes, offset)
