"""The formats that several entries can be exported in."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuner.library.entry import LibraryEntry, LibraryFile

# A function from entries to files; raises UsageError and TunerError.
Writer = Callable[[tuple["LibraryEntry", ...]], tuple["LibraryFile", ...]]


def _library() -> Writer:
    from tuner.library.library_format import write_library

    return write_library


def _c() -> Writer:
    from tuner.library.c.writer import c_files

    return c_files


def _iree() -> Writer:
    from tuner.library.iree.writer import iree_files

    return iree_files


def _lighthouse() -> Writer:
    from tuner.library.lighthouse import lighthouse_files

    return lighthouse_files


# Name of a format -> a function that returns its writer, so that only the chosen one is imported.
FORMATS: Mapping[str, Callable[[], Writer]] = {
    "library": _library,
    "c": _c,
    "iree": _iree,
    "lighthouse": _lighthouse,
}
# Formats whose files other compilers read: entries have scripts without tuner's own transform ops.
STOCK_FORMATS = ("library", "lighthouse")
