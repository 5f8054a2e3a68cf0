"""Autotunes MLIR transform-dialect strategies: generate, compile, verify, time, remember."""

from typing import TYPE_CHECKING, Any

from tuner.runtime import process_locks  # noqa: F401 - from now on a fork waits for imports
from tuner.version import __version__

__all__ = [
    "BatchMatmul",
    "CandidateError",
    "DeviceError",
    "Matmul",
    "UsageError",
    "__version__",
    "compile_program",
    "export",
    "history",
    "load",
    "load_best",
    "matmul",
    "portfolio",
    "progress",
    "report",
    "resume",
    "resume_many",
    "runs",
    "tune",
    "tune_many",
]

OF_API = ("tune", "tune_many", "resume", "resume_many", "history", "runs", "export", "load_best", "portfolio")

if TYPE_CHECKING:
    from tuner.api import (
        export,
        history,
        load_best,
        portfolio,
        resume,
        resume_many,
        runs,
        tune,
        tune_many,
    )
    from tuner.core.errors import CandidateError, UsageError
    from tuner.core.gpu import DeviceError
    from tuner.core.problem import BatchMatmul, Matmul
    from tuner.library.dispatch.matmul import DispatchedMatmul
    from tuner.programs.compile import compile_program
    from tuner.programs.run.fused_program import load
    from tuner.results.output.progress import progress
    from tuner.results.report.page import report

    matmul: DispatchedMatmul


def __dir__() -> list[str]:
    """Returns the public names: those imported on first use are found by tab completion as well."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Imports the API on first use: `import tuner` alone costs nothing (PEP 562)."""
    if name in ("Matmul", "BatchMatmul"):
        from tuner.core import problem

        return getattr(problem, name)
    if name in ("UsageError", "CandidateError"):
        from tuner.core import errors

        return getattr(errors, name)
    if name == "DeviceError":
        from tuner.core.gpu import DeviceError

        return DeviceError
    if name in OF_API:
        from tuner import api

        return getattr(api, name)
    if name == "matmul":
        from tuner import api

        globals()[name] = found = api.dispatched_matmul()  # a call takes no microsecond to find it again
        return found
    if name == "progress":
        from tuner.results.output.progress import progress

        return progress
    if name == "report":
        from tuner.results.report.page import report

        return report
    if name == "compile_program":
        from tuner.programs.compile import compile_program

        return compile_program
    if name == "load":  # of an exported program: loads no compiler
        from tuner.programs.run.fused_program import load

        return load
    raise AttributeError(f"module 'tuner' has no attribute {name!r}")
