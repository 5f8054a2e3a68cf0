"""The compiler of whole programs for a target, with its real parts."""

from tuner.core.candidate import TargetName
from tuner.models.compiler import ProgramCompiler
from tuner.targets.registry import real_backends


def compiler_of(target: TargetName) -> ProgramCompiler:
    """Returns the compiler for a target.

    Raises UsageError for a target that compiles single operations only.
    """
    return ProgramCompiler.of(target, real_backends())
