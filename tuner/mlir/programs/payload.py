"""A user's program after it was read: a module in the current context, and the function to call."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ir.resources import Data
from tuner.mlir.programs.entry import function_named


@dataclass(frozen=True)
class ProgramPayload:
    """A user's program: an MLIR module in the current context, with a function ``entry`` on memrefs."""

    module: ir.Module
    entry: str
    resources: Mapping[str, Data] = field(default_factory=dict)  # data of constants that the module names

    @property
    def function(self) -> Op:
        """Returns the ``func.func`` of the program's entry."""
        return function_named(self.module, self.entry)
