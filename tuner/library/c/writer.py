"""The format "c": entries as a library for C programs, which needs neither Python nor tuner to run."""

import re

from tuner.core.errors import UsageError
from tuner.library.c.c_text import rendered
from tuner.library.c.cpu_files import cpu_files
from tuner.library.c.gpu_files import gpu_files
from tuner.library.entry import LibraryEntry, LibraryFile

DEFAULT_PREFIX = "tuner"
PREFIX = re.compile(r"[a-z][a-z0-9_]{0,30}")


def c_files(entries: tuple[LibraryEntry, ...], prefix: str = DEFAULT_PREFIX) -> tuple[LibraryFile, ...]:
    """Returns the files of a C library: headers, C source, kernels, a check and an example of CMake.

    Args:
        entries: at least one.
        prefix: begins the names of functions, types and files, so that a program can use several libraries.

    Raises UsageError for a prefix that no C name can begin with, TunerError for an entry that does not
    compile.
    """
    if not PREFIX.fullmatch(prefix):
        raise UsageError(
            f"--prefix: found {prefix!r}, allowed a lower-case letter, then up to 30 of a-z, 0-9 and _"
        )
    on_gpu = tuple(entry for entry in entries if entry.machine.chip)
    on_cpu = tuple(entry for entry in entries if not entry.machine.chip)
    files = (
        *(cpu_files(on_cpu, prefix) if on_cpu else ()),
        *(gpu_files(on_gpu, prefix) if on_gpu else ()),
    )
    example = rendered("CMakeLists.txt", prefix=prefix, has_cpu=bool(on_cpu), has_gpu=bool(on_gpu))
    return (*files, LibraryFile("CMakeLists.txt", example))
