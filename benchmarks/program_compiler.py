"""The compiler of whole programs for a target, with the parts that compile for real."""

from tuner.core.target_name import TargetName
from tuner.programs.compiler import ProgramCompiler
from tuner.tuning.parts.real import real_composition


def compiler_of(target: TargetName) -> ProgramCompiler:
    """Returns the compiler for a target. Raises UsageError for one that knows single operations only."""
    return ProgramCompiler.of(target, real_composition())
