"""The format "c": entries as a library for C programs, which needs neither Python nor tuner to run.

Renders templates of a header and a C source, from the kernels of ``kernels`` and ``packed``, and writes an
object file with the machine code of CPU kernels.
"""

import functools
import math
import re
import struct
import tempfile
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from textwrap import indent

import jinja2

from tuner.analysis.ratios import Comparable, NotComparable
from tuner.core.compiled_code import KernelCode
from tuner.core.dtypes import INPUT_DTYPES, NUMBER_TYPES, number_type
from tuner.core.epilogues import BEFORE
from tuner.core.errors import CandidateError, TunerError, UsageError
from tuner.core.gpu import chip_of
from tuner.core.instruction_sets import AMX_BF16, AMX_INT8, Architecture
from tuner.core.interfaces import Script
from tuner.core.packings import NIBBLE_ROWS
from tuner.core.problem import Problem
from tuner.core.serialization import printable, seconds_text
from tuner.mlir.cpu.llvm_modules import joined
from tuner.models.library.c.kernels import (
    BITS,
    C_TYPES,
    SCRATCH,
    CFunction,
    CpuKernel,
    GpuBuffer,
    GpuImage,
    GpuKernel,
    GpuLaunch,
    compile_kernels,
    gpu_kernel,
    image_of,
)
from tuner.models.library.c.packed import PackedArray, PackedKernel, compile_packed
from tuner.models.library.c.row_covers import covered_ranges
from tuner.models.library.entries import LibraryEntry, LibraryFile
from tuner.results.output.templates import template_environment
from tuner.runtime.programs.devices import device_compiler
from tuner.targets.cpu.compiler import write_object
from tuner.version import __version__

# Types of which C has only the bits, by functions of matmul.c and of check.c.
FROM_BITS = {mlir: f"from_{mlir}({{}})" for mlir, row in NUMBER_TYPES.items() if row.is_c_bits}
TO_BITS = {mlir: f"to_{mlir}({{}})" for mlir, row in NUMBER_TYPES.items() if row.is_c_bits}
WHOLE = {row.mlir: "(int32_t){}" for row in map(number_type, INPUT_DTYPES) if not row.is_float}
WIDENED = WHOLE | FROM_BITS  # element type -> expression in the sums' type
# check.c draws small integers: FROM_INTEGER converts one to the element type, AS_DOUBLE an element back.
CHECKED_C = "1000"  # what C holds before a call
FROM_INTEGER = {mlir: f"({row.c})({{}})" for mlir, row in NUMBER_TYPES.items() if mlir != "f64"} | TO_BITS
AS_DOUBLE = {"f64": "{}", **FROM_BITS}
FLAGS: dict[str, str] = {}  # instruction set -> C flag
for _flags in BITS.values():
    FLAGS |= _flags
# C flag -> comment in the header: the level that it requires
FLAG_COMMENTS = {"AVX2": "x86-64-v3", "AVX512": "x86-64-v4", "NEON": "with the atomics of ARMv8.1"}
DEFAULT_PREFIX = "tuner"
PREFIX = re.compile(r"[a-z][a-z0-9_]{0,30}")
# Keywords of C23 and C++23 that PREFIX allows, and names that a compiler or a C library defines as macros
KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast std
struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
unsigned using virtual void volatile wchar_t while xor xor_eq errno linux unix stdin stdout stderr
"""
RESERVED = frozenset(KEYWORDS.split())
ELF_64_LITTLE = b"\x7fELF\x02\x01"
# e_shoff, e_shnum
SECTION_TABLE_AT = 0x28
SECTION_COUNT_AT = 0x3C
SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
SYMBOL_TABLE = 2  # SHT_SYMTAB
OTHER_AT = 5  # offset of st_other in a symbol
# STB_LOCAL, SHN_UNDEF, STV_HIDDEN
LOCAL = 0
UNDEFINED = 0
HIDDEN = 2


def rendered(template: str, **values: object) -> bytes:
    """Returns the bytes of a C file made from the Jinja template ``template``.j2 of this package.

    Several empty lines become one. ``values``: what the template uses.
    """
    text = _templates().get_template(f"{template}.j2").render(**values)
    lines: list[str] = []
    for line in text.split("\n"):  # of several empty lines one stays
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return ("\n".join(lines).strip("\n") + "\n").encode()


@functools.cache
def _templates() -> jinja2.Environment:
    filters: dict[str, Callable[..., object]] = {
        "array_initializer": array_initializer,
        "accumulated": lambda function: epilogue_lines(function.problem, function.accumulator_type, WIDENED),
        "as_double": lambda text, dtype: AS_DOUBLE.get(dtype, "(double){}").format(text),
        "comment": comment,
        "doubled": lambda problem, row: epilogue_lines(problem, "double", AS_DOUBLE, row, CHECKED_C),
        "finished": finished_lines,
        "from_integer": lambda text, dtype: FROM_INTEGER.get(dtype, "{}").format(text),
        "kernel_initializer": kernel_initializer,
        "loop_parameters": lambda function: parameters(function, has_batch=False),
        "gpu_parameters": gpu_parameters,
        "gpu_provenance": gpu_provenance,
        "needs": needs,
        "pack_parameters": pack_parameters,
        "packed_parameters": packed_parameters,
        "parameters": parameters,
        "provenance": provenance,
        "rounded": lambda text, dtype: TO_BITS.get(dtype, "{}").format(text),
        "widened": lambda text, dtype: WIDENED.get(dtype, "{}").format(text),
    }
    return template_environment(__package__, filters)


def parameters(function: CFunction, *, has_batch: bool = True) -> str:
    """Returns the C parameters of a function: pointers to its arrays, then sizes.

    ``has_batch`` False: without the number of matrices.
    """
    source = function.input_type
    result = function.output_type
    pointers = [f"const {source} *a", f"const {source} *b"]
    pointers += [f"const {result} *{argument.name}" for argument in function.epilogue.arguments]
    sizes = (["batch"] if function.is_batch and has_batch else []) + ["m", "n", "k"]
    return ", ".join((*pointers, f"{result} *c", *(f"int64_t {size}" for size in sizes)))


def pack_parameters(kernel: PackedKernel) -> str:
    """Returns the C parameters of a function that packs: pointers to the weights, then to its output."""
    weights = (f"const {C_TYPES[array.weight.dtype]} *{array.weight.name}" for array in kernel.arrays)
    return ", ".join((*weights, "void *packed"))


def packed_parameters(kernel: PackedKernel) -> str:
    """Returns the C parameters of a product by packed weights: A, packed weights, other arguments, C."""
    result = kernel.output_type
    others = "".join(f"const {result} *{argument.name}, " for argument in kernel.others)
    return f"const {kernel.input_type} *a, const void *packed, {others}{result} *c"


def array_initializer(array: PackedArray) -> str:
    """Returns the C initializer of a ``struct packed_array`` (template matmul.c)."""
    packing = array.packing
    slots = ", ".join(map(str, array.slots or (0,)))
    numbers = (array.offset, array.bytes, array.weight.rows, array.steps, packing.columns, packing.interleave)
    others = (*array.strides, array.element_bytes, array.flip, int(bool(array.slots)))
    return f"{{{', '.join(map(str, (*numbers, *others)))}, {{{slots}}}}}"


def kernel_initializer(kernel: PackedKernel, macro: str) -> str:
    """Returns the C initializer of a ``struct tuned_kernel``; ``macro`` begins the names of its bits."""
    return f"{{{needs(kernel.target.needs, macro)}, {kernel.threads}, {kernel.name}_run}}"


def needs(names: Iterable[str], macro: str) -> str:
    """Returns the C expression of instruction sets (keys in BITS): ``TUNER_AVX2 | TUNER_AVX512``, or "0".

    ``macro``: begins the names of the C constants, such as "TUNER".
    """
    return " | ".join(f"{macro}_{FLAGS[name]}" for name in names) or "0"


def gpu_provenance(kernel: GpuKernel) -> str:
    """Returns the text of a comment on a GPU kernel's origin: sizes, chip, time, baseline, trial."""
    entry = kernel.entry
    return ", ".join(
        filter(None, (entry.problem.shape, entry.machine.chip, *times(entry), f"trial {entry.trial}"))
    )


def provenance(kernel: CpuKernel | PackedKernel) -> str:
    """Returns the text of a comment on a kernel's origin: sizes, threads, time, instruction sets, trial."""
    entry = kernel.entry
    count = kernel.threads
    parts = [
        entry.problem.shape,
        f"{count} threads" if count > 1 else "",
        *times(kernel.entry),
        " ".join(entry.problem.memory_options),
        " ".join(kernel.target.needs),
        f"trial {entry.trial}",
    ]
    return ", ".join(filter(None, parts))


def times(entry: LibraryEntry) -> tuple[str, ...]:
    """Returns texts: (median time with its reliability, ratio to the baseline), or ("verified, not timed",).

    In place of the ratio stands the baseline with the reason if noise does not separate the two times, and ""
    if the two cannot be compared for another reason.
    """
    if entry.median_s is None:
        return ("verified, not timed",)
    compared = entry.compared
    ratio = f"{compared.times_text} {entry.baseline}" if isinstance(compared, Comparable) else ""
    if isinstance(compared, NotComparable) and compared.is_equal:
        ratio = f"{entry.baseline}: {compared.reason}"
    return (f"{seconds_text(entry.median_s)} ({entry.reliability.text})", ratio)


def epilogue_lines(
    problem: Problem, c_type: str, as_type: dict[str, str], row: str = "i", before: str = ""
) -> str:
    """Returns the C declarations that compute a problem's epilogue of element (row, j).

    ``c_type``: type of the steps. ``as_type``: MLIR element type -> C expression that converts an element
    ``{}`` of that type to ``c_type``. ``row``: C expression of the row. ``before``: C expression of what C
    held, "": c[i * n + j].
    """
    indices = {"n": "j", "mn": f"{row} * n + j", "": "0"}
    epilogue = problem.after_product
    widen = as_type.get(problem.result_dtype, "{}")
    elements = {
        argument.name: widen.format(f"{argument.name}[{indices[argument.axes]}]")
        for argument in epilogue.arguments
    }
    elements[BEFORE] = before or widen.format("c[i * n + j]")
    return indent("\n".join([*epilogue.c_lines(c_type, elements), ""]), "        ")


def finished_lines(kernel: PackedKernel) -> str:
    """Returns the C declarations that compute the epilogue of element (i, j) of a product by a constant B."""
    problem = kernel.problem
    n = problem.sizes[1]
    indices = {"n": "j", "mn": f"(i * {n} + j)", "": "0"}
    starts = dict(kernel.operands)
    elements = {}
    for argument in problem.after_product.arguments:
        start = f"(const unsigned char *)({starts[argument.name]})"
        element = f"{start} + {indices[argument.axes]} * {problem.output_bytes}"
        number = f"number_of({element}, {problem.result_dtype.upper()})"
        elements[argument.name] = f"({kernel.step_type}){number}"
    elements[BEFORE] = f"({kernel.step_type})number_of(held, {problem.result_dtype.upper()})"
    lines = problem.after_product.c_lines(kernel.step_type, elements)
    return indent("\n".join([*lines, ""]), "  ")


def gpu_parameters(function: CFunction) -> str:
    """Returns the C parameters of a GPU function: device addresses of its arrays, sizes, and the stream."""
    addresses = function.names
    sizes = filter(None, (function.counted, "m", "n", "k"))
    types = (*(f"uint64_t {address}" for address in addresses), *(f"int64_t {size}" for size in sizes))
    return ", ".join((*types, "void *stream"))


def comment(text: str) -> str:
    """Returns a text as one line of printable characters that cannot end a C comment."""
    return printable(" ".join(text.split())).replace("*/", "* /").replace("/*", "/ *")


def cpu_files(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[LibraryFile, ...]:
    """Returns the header, C source, object file and check.c of CPU entries; ``prefix`` begins C names.

    Raises TunerError for an entry that does not compile, or whose packing C code does not know; UsageError
    for entries of several architectures.
    """
    packed = compile_packed(tuple(entry for entry in entries if entry.problem.weights), prefix)
    kernels = compile_kernels(tuple(entry for entry in entries if not entry.problem.weights), prefix)
    # Of kernels that a processor can run, C code takes the first: later instruction sets come first.
    kernels = tuple(sorted(kernels, key=lambda kernel: -kernel.target.bits))
    functions = tuple(sorted({kernel.function for kernel in kernels}, key=lambda function: function.name))
    both: tuple[CpuKernel | PackedKernel, ...] = (*kernels, *packed)
    architecture = _architecture_of(both)
    flags = tuple(BITS[architecture.name].values())
    ranges = covered_ranges(kernels)
    symbols = ((share.symbol, len(share.offsets)) for kernel in kernels for share in kernel.shares)
    values = {
        "prefix": prefix,
        "macro": prefix.upper(),
        "version": __version__,
        "kernels": kernels,
        "functions": functions,
        "ranges": ranges,
        "ranged": set(map(attrgetter("function"), ranges)),
        "packed": packed,
        "nibble_rows": NIBBLE_ROWS,
        "architecture": architecture,
        "bits": flags,
        "comments": dict.fromkeys(flags, "") | FLAG_COMMENTS,
        "machines": tuple(sorted({entry.machine.name for entry in entries})),
        "alignments": _alignments(entries),
        "symbols": tuple(dict.fromkeys(symbols)),
        "operand_counts": tuple(sorted({len(function.names) for function in functions})),
        "calls_functions": any(entry.problem.after_product.calls_functions for entry in entries),
        "smallest": tuple(_smallest(kernels, function) for function in functions),
        "threads": max(kernel.threads for kernel in both),
        "amx": any({AMX_BF16, AMX_INT8} & set(kernel.target.needs) for kernel in both),
        "bit_types": _bit_types(entries),
        "bit_outputs": {entry.problem.result_dtype for entry in entries} & set(TO_BITS),
    }
    return (
        LibraryFile(f"{prefix}_matmul.h", rendered("matmul.h", **values)),
        LibraryFile(f"{prefix}_matmul.c", rendered("matmul.c", **values)),
        LibraryFile(f"{prefix}_kernels.o", object_file(both, architecture)),
        LibraryFile("check.c", rendered("check.c", **values)),
    )


def _architecture_of(kernels: tuple[CpuKernel | PackedKernel, ...]) -> Architecture:
    architecture = kernels[0].target.level.architecture
    for kernel in kernels:
        other = kernel.target.level.architecture
        if other is not architecture:
            names = f"{architecture.name} and {other.name}"
            raise UsageError(
                f"export: a C library is of one architecture, found problems of {names}", "--machine NAME"
            )
    return architecture


def _smallest(kernels: tuple[CpuKernel, ...], function: CFunction) -> CpuKernel:
    of_function = (kernel for kernel in kernels if kernel.function == function)
    return min(of_function, key=lambda kernel: kernel.entry.problem.flop)


def _bit_types(entries: tuple[LibraryEntry, ...]) -> tuple[str, ...]:
    """Returns the types of A, B and C that C does not have, such as "bf16": C code holds their bits."""
    used = set[str]()
    for entry in entries:
        used |= {entry.problem.stored_dtype, entry.problem.result_dtype}
    return tuple(type_ for type_ in FROM_BITS if type_ in used)


def object_file(kernels: tuple[CpuKernel | PackedKernel, ...], architecture: Architecture) -> bytes:
    """Returns kernels as one position-independent object file with hidden symbols.

    Raises CandidateError(LOAD) if LLVM rejects the joined module; UsageError for another architecture than
    this machine's without LLVM's tools.
    """
    module = joined(kernel.module for kernel in kernels)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.o"
        write_object(module, file, is_position_independent=True, architecture=architecture)
        return with_hidden_symbols(file.read_bytes())


def _alignments(entries: tuple[LibraryEntry, ...]) -> str:
    alignments = sorted({entry.problem.align for entry in entries})
    names = [f"{align} bytes" if align.isdigit() else "one element" for align in alignments]
    return comment(f"Kernels were timed with operands at multiples of {' or '.join(names)}.")


def gpu_files(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[LibraryFile, ...]:
    """Returns the header and C source of GPU entries, with their code; ``prefix`` begins C names.

    Entries without code are compiled. Raises TunerError for one that does not compile.
    """
    images: dict[GpuImage, int] = {}
    kernels: dict[tuple[object, ...], GpuKernel] = {}
    for entry in sorted(entries, key=_rank):
        program = entry.program or _compiled(entry)
        image = images.setdefault(image_of(program), len(images))
        kernel = gpu_kernel(entry, program, prefix, image)
        kernels.setdefault((kernel.function, entry.problem.extents, entry.machine.chip), kernel)
    listed = tuple(sorted(kernels.values(), key=lambda kernel: kernel.function.name))
    of_kernels = [kernel.function for kernel in listed]
    used = tuple(dict.fromkeys(of_kernels))
    buffers = list[GpuBuffer]()
    launches = list[GpuLaunch]()
    for kernel in listed:
        buffers += kernel.buffers
        launches += kernel.launches
    values = {
        "prefix": prefix,
        "macro": prefix.upper(),
        "version": __version__,
        "kernels": listed,
        "images": tuple(images),
        "functions": used,
        "spans": {  # index of a function's first kernel, and how many it has
            function.name: (of_kernels.index(function), of_kernels.count(function)) for function in used
        },
        "is_untimed": any(kernel.entry.median_s is None for kernel in listed),
        "is_all_untimed": all(kernel.entry.median_s is None for kernel in listed),
        "has_scratch": any(buffer.operand == SCRATCH for buffer in buffers),
        "has_zeroed": any(buffer.is_zeroed for buffer in buffers),
        "has_maps": any(kernel.maps for kernel in listed),
        "most_buffers": max(len(kernel.buffers) for kernel in listed),
        "most_launches": max(len(kernel.launches) for kernel in listed),
        "most_arguments": max(len(launch.arguments) for launch in launches),
    }
    return (
        LibraryFile(f"{prefix}_matmul_gpu.h", rendered("matmul_gpu.h", **values)),
        LibraryFile(f"{prefix}_matmul_gpu.c", rendered("matmul_gpu.c", **values)),
    )


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    chip = chip_of(entry.machine.chip)
    time_s = math.inf if entry.median_s is None else entry.median_s
    return (-chip.capability, not chip.is_specific, entry.problem.key, time_s, entry.trial)


def _compiled(entry: LibraryEntry) -> KernelCode:
    try:
        chip = chip_of(entry.machine.chip)
        return device_compiler().kernel(entry.problem, Script.of(entry.script), chip)
    except CandidateError as error:
        raise TunerError(f"trial {entry.trial}: {entry.problem.key}: {error}") from error


def require_prefix(prefix: str) -> None:
    """Raises UsageError for a prefix that cannot begin C and C++ names or is reserved; hints at another."""
    if not PREFIX.fullmatch(prefix):
        usable = re.sub(r"[^a-z0-9_]+", "_", prefix.lower()).lstrip("_0123456789")[:31]
        raise UsageError(
            f"--prefix: found {prefix!r}, allowed a lower-case letter, then up to 30 of a-z, 0-9 and _",
            f"--prefix {usable or DEFAULT_PREFIX}",
        )
    if prefix in RESERVED:
        raise UsageError(f"--prefix: {prefix!r} is a reserved word of C or C++", f"--prefix {prefix}_kernels")


def c_files(entries: tuple[LibraryEntry, ...], prefix: str = DEFAULT_PREFIX) -> tuple[LibraryFile, ...]:
    """Returns the files of a C library: headers, sources, CMakeLists.txt; for CPUs also object, check.c.

    Raises UsageError for an unusable prefix and for CPU entries of several architectures, TunerError for an
    entry that does not compile.
    """
    require_prefix(prefix)
    on_gpu = tuple(entry for entry in entries if entry.machine.chip)
    on_cpu = tuple(entry for entry in entries if not entry.machine.chip)
    files: tuple[LibraryFile, ...] = ()
    if on_cpu:
        files += cpu_files(on_cpu, prefix)
    if on_gpu:
        files += gpu_files(on_gpu, prefix)
    example = rendered("CMakeLists.txt", prefix=prefix, has_cpu=bool(on_cpu), has_gpu=bool(on_gpu))
    return (*files, LibraryFile("CMakeLists.txt", example))


# Hides the symbols of an object file from programs that load a shared object made of it.
#
# The JIT adds a wrapper ``_mlir_<name>`` to each function. Hidden, neither the wrappers nor the kernels are
# part of the interface of a shared object; code that is linked with them still finds them. Format: System V
# ABI, ELF-64.


def with_hidden_symbols(code: bytes) -> bytes:
    """Returns an ELF object file whose defined global symbols have the visibility "hidden".

    Raises ValueError if ``code`` is not ELF-64 in little-endian order.
    """
    if not code.startswith(ELF_64_LITTLE):
        raise ValueError("no ELF-64 object file in little-endian order")
    changed = bytearray(code)
    (first,) = struct.unpack_from("<Q", code, SECTION_TABLE_AT)
    (count,) = struct.unpack_from("<H", code, SECTION_COUNT_AT)
    for index in range(count):
        _, type_, _, _, start, size, *_ = SECTION.unpack_from(code, first + index * SECTION.size)
        for at in range(start, start + size, SYMBOL.size) if type_ == SYMBOL_TABLE else ():
            _, info, _, section, _, _ = SYMBOL.unpack_from(code, at)
            if info >> 4 != LOCAL and section != UNDEFINED:
                changed[at + OTHER_AT] = HIDDEN
    return bytes(changed)
