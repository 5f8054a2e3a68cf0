"""Formats of several problems that ``tuner export --format`` writes; distributions add others."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, final

from tuner.library.entries import LibraryEntry, LibraryFile
from tuner.library.library import lighthouse_files, write_library
from tuner.runtime.extensions import Extension, extensions, load

GROUP: Final = "formats"  # of entry points
# Formats of one trial, by the command itself; documents about a trial, and what is made from its script.
DATA_FORMATS: Final = ("json", "t4", "provenance")
TRIAL_FORMATS: Final = ("script", "provenance", "source", "payload", "ptx", "cubin", "json", "t4")


class ExportFormat(ABC):
    """A format of the entry points ``tuner.formats``: the class itself, which is made without arguments."""

    is_stock = False  # other compilers read the files: entries have scripts without tuner's own transform ops
    takes_gpu_entries = False  # also kernels of GPUs
    packs_weights = False  # the files hold quantized weights, and the code that packs these
    takes_prefix = False  # of the names in the files: --prefix

    @abstractmethod
    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        """Returns the files of tuned problems, named within the folder of ``--output``.

        ``prefix``: of the names in them, None unless it is given, which ``takes_prefix`` allows. Raises
        UsageError for entries that the format cannot have, TunerError where making the files fails.
        """


@final
class LibraryFormat(ExportFormat):
    """One MLIR library of transform schedules."""

    is_stock = True

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        return write_library(entries)


@final
class LighthouseFormat(ExportFormat):
    """The library, with lighthouse's descriptors and tiles."""

    is_stock = True

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        return lighthouse_files(entries)


@final
class CFormat(ExportFormat):
    """Functions of C, and a header."""

    takes_gpu_entries = True
    packs_weights = True
    takes_prefix = True

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        from tuner.library.c.writer import c_files  # loads Jinja

        if prefix is None:
            return c_files(entries)
        return c_files(entries, prefix=prefix)


@final
class IreeFormat(ExportFormat):
    """A tuning spec of IREE."""

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        from tuner.library.iree.writer import iree_files  # loads ml_dtypes

        return iree_files(entries)


def library_formats() -> Mapping[str, Extension]:
    """Returns the formats of several problems, by name; imports none."""
    return extensions(GROUP, TRIAL_FORMATS)


def library_format(name: str) -> ExportFormat:
    """Imports and returns the format with this name. Raises UsageError for an unknown one."""
    made: ExportFormat = load(GROUP, name, TRIAL_FORMATS)()
    return made
