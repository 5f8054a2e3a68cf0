"""The format "c": entries as a library for C programs, which needs neither Python nor tuner to run."""

import re

from tuner.core.errors import UsageError
from tuner.library.c.c_text import rendered
from tuner.library.c.cpu_files import cpu_files
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
    files = cpu_files(entries, prefix)
    example = rendered("CMakeLists.txt", prefix=prefix, has_cpu=True, has_gpu=False)
    return (*files, LibraryFile("CMakeLists.txt", example))
