"""The kernels of a C library: of CPUs as LLVM dialect, of GPUs as C initializers."""

import math
from dataclasses import dataclass, replace

from tuner.core.errors import CandidateError, TunerError
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import BufferMap, KernelProgram, Launch
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.library.c.functions import CFunction, CodeTarget, code_target, function_of
from tuner.library.entries import LibraryEntry
from tuner.mlir.cpu.llvm_modules import ModulePart, instructions_needed
from tuner.payload.cpu import element_offsets
from tuner.targets.cpu.compiler import CpuCompiler


@dataclass(frozen=True)
class KernelShare:
    """One thread's share of a kernel: its function, and the offset in bytes into each operand."""

    symbol: str
    a: int
    b: int
    bias: int
    c: int


@dataclass(frozen=True)
class CpuKernel:
    """A compiled entry: its C function, its processors, and the LLVM module with its functions."""

    entry: LibraryEntry
    function: CFunction
    target: CodeTarget
    shares: tuple[KernelShare, ...]  # one per thread
    module: ModulePart


def compile_kernels(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[CpuKernel, ...]:
    """Returns the kernels of CPU entries, of those alike for C only the fastest. Raises TunerError."""
    compiler = CpuCompiler()
    found: dict[tuple[object, ...], CpuKernel] = {}
    for number, entry in enumerate(sorted(entries, key=_rank)):
        kernel = _compiled(compiler, entry, f"{prefix}_{number}_", function_of(entry.problem, prefix))
        key = (kernel.function, entry.problem.extents, kernel.target.needs, len(kernel.shares))
        found.setdefault(key, kernel)
    return tuple(found.values())


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    time_s = math.inf if entry.median_s is None else entry.median_s
    return (replace(entry.problem, sizes=(1, 1, 1), batch=1).key, entry.problem.extents, time_s)


def _compiled(compiler: CpuCompiler, entry: LibraryEntry, prefix: str, function: CFunction) -> CpuKernel:
    problem = entry.problem
    try:
        artifact = compiler.compile(problem, Script.of(entry.script))
    except CandidateError as error:
        raise TunerError(f"trial {entry.trial}: {problem.key}: {error}") from error
    target = code_target(problem, entry.machine, instructions_needed(artifact.host_code))
    name = f"{prefix}{problem.dtype}_{problem.layout}_{problem.shape}_"
    of_input, of_output = problem.input_bytes, problem.output_bytes
    shares = []
    for partition in artifact.partitions:
        a, b, *bias, c = element_offsets(problem, partition)
        offsets = (a * of_input, b * of_input, sum(bias) * of_output, c * of_output)
        shares.append(KernelShare(name + partition.called, *offsets))
    module = ModulePart(artifact.host_code, name, target.processor, target.features)
    return CpuKernel(entry, function, target, tuple(shares), module)


LINE_BYTES = 24  # of an image, in one line of C
OPERANDS = {"a": "A", "b": "B", "bias": "BIAS", "c": "C"}  # name of a buffer -> its kind in C


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
        tuple(
            GpuBuffer(
                "SCRATCH" if each.role == "scratch" else OPERANDS[each.name], each.bytes, each.is_zeroed
            )
            for each in program.buffers
        ),
        tuple(_launch(launch, maps, numbers) for launch in program.launches),
        tuple(map(_initializer, maps)),
    )


def _launch(launch: Launch, maps: tuple[BufferMap, ...], numbers: dict[str, int]) -> GpuLaunch:
    arguments = []
    for name in launch.arguments:
        tensor_map = launch.tensor_map(name)
        buffer = name if tensor_map is None else tensor_map.buffer
        number = None if tensor_map is None else maps.index(tensor_map)
        arguments.append(GpuArgument(numbers[buffer], number))
    shared_bytes = launch.dynamic_shared_bytes
    return GpuLaunch(launch.kernel, launch.grid, launch.block, shared_bytes, tuple(arguments))


def _initializer(tensor_map: BufferMap) -> str:
    layout = tensor_map.layout
    lists = (layout.sizes, layout.strides_bytes, layout.box)
    lists_text = ", ".join(f"{{{', '.join(map(str, each or (0,)))}}}" for each in lists)
    modes = (layout.interleave, layout.swizzle, layout.l2_promotion, layout.out_of_bounds)
    return f"{{{layout.dtype}, {len(layout.sizes)}, {lists_text}, {', '.join(map(str, modes))}}}"
