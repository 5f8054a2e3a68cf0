"""Kernels of MLIR text that can be launched on host memory: parameters, decoders, batches of blocks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tuner.core.errors import CandidateError
from tuner.gpu.interpreter import (
    arithmetic,
    control_flow,
    conversions,
    decoding,
    matrices,
    memory_ops,
    subgroup_ops,
    vector_memory,
    vectors,
    views,
)
from tuner.gpu.interpreter import memory as flat_memory
from tuner.gpu.interpreter.lanes import (
    INDEX,
    Array,
    BufferView,
    ElementType,
    LaneGrid,
    Sizes3,
    UnknownTypeError,
    element_type,
    uniform,
)
from tuner.gpu.interpreter.memory_ops import new_buffer, sizes_of
from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.ir.reading import function_type, name_of, ops_in, unsupported, walk
from tuner.mlir.transform import new_context, parse

FAMILIES = (
    *(control_flow, conversions, matrices, memory_ops, arithmetic),
    *(subgroup_ops, vector_memory, vectors, views),
)
NOTHING = frozenset(
    {
        *("memref.dealloc", "memref.prefetch"),
        *("nvgpu.device_async_create_group", "nvgpu.device_async_wait"),  # copies are executed immediately
    }
)
ENDS = frozenset(
    {
        *(
            "gpu.return",
            "gpu.terminator",
            "gpu.yield",
            "func.return",
            "scf.yield",
            "scf.condition",
            "scf.reduce",
        ),
        *("memref.atomic_yield", "memref.alloca_scope.return", "scf.reduce.return"),
    }
)
DECODERS = decoding.Decoders(
    steps={name: decode for family in FAMILIES for name, decode in family.DECODERS.items()},
    choices=control_flow.CHOICES,
    nothing=NOTHING,
    ends=ENDS,
)

# of a memref descriptor; its header: allocated pointer, aligned pointer, offset
WORD_BYTES = 8
HEADER_WORDS = 3
LANES_LIMIT = 1 << 14  # that run together: more lanes need more memory, fewer lanes have more overhead
DEFAULT_SHARED_BYTES = 232448  # largest of a block on sm_90; CUDA programming guide, compute capabilities
MakeAttribution: TypeAlias = Callable[[decoding.LaneFrame], BufferView]


@dataclass(frozen=True)
class MemrefLayout:
    """Sizes, strides and offset of a memref type, in elements; None for each number that is dynamic."""

    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    offset: int | None

    @property
    def word_count(self) -> int:
        """Returns the number of 8-byte words of a descriptor: two pointers, offset, sizes, strides."""
        return HEADER_WORDS + 2 * len(self.sizes)

    def words(self, address: int) -> list[int]:
        """Returns the descriptor of a static memref at ``address``. Raises ValueError if not static."""
        numbers = (self.offset, *self.sizes, *self.strides)
        known = [number for number in numbers if number is not None]
        if len(known) != len(numbers):
            raise ValueError(f"found an address alone, allowed a descriptor: sizes {self.sizes}")
        return [address, address, *known]


@dataclass(frozen=True)
class LaneParameter:
    """The type of one parameter of a kernel; ``layout`` is None for a number or a vector."""

    element: ElementType
    layout: MemrefLayout | None

    def at(self, address: int) -> BufferView | Array:
        """Reads the argument of this parameter from the memref descriptor at ``address`` in host memory.

        A number is read from a memref of rank 0.
        """
        if self.layout is not None:
            return _view(_words_at(address, self.layout.word_count), self.element)
        first = np.full((1, 1, *[1] * len(self.element.shape)), _words_at(address, 2)[1])
        return flat_memory.read(self.element.dtype, first + self.element.offsets_bytes)

    def take(self, contents: list[bytes], *, is_bare: bool) -> BufferView | Array:
        """Removes this parameter's bytes from the front of ``contents``; returns the argument in them.

        ``is_bare``: a memref is its address alone, not all words of its descriptor. Raises ValueError for a
        number or vector of too few bytes, and for a bare memref with a dynamic size, stride or offset.
        """
        if self.layout is None:
            content = contents.pop(0)
            element = self.element
            last = int(element.offsets_bytes.max(initial=0)) + element.dtype.itemsize  # then padding
            if len(content) < last:
                raise ValueError(f"found {len(content)} bytes, allowed {element.size_bytes}")
            size = element.dtype.itemsize
            numbers = np.frombuffer(content[: len(content) // size * size], element.dtype)
            return np.asarray(numbers[(element.offsets_bytes // size)[None, None]])
        if is_bare:
            return _view(self.layout.words(int.from_bytes(contents.pop(0), "little")), self.element)
        count = self.layout.word_count
        words = [int.from_bytes(contents.pop(0), "little", signed=True) for _ in range(count)]
        return _view(words, self.element)


def parameter_of(op: Op, type_: Type) -> LaneParameter:
    """Returns how a kernel reads a parameter of type ``type_``; ``op`` gives the location for the error."""
    is_memref = isinstance(type_, ir.MemRefType)
    try:
        element = element_type(type_.element_type if is_memref else type_)
    except UnknownTypeError:
        raise unsupported(op, f"a parameter {type_}", "memrefs and numbers of 1 to 64 bits") from None
    return LaneParameter(element, _layout(type_) if is_memref else None)


def arguments_of(parameters: Sequence[LaneParameter], contents: Sequence[bytes]) -> list[BufferView | Array]:
    """Converts the parameter bytes of a driver launch to memrefs, and arrays for numbers and vectors.

    A memref is one address or all words of its descriptor. Raises ValueError for what does not fit.
    """
    rest = list(contents)
    is_bare = len(rest) == len(parameters)
    count = sum(
        1 if is_bare or parameter.layout is None else parameter.layout.word_count for parameter in parameters
    )
    if len(rest) != count:
        raise ValueError(f"found {len(rest)} parameters, allowed {count}")
    return [parameter.take(rest, is_bare=is_bare) for parameter in parameters]


def _layout(type_: Type) -> MemrefLayout:
    strides, offset = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = (None if type_.is_dynamic_dim(axis) else type_.shape[axis] for axis in range(type_.rank))
    known = [None if number == unknown else number for number in (*strides, offset)]
    return MemrefLayout(tuple(sizes), tuple(known[:-1]), known[-1])


def _view(words: Sequence[int], element: ElementType) -> BufferView:
    rank = (len(words) - HEADER_WORDS) // 2
    _, aligned, offset = words[:HEADER_WORDS]
    sizes = words[HEADER_WORDS : HEADER_WORDS + rank]
    strides = words[HEADER_WORDS + rank :]
    # memref descriptor: allocated, aligned, offset, sizes, strides
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    first = aligned + offset * element.size_bytes
    extent = (last + 1) * element.size_bytes if math.prod(sizes) > 0 else 0
    return BufferView(
        uniform(first),
        origin=uniform(aligned),
        low=uniform(first),
        high=uniform(first + extent),
        sizes=tuple(map(uniform, sizes)),
        strides=tuple(map(uniform, strides)),
    )


def _words_at(address: int, count: int) -> list[int]:
    words: list[int] = flat_memory.read(INDEX, address + WORD_BYTES * np.arange(count)).tolist()
    return words


@dataclass(frozen=True)
class LaneLaunch:
    """A kernel launch to interpret: grid size, block size, dynamic shared memory, and the blocks to run."""

    grid: Sizes3
    block: Sizes3
    shared_bytes: int | None = None  # size of dynamic shared memory; None: 227 KiB
    blocks: Sequence[int] | None = None  # numbers of the blocks to run, x fastest; None: all

    @property
    def numbers(self) -> Sequence[int]:
        """Returns the linear indices, x fastest, of the blocks to run; by default all blocks of the grid."""
        if self.blocks is None:
            return range(math.prod(self.grid))
        return self.blocks

    @property
    def blocks_at_once(self) -> int:
        """Returns how many blocks run together: as many as have up to 16,384 threads in all, at least one."""
        return max(1, LANES_LIMIT // max(1, math.prod(self.block)))


@dataclass(frozen=True, eq=False)
class LaneKernel:
    """A GPU kernel of an MLIR module, decoded so that the interpreter can launch it on host memory."""

    name: str
    function: decoding.LaneFunction
    parameters: tuple[LaneParameter, ...]
    attributions: tuple[MakeAttribution, ...]

    def launch(
        self, launch: LaneLaunch, descriptors: Sequence[int], write: Callable[[str], object] = lambda _: None
    ) -> None:
        """Runs the blocks of a launch on arguments that are given as memref descriptors in host memory.

        ``descriptors``: the address of each argument's descriptor; a number is in a memref of rank 0.
        ``write`` receives the text that the kernel prints (gpu.printf). Raises CandidateError(RUN) for a
        fault, such as an access out of bounds.
        """
        arguments = [
            parameter.at(address) for parameter, address in zip(self.parameters, descriptors, strict=True)
        ]
        self._run(launch, arguments, write)

    def launch_bytes(self, launch: LaneLaunch, contents: Sequence[bytes]) -> None:
        """Runs the blocks of a launch on the bytes of each parameter, as cuLaunchKernel takes them.

        Pointers are host addresses. Raises ValueError for bytes that do not fit the parameters,
        CandidateError(RUN) for a fault of the kernel.
        """
        self._run(launch, arguments_of(self.parameters, contents), lambda _: None)

    def pointers(self, contents: Sequence[bytes]) -> list[tuple[int, str]]:
        """Returns (address, MLIR element type) of each memref in the bytes of a launch's parameters.

        Raises ValueError for bytes that do not fit the parameters.
        """
        arguments = arguments_of(self.parameters, contents)
        pairs = zip(self.parameters, arguments, strict=True)
        return [
            (int(view.address[0, 0]), parameter.element.name)
            for parameter, view in pairs
            if isinstance(view, BufferView)
        ]

    @property
    def terms(self) -> int:
        """Returns the longest static dimension of a memref parameter, at least 1.

        Error bounds assume that a result is a sum of as many terms.
        """
        sizes: list[int | None] = []
        for parameter in self.parameters:
            if parameter.layout is not None:
                sizes += parameter.layout.sizes
        return max((size for size in sizes if size is not None), default=1)

    def _run(self, launch: LaneLaunch, arguments: list[Any], write: Callable[[str], object]) -> None:
        if not math.prod(launch.block):
            return
        numbers = np.array(launch.numbers, INDEX)
        at_once = launch.blocks_at_once
        shared_bytes = DEFAULT_SHARED_BYTES if launch.shared_bytes is None else launch.shared_bytes
        for first in range(0, len(numbers), at_once):
            lanes = LaneGrid(launch.grid, launch.block, numbers[first : first + at_once])
            memory = decoding.BlockMemory(shared_bytes)
            frame = decoding.LaneFrame([None] * self.function.slots, lanes, memory, write)
            try:
                with np.errstate(all="ignore"):  # inactive lanes contain arbitrary values
                    made = [make(frame) for make in self.attributions]
                    self.function.body.run(frame, [*arguments, *made])
            except CandidateError as error:
                raise CandidateError(error.stage, f"kernel {self.name}: {error.reason}") from error


def read_kernels(text: str) -> dict[str, LaneKernel]:
    """Decodes the kernels of MLIR text; returns the kernels by name.

    Raises CandidateError: BIND for text that MLIR rejects, COMPILE for operations that the interpreter lacks.
    """
    with new_context(), ir.Location.unknown():
        return decode_kernels(parse(text, "kernels"))


def decode_kernels(module: ir.Module) -> dict[str, LaneKernel]:
    """Decodes every ``gpu.func`` with the attribute ``kernel`` in a module; returns the kernels by name.

    Raises CandidateError(COMPILE) for operations that the interpreter lacks.
    """
    kernels = (kernel for kernel in walk(module, "gpu.func") if "kernel" in kernel.attributes)
    return {name_of(kernel): decode_kernel(kernel) for kernel in kernels}


def decode_kernel(kernel: Op) -> LaneKernel:
    """Decodes a ``gpu.func`` and the functions that it calls to a kernel that can be launched.

    Raises CandidateError(COMPILE) for operations that the interpreter lacks.
    """
    ops = ops_in(kernel.parent.regions[0].blocks[0])
    symbols = {name_of(op): op for op in ops if "sym_name" in op.attributes}
    inputs = list(function_type(kernel).inputs)
    own = list(kernel.regions[0].blocks[0].arguments)[len(inputs) :]
    return LaneKernel(
        name_of(kernel),
        decoding.decode_function(kernel, DECODERS, symbols),
        tuple(parameter_of(kernel, type_) for type_ in inputs),
        tuple(attribution(kernel, argument.type) for argument in own),
    )


def attribution(kernel: Op, type_: Type) -> MakeAttribution:
    """Returns a function that allocates the memory of a memory attribution of a ``gpu.func``.

    An attribution is an argument of the kernel's body, of type ``type_``, that no launch passes.
    """
    element = parameter_of(kernel, type_).element
    where = f"attribution of {decoding.where_of(kernel)}"
    return lambda frame: new_buffer(frame, where, type_, element, sizes_of(type_.shape, []))
