"""The files of a C library for CPUs: header, object file, C source, check."""

import tempfile
from pathlib import Path

from tuner.core.instruction_sets import AMX_BF16, AMX_INT8
from tuner.core.version import __version__
from tuner.library.c.c_text import comment, rendered
from tuner.library.c.code_target import BITS
from tuner.library.c.cpu_kernels import CpuKernel, compile_kernels
from tuner.library.c.functions import CFunction
from tuner.library.c.hidden_symbols import with_hidden_symbols
from tuner.library.entry import LibraryEntry, LibraryFile
from tuner.mlir.cpu.joined_modules import joined
from tuner.targets.cpu.object_code import write_object

LEVELS = {"AVX2": "x86-64-v3", "AVX512": "x86-64-v4"}  # bit -> all that it stands for


def cpu_files(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[LibraryFile, ...]:
    """Returns the files of a library of entries of CPUs, at least one.

    ``prefix`` begins each name of C. Raises TunerError for an entry that does not compile.
    """
    kernels = compile_kernels(entries, prefix)
    # Of kernels that a processor can run, C code takes the first: later instruction sets come first.
    kernels = tuple(sorted(kernels, key=lambda each: -each.target.bits))
    functions = tuple(sorted({each.function for each in kernels}, key=lambda each: each.name))
    values = {
        "prefix": prefix,
        "macro": prefix.upper(),
        "version": __version__,
        "kernels": kernels,
        "functions": functions,
        "bits": tuple(BITS.values()),
        "comments": LEVELS | dict.fromkeys(set(BITS.values()) - set(LEVELS), ""),
        "machines": tuple(sorted({each.entry.machine.name for each in kernels})),
        "alignments": _alignments(kernels),
        "symbols": _symbols(kernels),
        "smallest": tuple(_smallest(kernels, function) for function in functions),
        "threads": max(len(each.shares) for each in kernels),
        "amx": any({AMX_BF16, AMX_INT8} & set(each.target.needs) for each in kernels),
        "bf16": any("bf16" in (each.kind.dtype, each.kind.result_dtype) for each in functions),
        "bf16_output": any(each.kind.result_dtype == "bf16" for each in functions),
    }
    return (
        LibraryFile(f"{prefix}_matmul.h", rendered("matmul.h", **values)),
        LibraryFile(f"{prefix}_matmul.c", rendered("matmul.c", **values)),
        LibraryFile(f"{prefix}_kernels.o", object_file(kernels)),
        LibraryFile("check.c", rendered("check.c", **values)),
    )


def object_file(kernels: tuple[CpuKernel, ...]) -> bytes:
    """Returns the position-independent object file of kernels, whose symbols a shared object does not export.

    Raises CandidateError(LOAD) where LLVM cannot compile the code.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.o"
        write_object(joined(each.module for each in kernels), file, is_position_independent=True)
        return with_hidden_symbols(file.read_bytes())


def _symbols(kernels: tuple[CpuKernel, ...]) -> tuple[tuple[str, bool], ...]:
    """Returns the functions of the object file: (symbol, takes a bias)."""
    pairs = ((share.symbol, each.function.has_bias) for each in kernels for share in each.shares)
    return tuple(dict.fromkeys(pairs))


def _smallest(kernels: tuple[CpuKernel, ...], function: CFunction) -> CpuKernel:
    return min(
        (each for each in kernels if each.function == function), key=lambda each: each.entry.problem.flop
    )


def _alignments(kernels: tuple[CpuKernel, ...]) -> str:
    """Returns a sentence on the alignment of operands that the kernels were timed with."""
    found = sorted({each.entry.problem.align for each in kernels})
    names = [f"{each} bytes" if each.isdigit() else "one element" for each in found]
    return comment(f"Kernels were timed with operands at multiples of {' or '.join(names)}.")
