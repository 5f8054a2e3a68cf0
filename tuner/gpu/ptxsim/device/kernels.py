"""Modules and kernels of the simulated GPU: PTX text, parsed and decoded once, run by the PTX simulator.

A ``ParsedImage`` is a parsed text; a SimulatedModule has loaded it, a SimulatedKernel is a handle in it, and
a PreparedLaunch is a checked launch of it.
"""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tuner.core.device import Extent, KernelLaunch
from tuner.core.errors import DeviceError, UsageError
from tuner.core.gpu import Chip
from tuner.gpu.ptxsim.device.happens_before import refused
from tuner.gpu.ptxsim.device.memory import MAP_BYTES, EncodedMap, MemoryRegion, is_map
from tuner.gpu.ptxsim.launch import (
    PausingRun,
    PreparedKernel,
    SimulatedCall,
    Simulation,
    alone,
    kernel_of,
    prepare,
)
from tuner.gpu.ptxsim.memory.global_memory import Pointer
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError, UnsupportedInstruction
from tuner.gpu.ptxsim.ptx.geometry import Index3
from tuner.gpu.ptxsim.ptx.parser import parse
from tuner.gpu.ptxsim.ptx.syntax_tree import Parameter, PtxKernel, PtxModule
from tuner.gpu.ptxsim.state.arguments import Argument, ModuleVariables, check_sizes, first_content

POINTER_BYTES = 8
IMAGES_KEPT = 8  # parsed modules in the cache: a check runs a program on several devices in succession
# What a message treats as a host address: this and all above, where mappings of x86-64 lie, and the heap,
# which lies low if the interpreter is not position-independent.
LOWEST_ADDRESS = 1 << 44
MAPS = Path("/proc/self/maps")
ASSERT = "CUDA_ERROR_ASSERT"
LAUNCH_FAILED = "CUDA_ERROR_LAUNCH_FAILED"
Near = Callable[[int], MemoryRegion | None]  # address -> region that holds it, red zones included


@dataclass(frozen=True, eq=False)
class ParsedImage:
    """A parsed PTX module and its decoded kernels, shared by all simulated devices of this process."""

    module: PtxModule
    prepared: dict[str, PreparedKernel] = field(default_factory=dict)  # by name

    def kernel(self, entry: PtxKernel) -> PreparedKernel:
        """Returns a kernel decoded for simulation, from the cache if it is there.

        Raises UnsupportedInstruction or SimulationError for a kernel that cannot be simulated.
        """
        if entry.name not in self.prepared:
            self.prepared[entry.name] = prepare(self.module, entry)
        return self.prepared[entry.name]


@dataclass(eq=False)
class SimulatedKernel:
    """A kernel of a loaded PTX module, with the present bytes of the module's variables."""

    image: ParsedImage
    entry: PtxKernel
    variables: ModuleVariables


@dataclass(frozen=True, eq=False)
class PreparedLaunch:
    """A checked kernel launch, with a copy of the parameters' bytes at the time of the call."""

    kernel: SimulatedKernel
    grid: Extent
    block: Extent
    shared_bytes: int
    parameters: tuple[bytes, ...]
    printed: list[str] = field(default_factory=list)  # by the kernel, while it runs

    @property
    def name(self) -> str:
        return self.kernel.entry.name

    def pausing_run(
        self, near: Near, seed: int | None, blocks: tuple[Index3, ...] | None = None
    ) -> PausingRun:
        """Returns a generator that executes the launch; it yields a Pause when other work may run.

        The generator returns the Simulation at its end. ``near`` returns the memory region that holds an
        address, red zones included; ``seed``: of a random schedule of threads, None for a fixed one;
        ``blocks``: to execute, None for all. What the kernel prints is appended to ``printed``. Raises
        DeviceError for a fault of the kernel, an instruction that is not simulated, or invalid arguments.
        """
        arguments = tuple(
            _argument(parameter, content, near)
            for parameter, content in zip(self.kernel.entry.parameters, self.parameters, strict=True)
        )
        call = SimulatedCall(self.grid, self.block, arguments, self.shared_bytes)
        variables = self.kernel.variables

        def find(address: int) -> Pointer | None:
            region = near(address)
            if region is None:
                return None
            return region.pointer(address)

        try:
            kernel = self.kernel.image.kernel(self.kernel.entry)
            return (yield from kernel.pausing_run(call, variables, self.printed, blocks, seed, find))
        except UnsupportedInstruction as error:
            raise DeviceError(f"kernel {self.name}: {error.reason}") from error
        except SimulationError as error:
            code = ASSERT if error.kind is Defect.ASSERTION else LAUNCH_FAILED
            reason = f"kernel {self.name}: {code}: {error.reason}{self._of_host(near)}"
            raise DeviceError(reason, code) from error
        except UsageError as error:
            raise refused("INVALID_VALUE", str(error)) from error

    def run(self, near: Near, seed: int | None) -> Simulation:
        return alone(self.pausing_run(near, seed), self.name)

    def _of_host(self, near: Near) -> str:
        """Returns a suffix for messages: parameters that look like unregistered host addresses."""
        addresses = [
            (index, int.from_bytes(word, "little"))
            for index, word in enumerate(self.parameters)
            if len(word) == POINTER_BYTES
        ]
        of_host = [str(number) for number, at in addresses if _is_of_host(at) and near(at) is None]
        if of_host:
            return f"; host memory that is not registered is in parameter {', '.join(of_host)}"
        return ""


def _is_of_host(address: int) -> bool:
    """Returns whether an address is of a mapping of this process, or of its heap, which may lie low."""
    if address >= LOWEST_ADDRESS:
        return True
    for line in MAPS.read_text().splitlines():
        if line.endswith("[heap]"):
            first, end = (int(bound, 16) for bound in line.split()[0].split("-"))
            return first <= address < end
    return False


RunLaunch = Callable[[PreparedLaunch, Near, int | None], PausingRun]  # the int seeds a random schedule


@dataclass(eq=False)
class SimulatedModule:
    """A loaded PTX module: its text, variables, number of loads, and handles of its kernels."""

    text: bytes
    image: ParsedImage
    variables: ModuleVariables  # launches change them; they live until the module is unloaded
    users: int = 1  # loads minus unloads
    functions: dict[str, int] = field(default_factory=dict)


class SimulatedKernels:
    """The PTX modules that a simulated device has loaded, and their kernels, by handle."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._by_text: dict[bytes, int] = {}
        self._loaded: dict[int, SimulatedModule] = {}
        self._kernels: dict[int, SimulatedKernel] = {}  # by function

    def load(self, image: bytes, handle: Callable[[], int]) -> tuple[int, bool]:
        """Loads PTX text; returns (handle of the module, whether it is new). Equal texts share a module.

        ``handle`` returns a new handle. Raises DeviceError for machine code and invalid PTX.
        """
        text = image.rstrip(b"\0")
        if text in self._by_text:
            module = self._by_text[text]
            self._loaded[module].users += 1
            return module, False
        parsed = _parsed(text)
        module = handle()
        self._by_text[text] = module
        self._loaded[module] = SimulatedModule(text, parsed, first_content(parsed.module))
        return module, True

    def unload(self, module: int) -> bool:
        """Undoes one load of a module; returns whether that was the last one.

        Raises DeviceError for an unknown handle.
        """
        loaded = self._require(module)
        loaded.users -= 1
        if loaded.users:
            return False
        for function in loaded.functions.values():
            del self._kernels[function]
        del self._loaded[module], self._by_text[loaded.text]
        return True

    def function(self, module: int, name: str, handle: Callable[[], int]) -> int:
        """Returns the handle of a module's kernel; ``handle`` returns a new one, for the first call.

        Raises DeviceError for an unknown module or kernel.
        """
        loaded = self._require(module)
        if name not in loaded.functions:
            try:
                kernel = kernel_of(loaded.image.module, name)
            except UsageError as error:
                raise DeviceError(f"CUDA_ERROR_NOT_FOUND: {error}", "CUDA_ERROR_NOT_FOUND") from error
            number = handle()
            loaded.functions[name] = number
            self._kernels[number] = SimulatedKernel(loaded.image, kernel, loaded.variables)
        return loaded.functions[name]

    def kernel(self, function: int) -> PtxKernel:
        return self._known(function).entry

    def prepare(self, launch: KernelLaunch) -> PreparedLaunch:
        """Checks a launch, and copies the bytes of its parameters; returns it ready to run.

        Raises DeviceError for an unknown function, a wrong number of parameters, and sizes that the kernel or
        the chip does not allow.
        """
        known = self._known(launch.function)
        kernel = known.entry
        count = launch.parameter_count
        expected = len(kernel.parameters)
        if count != expected:
            raise refused(
                "INVALID_VALUE", f"kernel {kernel.name}: found {count} parameters, allowed {expected}"
            )
        try:
            check_sizes(kernel, launch.grid, launch.block)
        except UsageError as error:
            raise refused("INVALID_VALUE", str(error)) from error
        limit = self._chip.max_shared_bytes
        shared_bytes = launch.shared_bytes
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
        return PreparedLaunch(known, launch.grid, launch.block, shared_bytes, content)

    def _known(self, function: int) -> SimulatedKernel:
        if function not in self._kernels:
            raise refused("INVALID_HANDLE", f"found function {function:#x}, allowed one of a loaded module")
        return self._kernels[function]

    def _require(self, module: int) -> SimulatedModule:
        if module not in self._loaded:
            raise refused("INVALID_HANDLE", f"found module {module:#x}, allowed one that is loaded")
        return self._loaded[module]


@functools.lru_cache(maxsize=IMAGES_KEPT)
def _parsed(image: bytes) -> ParsedImage:
    if image[:4] in (b"\x7fELF", b"\x50\xed\x55\xba"):  # a cubin, a fatbin
        raise refused(
            "NO_BINARY_FOR_GPU", "machine code cannot be simulated: the simulator reads PTX (format=isa)"
        )
    try:
        return ParsedImage(parse(image.decode()))
    except (SimulationError, UnicodeDecodeError) as error:
        raise refused("INVALID_PTX", str(error)) from error


def _argument(parameter: Parameter, content: bytes, near: Near) -> Argument:
    if parameter.is_array:
        is_by_value = len(content) == MAP_BYTES and is_map(content)
        if is_by_value:
            return EncodedMap.decode(content).tensor(near)
        return content
    if len(content) != POINTER_BYTES:
        return content
    address = int.from_bytes(content, "little")
    region = near(address)
    if region is None:
        return content
    pointer = region.pointer(address)
    offset = pointer.offset_bytes
    inside = bytes(region.bytes[offset : offset + MAP_BYTES]) if offset >= 0 else b""
    if len(inside) == MAP_BYTES and is_map(inside):
        return EncodedMap.decode(inside).tensor(near)
    return pointer
