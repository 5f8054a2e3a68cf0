"""Runs pass pipelines; an error of MLIR becomes a CandidateError."""

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.interpreter import first_diagnostic
from tuner.mlir.pass_timing import run_pipeline


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Runs a pass pipeline, given as MLIR's text form, on a module in place.

    Raises CandidateError(COMPILE) with MLIR's first error, also for a pipeline that does not parse.
    """
    try:
        run_pipeline(module, pipeline)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, first_diagnostic(error)) from error
