"""The kernels of a C library for GPUs: machine code or PTX, buffers, launches, for C initializers."""

from dataclasses import dataclass

from tuner.core.chips import chip_of
from tuner.core.kernel_program import BufferMap, KernelBuffer, KernelProgram, Launch
from tuner.core.problem import Problem
from tuner.library.c.functions import CFunction, function_of
from tuner.library.entry import LibraryEntry

LINE_BYTES = 24  # of an image, in one line of C
OPERANDS = {"a": "A", "b": "B", "bias": "BIAS", "c": "C"}  # name of a buffer -> its kind in C
MAX_RANK = 5  # of a tensor map


@dataclass(frozen=True)
class GpuImage:
    """Code that the driver loads: a cubin, else PTX, which the driver compiles."""

    chip: str
    content: bytes
    is_ptx: bool

    @property
    def kind(self) -> str:
        """Returns "PTX" or "cubin"."""
        return "PTX" if self.is_ptx else "cubin"

    @property
    def capability(self) -> int:
        """Returns ten times the compute capability that the code is for."""
        return chip_of(self.chip).capability

    @property
    def is_exact(self) -> bool:
        """Returns whether the code runs on its own capability alone, as that for sm_90a."""
        return chip_of(self.chip).is_specific

    @property
    def hexadecimal(self) -> str:
        """Returns the bytes as lines of a C initializer; PTX gets the zero byte that the driver asks for."""
        content = self.content + b"\0" * self.is_ptx
        lines = (content[at : at + LINE_BYTES] for at in range(0, len(content), LINE_BYTES))
        return "\n".join("".join(f"{byte:#04x}," for byte in line) for line in lines)


@dataclass(frozen=True)
class GpuBuffer:
    """A buffer of a kernel: an operand of the call, or scratch memory."""

    kind: str  # the name in C: "A", "SCRATCH"
    bytes: int
    is_zeroed: bool


@dataclass(frozen=True)
class GpuArgument:
    """An argument of a launch: the address of a buffer, or a tensor map of it."""

    buffer: int  # its number
    map: int | None  # number of the kernel's tensor map; None: the address


@dataclass(frozen=True)
class GpuLaunch:
    """A launch: kernel, geometry, dynamic shared memory, arguments."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[GpuArgument, ...]


@dataclass(frozen=True)
class GpuKernel:
    """An entry as C code launches it."""

    entry: LibraryEntry
    function: CFunction
    image: int  # its number among the images of the library
    buffers: tuple[GpuBuffer, ...]
    launches: tuple[GpuLaunch, ...]
    maps: tuple[str, ...]  # tensor maps as C initializers

    @property
    def problem(self) -> Problem:
        """Returns the problem that the kernel computes."""
        return self.entry.problem


def image_of(program: KernelProgram) -> GpuImage:
    """Returns the code of a program: its cubin, without one its PTX."""
    return GpuImage(program.chip, program.cubin or program.ptx.encode(), is_ptx=not program.cubin)


def gpu_kernel(entry: LibraryEntry, program: KernelProgram, prefix: str, image: int) -> GpuKernel:
    """Returns an entry with its compiled program for C; ``image``: the number of its code."""
    maps = tuple(dict.fromkeys(each for launch in program.launches for each in launch.tensor_maps))
    numbers = {buffer.name: number for number, buffer in enumerate(program.buffers)}
    return GpuKernel(
        entry,
        function_of(entry.problem, f"{prefix}_gpu"),
        image,
        tuple(map(_buffer, program.buffers)),
        tuple(_launch(launch, maps, numbers) for launch in program.launches),
        tuple(map(_initializer, maps)),
    )


def _buffer(buffer: KernelBuffer) -> GpuBuffer:
    kind = "SCRATCH" if buffer.role == "scratch" else OPERANDS[buffer.name]
    return GpuBuffer(kind, buffer.bytes, buffer.is_zeroed)


def _launch(launch: Launch, maps: tuple[BufferMap, ...], numbers: dict[str, int]) -> GpuLaunch:
    arguments = []
    for name in launch.arguments:
        tensor_map = launch.tensor_map(name)
        if tensor_map is None:
            arguments.append(GpuArgument(numbers[name], None))
        else:
            arguments.append(GpuArgument(numbers[tensor_map.buffer], maps.index(tensor_map)))
    shared_bytes = launch.dynamic_shared_bytes
    return GpuLaunch(launch.kernel, launch.grid, launch.block, shared_bytes, tuple(arguments))


def _initializer(tensor_map: BufferMap) -> str:
    layout = tensor_map.layout
    lists = (layout.sizes, layout.strides_bytes, layout.box)
    rows = ", ".join(f"{{{', '.join(map(str, each or (0,)))}}}" for each in lists)
    modes = (layout.interleave, layout.swizzle, layout.l2_promotion, layout.out_of_bounds)
    return f"{{{layout.dtype}, {len(layout.sizes)}, {rows}, {', '.join(map(str, modes))}}}"
