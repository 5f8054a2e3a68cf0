"""The names of the formats of ``tuner export``, and of the MLIR versions that libraries are written for."""

from collections.abc import Mapping
from typing import Final

from tuner.runtime.extensions import Extension, extensions

GROUP: Final = "formats"  # of entry points
# Formats of one trial, which the command itself writes; DATA_FORMATS are documents about a trial.
DATA_FORMATS: Final = ("json", "provenance")
TRIAL_FORMATS: Final = ("script", "provenance", "source", "payload", "ptx", "cubin", "json")
# MLIR versions that a library is written for: dialects that were renamed between them.
MLIR_22, MLIR_23 = VERSIONS = ("mlir-22", "mlir-23")


def library_formats() -> Mapping[str, Extension]:
    """Returns the formats of several problems: name -> the class to import. Imports none of them."""
    return extensions(GROUP, TRIAL_FORMATS)
