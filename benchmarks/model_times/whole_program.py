"""A program compiled as a whole: scripts of single matmuls, scalar loops for all else; no fusions."""

from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.models.run.host_function import HostFunction


def whole_program(text: str) -> HostFunction:
    """Compiles payload text for this processor without fusions; each matmul has its default script.

    Raises CandidateError for a payload that cannot be lowered.
    """
    return HostFunction(compiler_of(TargetName("cpu")).compile(text).code)
