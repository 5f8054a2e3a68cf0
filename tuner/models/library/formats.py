"""Formats of several problems that ``tuner export --format`` writes; distributions add others."""

from abc import ABC, abstractmethod
from typing import final

from tuner.models.library.entries import LibraryEntry, LibraryFile
from tuner.models.library.format_names import GROUP, TRIAL_FORMATS
from tuner.models.library.library import write_library
from tuner.runtime.extensions import load


class ExportFormat(ABC):
    """A format of ``tuner export --format``.

    An entry point ``tuner.formats`` names the class, which is made without arguments.
    """

    is_stock = False  # other compilers read the files: entries have scripts without tuner's own transform ops
    takes_gpu_entries = False  # also kernels of GPUs
    packs_weights = False  # entries may have packed weights: the files hold the code that packs them
    takes_prefix = False  # of the names in the files: --prefix

    @abstractmethod
    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        """Returns the files of a library of ``entries``; their names are within the folder of ``--output``.

        ``prefix``: of ``--prefix``, which begins the names in the files; None unless typed, which
        ``takes_prefix`` allows. Raises UsageError for entries that the format cannot have, TunerError where
        making the files fails.
        """


@final
class LibraryFormat(ExportFormat):
    """``--format library``: one MLIR file of transform schedules, with a matcher per entry."""

    is_stock = True

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        return write_library(entries)


@final
class CFormat(ExportFormat):
    """``--format c``: a C library, with a header, sources, kernels and a check."""

    takes_gpu_entries = True
    packs_weights = True
    takes_prefix = True

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        from tuner.models.library.c.writer import c_files  # loads Jinja

        if prefix is None:
            return c_files(entries)
        return c_files(entries, prefix=prefix)


@final
class IreeFormat(ExportFormat):
    """``--format iree``: a tuning spec that IREE's compiler reads."""

    def files(self, entries: tuple[LibraryEntry, ...], prefix: str | None) -> tuple[LibraryFile, ...]:
        from tuner.models.library.iree.writer import iree_files  # loads ml_dtypes

        return iree_files(entries)


def library_format(name: str) -> ExportFormat:
    """Imports and makes the format ``name``. Raises UsageError if no installed distribution has it."""
    made: ExportFormat = load(GROUP, name, TRIAL_FORMATS)()
    return made
