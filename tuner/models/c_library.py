"""An exported program as a library for C programs: a header, C source, and an object file for a linker.

    mlp.h           what the functions take and return
    mlp.c           chooses the static program of a call's size n; pads arguments, cuts results
    mlp_program.o   the code of each static program, and packed weights, each once

A program of static sizes is a program of one n that no shape depends on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, zip_longest
from math import prod
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.dynamic_sizes import LinearSize, SizeRange, numbers_of, shape_text, static_size
from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.core.instruction_sets import TILE_SETS, X86_64
from tuner.core.typed_arguments import typed_arguments
from tuner.models.library.c.kernels import BITS
from tuner.models.library.c.writer import needs, rendered, require_prefix
from tuner.models.run.exported import FORMAT, read_document, read_program
from tuner.models.run.exported_sizes import SIZED_FORMAT, SizedCode, SizedImage, read_sizes
from tuner.models.run.fused_code import PROGRAM_ENTRY, Fill, FusedCode, FusedImage, numpy_type
from tuner.models.run.program_weights import aligned_size
from tuner.models.run.sized_types import MASK, SizeArgument, SizedSignature, SizedType
from tuner.results.output.files import write_folder
from tuner.runtime.cpu.host import own_architecture
from tuner.runtime.cpu.linkable_objects import linkable_object
from tuner.version import __version__

ONE_SIZE = SizeRange(1, 1)  # of a program of static sizes
# Element type -> C type, beyond those of the table of types.
C_TYPES = {"i1": "uint8_t", "index": "int64_t"}
CODE = attrgetter("code")


@typed_arguments
def c_library(folder: str | Path, output: str | Path, prefix: str | None = None) -> tuple[Path, ...]:
    """Writes a program that ``program.export(folder)`` has written as a library for C programs.

    Args:
        folder: path of the exported program, of static sizes or of a dynamic size.
        output: path of the folder to write into, which is made if it is missing.
        prefix: what names of functions and files begin with; None: the name of ``folder``.

    Returns:
        The paths of the header, the C source and the object file.

    Raises:
        UsageError: the folder has no program, a file was changed, this processor is not x86-64 or lacks
            instructions of the program, the prefix cannot begin a name in C, or a file cannot be written.

    Example:
        >>> import tempfile
        >>> import tuner
        >>> twice = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
        >>> payload = f"!t = tensor<4xf32> {twice}"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tuner.compile_program(payload, target="cpu").export(f"{folder}/twice")
        ...     [path.name for path in tuner.c_library(f"{folder}/twice", f"{folder}/c")]
        ['twice.h', 'twice.c', 'twice_program.o']
    """
    path = Path(folder)
    name = path.resolve().name if prefix is None else prefix
    require_prefix(name)
    if own_architecture() is not X86_64:
        raise UsageError(f"a C library of a program is for {X86_64.name}, this processor is not")
    return write_folder(Path(output), _files(_image(path), name))


def _image(folder: Path) -> SizedImage:
    document = read_document(folder, (FORMAT, SIZED_FORMAT))
    if document["format"] == SIZED_FORMAT:
        image = read_sizes(folder, document)
        if image.sizes.is_of_two:
            raise UsageError(f"{folder}: a C library has one dynamic size; the program has n and m")
        return image
    return _of_one_size(read_program(folder, document))


def _of_one_size(image: FusedImage) -> SizedImage:
    code = image.code
    arguments = tuple(map(_sized_type, code.arguments))
    results = tuple(map(_sized_type, code.results))
    reads = tuple(range(len(arguments)))
    returns = tuple(range(len(results)))
    signature = SizedSignature(code.entry, arguments, results, reads, returns)
    program = SizedCode(ONE_SIZE.greatest, (), code, image.weights)
    return SizedImage(signature, ONE_SIZE, (program,))


def _sized_type(type_: TensorType) -> SizedType:
    return SizedType(tuple(map(static_size, type_.shape)), type_.element)


def _files(image: SizedImage, prefix: str) -> Mapping[str, bytes]:
    weights: dict[int, memoryview] = {}  # by identity
    codes = {}
    for program in image.programs:
        codes[_symbol(prefix, program)] = program.code.object_code
        for weight in program.weights:
            weights[id(weight)] = weight.data
    numbers = dict(zip(weights, count(), strict=False))
    arrays = list(weights.values())
    values = _values(image, prefix, numbers)
    return {
        f"{prefix}.h": rendered("program.h", **values, weight_bytes=sum(map(len, arrays))),
        f"{prefix}.c": rendered("program.c", **values),
        f"{prefix}_program.o": linkable_object(codes, PROGRAM_ENTRY, f"{prefix}_weights", arrays),
    }


def _symbol(prefix: str, program: SizedCode) -> str:
    return f"{prefix}_program_{program.size}"


@dataclass(frozen=True)
class CTensor:
    """An argument or a result of the C function: its name, and its type, whose sizes may depend on n."""

    name: str
    type: SizedType
    is_changed: bool = False  # an argument that a call changes

    @property
    def shape(self) -> str:
        return shape_text(self.type.shape)

    @property
    def rank(self) -> int:
        return len(self.type.shape)

    @property
    def element(self) -> str:
        return self.type.element

    @property
    def c_type(self) -> str:
        return _c_type(self.type.element)

    @property
    def initializer(self) -> str:
        """Returns the C initializer of a ``struct tensor``: "{4, 2, {{1, 0}, {0, 64}}}" for ?x64xf32.

        It has the bytes of an element, the number of dimensions, and per dimension (a, b) of its size a * n +
        b.
        """
        sizes = [f"{{{size.of_n}, {size.constant}}}" for size in self.type.shape] or ["{0, 0}"]
        element_bytes = number_type(self.type.element).bytes
        return f"{{{element_bytes}, {self.rank}, {{{', '.join(sizes)}}}}}"


@dataclass(frozen=True)
class CWriter:
    """A C function that writes a number that depends on n, or a mask of that many ones, into an array."""

    name: str
    type: str  # of an element
    is_mask: bool


@dataclass(frozen=True)
class CAdded:
    """An argument of a static program that holds a call's size n.

    It is written to an object's memory before a call.
    """

    size: LinearSize
    count: int  # of elements
    at: int
    writer: CWriter


@dataclass(frozen=True)
class CFill:
    """A constant fill of the arena before a program runs.

    ``count`` copies of ``element``, ``at`` bytes from its start.
    """

    at: int
    count: int
    element: bytes


@dataclass(frozen=True)
class CProgram:
    """The static program for calls of n up to ``size``, as an entry of the C source's tables."""

    symbol: str
    size: int
    added: tuple[CAdded, ...]
    weights: tuple[int, ...]  # numbers among those of all programs
    fills: tuple[CFill, ...]


@dataclass(frozen=True)
class ObjectMemory:
    """Byte offsets of arrays in an object's memory, after the arena.

    The memory is large enough for each static program.
    """

    reads: tuple[int, ...]  # each argument of a static program, padded
    returned: tuple[int, ...]  # each result of a static program
    added: tuple[int, ...]  # each argument that says n
    bytes: int


def _values(image: SizedImage, prefix: str, numbers: Mapping[int, int]) -> dict[str, Any]:
    """Returns the variables of the templates of header and source.

    ``numbers``: index of each packed weight.
    """
    signature = image.signature
    memory = _memory(image)
    codes = list(map(CODE, image.programs))
    programs = [_program(program, prefix, numbers, memory) for program in image.programs]
    changed = {*chain.from_iterable(map(attrgetter("changed"), codes))}
    arguments = [
        CTensor(f"argument_{number}", type_, number in changed)
        for number, type_ in enumerate(signature.arguments)
    ]
    results = list(map(CTensor, map("result_{}".format, count()), signature.results))
    tensors = (*arguments, *results)
    sizes = None if image.sizes is ONE_SIZE else image.sizes
    sets = dict.fromkeys(chain.from_iterable(map(attrgetter("needs"), codes)))
    macro = prefix.upper()
    added = chain.from_iterable(map(attrgetter("added"), programs))
    return {
        "prefix": prefix,
        "macro": macro,
        "version": __version__,
        "entry": signature.entry,
        "sizes": sizes,
        "ladder": ", ".join(map(str, map(attrgetter("size"), programs))),
        "arguments": arguments,
        "results": results,
        "parameters": _parameters(prefix, arguments, results, has_size=sizes is not None),
        "changed": [tensor.name for tensor in arguments if tensor.is_changed],
        "bit_types": tuple(dict.fromkeys(filter(_is_bits, map(attrgetter("element"), tensors)))),
        "reads": signature.reads,
        "returns": signature.returns,
        "read_at": memory.reads,
        "returned_at": memory.returned,
        "memory_bytes": memory.bytes,
        "most_rank": max(1, *map(attrgetter("rank"), tensors)),
        "most_slots": max(map(_slots, codes)),
        "writers": tuple(dict.fromkeys(map(attrgetter("writer"), added))),
        "programs": programs,
        "bits": tuple(BITS[X86_64.name].values()),
        "needs": tuple(sets),
        "needs_mask": needs(sets, macro),
        "amx": not sets.keys().isdisjoint(TILE_SETS),
    }


def _parameters(
    prefix: str, arguments: Iterable[CTensor], results: Iterable[CTensor], *, has_size: bool
) -> str:
    parameters = [f"struct {prefix}_object *object"]
    if has_size:
        parameters.append("int64_t n")
    for tensor in arguments:
        qualifier = "" if tensor.is_changed else "const "
        parameters.append(f"{qualifier}{tensor.c_type} *{tensor.name}")
    parameters += [f"{tensor.c_type} *{tensor.name}" for tensor in results]
    return ", ".join(parameters)


def _is_bits(element: str) -> bool:
    return number_type(element).is_c_bits


def _c_type(element: str) -> str:
    return number_type(element).c or C_TYPES[element]


def _slots(code: FusedCode) -> int:
    # the arena, and the text of an assertion that failed
    return len(code.arguments) + len(code.results) + len(code.weight_bytes) + 2


def _program(program: SizedCode, prefix: str, numbers: Mapping[int, int], memory: ObjectMemory) -> CProgram:
    return CProgram(
        symbol=_symbol(prefix, program),
        size=numbers_of(program.size)[0],
        added=tuple(map(_added, program.added, memory.added)),
        weights=tuple(map(numbers.__getitem__, map(id, program.weights))),
        fills=tuple(map(_fill, program.code.fills)),
    )


def _added(argument: SizeArgument, at: int) -> CAdded:
    name = f"write_{argument.use}_{argument.element}"
    writer = CWriter(name, _c_type(argument.element), argument.use == MASK)
    return CAdded(argument.size, prod(argument.shape), at, writer)


def _fill(fill: Fill) -> CFill:
    element = np.array(fill.value).astype(numpy_type(fill.type.element))
    return CFill(fill.offset_bytes, prod(fill.type.shape), element.tobytes())


def _memory(image: SizedImage) -> ObjectMemory:
    """Returns where an object has the arena, then arrays that are as long as any program needs."""
    codes = list(map(CODE, image.programs))
    read = len(image.signature.reads)
    arena = max(map(attrgetter("arena_bytes"), codes))
    reads = _most_bytes(code.arguments[:read] for code in codes)
    returned = _most_bytes(map(attrgetter("results"), codes))
    added = _most_bytes(code.arguments[read:] for code in codes)
    sizes = map(aligned_size, (arena, *reads, *returned, *added))
    starts = tuple(accumulate(sizes, initial=0))
    first_result = 1 + len(reads)
    first_added = first_result + len(returned)
    return ObjectMemory(
        reads=starts[1:first_result],
        returned=starts[first_result:first_added],
        added=starts[first_added:-1],
        bytes=starts[-1],
    )


def _most_bytes(lists: Iterable[Sequence[TensorType]]) -> list[int]:
    """Returns the most bytes of the first, the second, ... type of several lists."""
    most: list[int] = []
    for types in lists:
        pairs = zip_longest(most, map(attrgetter("bytes"), types), fillvalue=0)
        most = list(map(max, pairs))
    return most
