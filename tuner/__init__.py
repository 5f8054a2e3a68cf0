"""Autotunes MLIR transform-dialect strategies: generate, compile, verify, time, remember."""

import importlib
from typing import TYPE_CHECKING, Any

from tuner.runtime import process_state  # noqa: F401 - from now on a fork waits for imports
from tuner.version import __version__

__all__ = [
    "BatchMatmul",
    "CandidateError",
    "DeviceError",
    "GroupedMatmul",
    "Matmul",
    "RowRange",
    "UsageError",
    "__version__",
    "c_library",
    "compile_program",
    "export",
    "history",
    "load",
    "load_best",
    "load_range",
    "matmul",
    "portfolio",
    "progress",
    "read_quantized",
    "report",
    "resume",
    "resume_many",
    "runs",
    "tune",
    "tune_many",
]

MODULES = {  # public name -> the module that has it
    **dict.fromkeys(("Matmul", "BatchMatmul", "GroupedMatmul"), "tuner.core.matmul"),
    **dict.fromkeys(("UsageError", "CandidateError", "DeviceError"), "tuner.core.errors"),
    **dict.fromkeys(("tune", "tune_many", "resume", "resume_many"), "tuner.api.tuning"),
    **dict.fromkeys(("history", "runs", "export"), "tuner.api.results"),
    **dict.fromkeys(("load_best", "load_range", "portfolio"), "tuner.api.results"),
    "RowRange": "tuner.analysis.row_ranges",
    "progress": "tuner.results.output.progress",
    "report": "tuner.results.report.page",
    "matmul": "tuner.models.library.dispatch.matmul",
    "c_library": "tuner.models.c_library",
    "compile_program": "tuner.models.compile",
    "read_quantized": "tuner.models.quantized.quantized_files",
    "load": "tuner.models.run.loading",  # of an exported program: loads no compiler
}

if TYPE_CHECKING:
    from tuner.analysis.row_ranges import RowRange
    from tuner.api.results import export, history, load_best, load_range, portfolio, runs
    from tuner.api.tuning import resume, resume_many, tune, tune_many
    from tuner.core.errors import CandidateError, DeviceError, UsageError
    from tuner.core.matmul import BatchMatmul, GroupedMatmul, Matmul
    from tuner.models.c_library import c_library
    from tuner.models.compile import compile_program
    from tuner.models.library.dispatch.matmul import matmul
    from tuner.models.quantized.quantized_files import read_quantized
    from tuner.models.run.loading import load
    from tuner.results.output.progress import progress
    from tuner.results.report.page import report


def __dir__() -> list[str]:
    """Returns the public names: those imported on first use are found by tab completion as well."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Returns a public object by name; its module is imported on first use (PEP 562)."""
    if name not in MODULES:
        raise AttributeError(f"module 'tuner' has no attribute {name!r}")
    # a global from now on: Python finds it without calling this function
    globals()[name] = value = getattr(importlib.import_module(MODULES[name]), name)
    return value
