"""The formats of libraries of exported schedules, each with the function that writes it."""

from collections.abc import Callable, Mapping

from tuner.library.entries import LibraryEntry, LibraryFile
from tuner.library.library import write_library
from tuner.library.lighthouse import lighthouse_files

# A function from entries to files; raises UsageError and TunerError.
Writer = Callable[[tuple[LibraryEntry, ...]], tuple[LibraryFile, ...]]


def _c() -> Writer:
    from tuner.library.c.writer import c_files  # loads Jinja

    return c_files


def _iree() -> Writer:
    from tuner.library.iree.writer import iree_files  # loads ml_dtypes

    return iree_files


# Name of a format -> a function that returns its writer, so that only the chosen one is imported.
FORMATS: Mapping[str, Callable[[], Writer]] = {
    "library": lambda: write_library,
    "c": _c,
    "iree": _iree,
    "lighthouse": lambda: lighthouse_files,
}
# Formats whose files other compilers read: entries have scripts without tuner's own transform ops.
STOCK_FORMATS = ("library", "lighthouse")
