"""The files of a C library for GPUs: header, and a C source with the kernels' code and their launches."""

import math

from tuner.core.chips import chip_of
from tuner.core.errors import CandidateError, TunerError
from tuner.core.kernel_program import KernelProgram
from tuner.core.target import Script
from tuner.core.version import __version__
from tuner.library.c.c_text import rendered
from tuner.library.c.functions import CFunction
from tuner.library.c.gpu_kernels import GpuImage, GpuKernel, gpu_kernel, image_of
from tuner.library.entry import LibraryEntry, LibraryFile
from tuner.targets.gpu.compiler import GpuCompiler


def gpu_files(entries: tuple[LibraryEntry, ...], prefix: str) -> tuple[LibraryFile, ...]:
    """Returns the files of a library of entries of GPUs, at least one.

    ``prefix`` begins each name of C. An entry without a program is compiled. Raises TunerError for an entry
    that does not compile.
    """
    images: dict[GpuImage, int] = {}
    kernels: dict[tuple[object, ...], GpuKernel] = {}
    for entry in sorted(entries, key=_rank):
        program = entry.program or _compiled(entry)
        number = images.setdefault(image_of(program), len(images))
        kernel = gpu_kernel(entry, program, prefix, number)
        kernels.setdefault((kernel.function, entry.problem.extents, entry.machine.chip), kernel)
    listed = tuple(sorted(kernels.values(), key=lambda each: each.function.name))
    used = tuple(dict.fromkeys(each.function for each in listed))
    values = {
        "prefix": prefix,
        "macro": prefix.upper(),
        "version": __version__,
        "kernels": listed,
        "images": tuple(images),
        "functions": used,
        "spans": {each.name: _span(listed, each) for each in used},
        "is_untimed": any(each.entry.median_s is None for each in listed),
        "is_all_untimed": all(each.entry.median_s is None for each in listed),
        "has_scratch": any(buffer.kind == "SCRATCH" for each in listed for buffer in each.buffers),
        "has_zeroed": any(buffer.is_zeroed for each in listed for buffer in each.buffers),
        "has_maps": any(each.maps for each in listed),
        "most_buffers": max(len(each.buffers) for each in listed),
        "most_launches": max(len(each.launches) for each in listed),
        "most_arguments": max(len(launch.arguments) for each in listed for launch in each.launches),
    }
    return (
        LibraryFile(f"{prefix}_matmul_gpu.h", rendered("matmul_gpu.h", **values)),
        LibraryFile(f"{prefix}_matmul_gpu.c", rendered("matmul_gpu.c", **values)),
    )


def _rank(entry: LibraryEntry) -> tuple[object, ...]:
    """Returns a sort key: code for later chips, and for one chip alone, comes first; then faster kernels."""
    chip = chip_of(entry.machine.chip)
    time_s = math.inf if entry.median_s is None else entry.median_s
    return (-chip.capability, not chip.is_specific, entry.problem.key, time_s, entry.trial)


def _span(kernels: tuple[GpuKernel, ...], function: CFunction) -> tuple[int, int]:
    """Returns the number of a function's first kernel, and how many it has."""
    numbers = [number for number, each in enumerate(kernels) if each.function == function]
    return numbers[0], len(numbers)


def _compiled(entry: LibraryEntry) -> KernelProgram:
    try:
        artifact = GpuCompiler(chip_of(entry.machine.chip)).compile(entry.problem, Script.of(entry.script))
    except CandidateError as error:
        raise TunerError(f"trial {entry.trial}: {entry.problem.key}: {error}") from error
    assert artifact.program is not None  # of a GPU compiler
    return artifact.program
