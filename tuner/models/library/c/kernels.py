"""The functions of a C library and their kernels: for CPUs as LLVM dialect, for GPUs as C initializers.

Kernels are timed as compiled for the processor that they ran on, with all that it has. In a library they are
compiled for a level of their architecture and no more instruction sets than C code can ask for. Levels of
x86-64: https://gitlab.com/x86-psABIs/x86-64-ABI, "Micro-Architecture Levels".
"""

import math
from dataclasses import dataclass, replace

from tuner.core.compiled_code import BufferMap, KernelCode, Launch
from tuner.core.dtypes import NUMBER_TYPES, number_type
from tuner.core.epilogues import Epilogue
from tuner.core.errors import CandidateError, TunerError
from tuner.core.gpu import chip_of
from tuner.core.instruction_sets import (
    AARCH64,
    AMX_BF16,
    AMX_INT8,
    ARM_BF16,
    AVX2,
    AVX512,
    AVX512_BF16,
    AVX_VNNI,
    DOTPROD,
    I8MM,
    ISA_ARCHITECTURES,
    NEON,
    VNNI,
    X86_64,
    CodeLevel,
    code_level,
    encoded,
)
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import NUMPY_ALIGNMENT, SIZE_LIMIT, WARM, Problem
from tuner.core.problem_classes import GroupedProblem
from tuner.core.processors import instruction_sets_of
from tuner.mlir.cpu.llvm_modules import ModulePart
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.models.library.entries import LibraryEntry
from tuner.payload.cpu import element_offsets
from tuner.targets.cpu.compiler import CpuCompiler

# Architecture -> instruction set -> name of its bit in the header, after the prefix; in the bits' order.
BITS = {
    X86_64.name: {
        AVX2: "AVX2",
        AVX512: "AVX512",
        VNNI: "AVX512_VNNI",
        AVX_VNNI: "AVX_VNNI",
        AVX512_BF16: "AVX512_BF16",
        AMX_BF16: "AMX_BF16",
        AMX_INT8: "AMX_INT8",
    },
    AARCH64.name: {NEON: "NEON", DOTPROD: "DOTPROD", I8MM: "I8MM", ARM_BF16: "BF16"},
}
# Element type in memory -> C type.
C_TYPES = {mlir: row.c for mlir, row in NUMBER_TYPES.items()}
INDEX_A = {"nn": "i * k + l", "nt": "i * k + l", "tn": "l * m + i"}  # layout -> element (i, l) of A
INDEX_B = {"nn": "l * n + j", "nt": "j * k + l", "tn": "l * n + j"}  # layout -> element (l, j) of B
STORED_A = {"nn": "m x k", "nt": "m x k", "tn": "k x m (transposed)"}
STORED_B = {"nn": "k x n", "nt": "n x k (transposed)", "tn": "k x n"}
SCRATCH = -1  # in place of the index of an operand
LINE_BYTES = 24  # of an image, in one line of C


@dataclass(frozen=True)
class CodeTarget:
    """The processors that a kernel is compiled for, in LLVM's names.

    ``needs``: instruction sets that C code asks the processor for before it calls the kernel.
    """

    level: CodeLevel
    needs: tuple[str, ...]  # keys of BITS[level.architecture.name]

    @property
    def bits(self) -> int:
        """Returns ``needs`` as a bit mask: bit i is the i-th key of BITS; newer sets give larger numbers."""
        names = BITS[self.level.architecture.name]
        return sum(1 << index for index, name in enumerate(names) if name in self.needs)


def code_target(problem: Problem, machine: Machine, needs: tuple[str, ...]) -> CodeTarget:
    """Returns the processors to compile a kernel for: a level, and the instruction sets it needs.

    ``needs``: sets that its intrinsics need. VNNI is added for integers on a machine that has it: LLVM uses
    it. Without AVX-512 it is AVX-VNNI.
    """
    used = {*needs}
    if not number_type(problem.dtype).is_float and VNNI in instruction_sets_of(machine):
        used.add(VNNI)
    required = {machine.isa, *encoded(used, machine.isa)}
    architecture = ISA_ARCHITECTURES.get(machine.isa, X86_64)
    sets = tuple(name for name in BITS[architecture.name] if name in required)
    return CodeTarget(code_level(machine.isa, sets, architecture), sets)


@dataclass(frozen=True)
class CFunction:
    """A C function that computes one kind of problem at any size; its names and types are C text."""

    name: str
    problem: Problem  # one that the function computes; its sizes, alignment and caches mean nothing
    input_type: str  # of an element of A or B
    output_type: str  # of an element of C and of the bias
    accumulator_type: str  # in which products are added up
    is_batch: bool
    epilogue: Epilogue  # what follows the product
    depth_limit: int  # the largest k: beyond it sums of integers could overflow
    stored_a: str  # extents in memory, for a comment: "m x k"
    stored_b: str
    index_a: str  # C expression of the index of element (i, l)
    index_b: str  # of element (l, j)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the arrays in the kernel's order: "a", "b", others, "c".

        The others: "offsets" of a grouped_matmul, then the arrays that the epilogue reads, such as a bias.
        """
        return tuple(argument.name for argument in self.problem.arguments)

    @property
    def has_integers(self) -> bool:
        """Returns whether A and B are integers, whose sums may overflow."""
        return not number_type(self.problem.dtype).is_float

    @property
    def counted(self) -> str:
        """Returns the C parameter before m, n and k: "batch", of a grouped_matmul "groups"; "" if none."""
        if self.problem.groups:
            return "groups"
        if self.is_batch:
            return "batch"
        return ""


def function_of(problem: Problem, prefix: str) -> CFunction:
    """Returns the C function that computes a problem: ``tuner_matmul_f32_nn`` for the prefix "tuner"."""
    dtype = f"{problem.dtype}_to_{problem.output}" if problem.output else problem.dtype
    epilogue = f"_{problem.epilogue}" if problem.after_product.steps else ""
    return CFunction(
        name=f"{prefix}_{problem.operation}_{dtype}_{problem.layout}{epilogue}",
        problem=_without_sizes(problem),
        input_type=C_TYPES[problem.stored_dtype],
        output_type=C_TYPES[problem.result_dtype],
        accumulator_type=C_TYPES[problem.accumulator],
        is_batch=bool(problem.lead),
        epilogue=problem.after_product,
        depth_limit=min(number_type(problem.dtype).depth_limit or SIZE_LIMIT, SIZE_LIMIT),
        stored_a=STORED_A[problem.layout],
        stored_b=STORED_B[problem.layout],
        index_a=INDEX_A[problem.layout],
        index_b=INDEX_B[problem.layout],
    )


def _without_sizes(problem: Problem) -> Problem:
    one = replace(problem, sizes=(1, 1, 1), batch=1, align=NUMPY_ALIGNMENT, cache=WARM)
    if isinstance(one, GroupedProblem):
        return replace(one, groups=1)
    return one


@dataclass(frozen=True)
class KernelShare:
    """One thread's share of a kernel: its C symbol, and the offset in bytes into each operand."""

    symbol: str
    offsets: tuple[int, ...]  # of A, B, arguments of the epilogue, C


@dataclass(frozen=True)
class CpuKernel:
    """A compiled entry of a library: its C function, the processors it is for, and its LLVM module."""

    entry: LibraryEntry
    function: CFunction
    target: CodeTarget
    shares: tuple[KernelShare, ...]  # one per thread
    module: ModulePart

    @property
    def threads(self) -> int:
        """Returns how many threads the kernel is divided among."""
        return len(self.shares)


def compile_kernels(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[CpuKernel, ...]:
    """Compiles CPU entries; of several that C code could not tell apart, returns only the fastest.

    ``prefix`` begins C names. Raises TunerError if an entry's script does not compile.
    """
    compiler = CpuCompiler()
    kernels: dict[tuple[object, ...], CpuKernel] = {}
    for index, entry in enumerate(sorted(entries, key=_rank)):
        kernel = _compiled(compiler, entry, f"{prefix}_{index}_", function_of(entry.problem, prefix))
        key = (kernel.function, entry.problem.extents, kernel.target.needs, len(kernel.shares))
        kernels.setdefault(key, kernel)
    return tuple(kernels.values())


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    time_s = math.inf if entry.median_s is None else entry.median_s
    return (replace(entry.problem, sizes=(1, 1, 1), batch=1).key, entry.problem.extents, time_s)


def _compiled(compiler: CpuCompiler, entry: LibraryEntry, prefix: str, function: CFunction) -> CpuKernel:
    problem = entry.problem
    try:
        artifact = compiler.compile(problem, Script.of(entry.script))
    except CandidateError as error:
        raise TunerError(f"trial {entry.trial}: {problem.key}: {error}") from error
    target = code_target(problem, entry.machine, instructions_needed(artifact.code.text))
    name = f"{prefix}{problem.dtype}_{problem.layout}_{problem.shape}_"
    of_input = problem.input_bytes
    of_output = problem.output_bytes
    shares = []
    for partition in artifact.partitions:
        elements = element_offsets(problem, partition)
        bytes_of = (of_input, of_input, *[of_output] * (len(elements) - 2))
        offsets = tuple(first * size for first, size in zip(elements, bytes_of, strict=True))
        shares.append(KernelShare(name + partition.called, offsets))
    module = ModulePart(artifact.code.text, name, target.level.name, target.level.features)
    return CpuKernel(entry, function, target, tuple(shares), module)


@dataclass(frozen=True)
class GpuImage:
    """Code that the driver loads: a cubin, else PTX, which the driver compiles."""

    chip: str
    content: bytes
    is_ptx: bool

    @property
    def form(self) -> str:
        """Returns "PTX" or "cubin": the form of the code, for comments."""
        if self.is_ptx:
            return "PTX"
        return "cubin"

    @property
    def capability(self) -> int:
        """Returns ten times the compute capability that the code is for: 90 for sm_90a."""
        return chip_of(self.chip).capability

    @property
    def is_exact(self) -> bool:
        """Returns whether the code runs on GPUs of exactly this compute capability, such as sm_90a."""
        return chip_of(self.chip).is_specific

    @property
    def hexadecimal(self) -> str:
        """Returns the bytes as lines of a C initializer; PTX ends with a zero byte, as the driver needs."""
        content = self.content + (b"\0" if self.is_ptx else b"")
        lines = (content[at : at + LINE_BYTES] for at in range(0, len(content), LINE_BYTES))
        return "\n".join("".join(f"{byte:#04x}," for byte in line) for line in lines)


@dataclass(frozen=True)
class GpuBuffer:
    """A buffer of a kernel: an operand of the call, or scratch memory."""

    operand: int  # its index among the operands of the call; SCRATCH for memory of the kernel's own
    bytes: int
    is_zeroed: bool


@dataclass(frozen=True)
class GpuArgument:
    """An argument of a launch: a buffer's address, or a tensor map (CUtensorMap) of the buffer."""

    buffer: int  # its index among the kernel's buffers
    map: int | None  # index of the kernel's tensor map; None: the address


@dataclass(frozen=True)
class GpuLaunch:
    """A kernel launch: blocks, and threads per block, along x, y and z; bytes of dynamic shared memory."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[GpuArgument, ...]


@dataclass(frozen=True)
class GpuKernel:
    """A library entry as C code launches it: its buffers, tensor maps and launches."""

    entry: LibraryEntry
    function: CFunction
    image: int  # its index among the images of the library
    buffers: tuple[GpuBuffer, ...]
    launches: tuple[GpuLaunch, ...]
    maps: tuple[str, ...]  # tensor maps as C initializers

    @property
    def problem(self) -> Problem:
        """Returns the problem that the kernel computes."""
        return self.entry.problem


def image_of(program: KernelCode) -> GpuImage:
    """Returns the code of a program to put into C: its cubin, or its PTX if it has none."""
    return GpuImage(program.chip, program.binary or program.text.encode(), is_ptx=not program.binary)


def gpu_kernel(entry: LibraryEntry, program: KernelCode, prefix: str, image: int) -> GpuKernel:
    """Returns a library entry with its compiled program, for C code; ``prefix`` begins C names.

    ``image``: index of the program's code among the images of the library.
    """
    used = dict[BufferMap, None]()
    for launch in program.launches:
        used |= dict.fromkeys(launch.tensor_maps)
    maps = tuple(used)
    indices = {buffer.name: index for index, buffer in enumerate(program.buffers)}
    function = function_of(entry.problem, f"{prefix}_gpu")
    buffers = []
    for buffer in program.buffers:
        operand = SCRATCH if buffer.role == "scratch" else function.names.index(buffer.name)
        buffers.append(GpuBuffer(operand, buffer.bytes, buffer.is_zeroed))
    launches = tuple(_launch(launch, maps, indices) for launch in program.launches)
    return GpuKernel(entry, function, image, tuple(buffers), launches, tuple(map(_initializer, maps)))


def _launch(launch: Launch, maps: tuple[BufferMap, ...], indices: dict[str, int]) -> GpuLaunch:
    arguments = []
    for name in launch.arguments:
        tensor_map = launch.tensor_map(name)
        buffer = name if tensor_map is None else tensor_map.buffer
        map_index = None if tensor_map is None else maps.index(tensor_map)
        arguments.append(GpuArgument(indices[buffer], map_index))
    shared_bytes = launch.dynamic_shared_bytes
    return GpuLaunch(launch.kernel, launch.grid, launch.block, shared_bytes, tuple(arguments))


def _initializer(tensor_map: BufferMap) -> str:
    layout = tensor_map.layout
    lists = (layout.sizes, layout.strides_bytes, layout.box)
    lists_text = ", ".join(f"{{{', '.join(map(str, numbers or (0,)))}}}" for numbers in lists)
    modes = (layout.interleave, layout.swizzle, layout.l2_promotion, layout.out_of_bounds)
    return f"{{{layout.dtype}, {len(layout.sizes)}, {lists_text}, {', '.join(map(str, modes))}}}"
