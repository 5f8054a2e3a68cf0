"""The ports by which ``tuner tune`` tunes the operations of extensions, and whole programs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tuner.core.errors import Refusal
from tuner.core.problem import OPERATIONS, NamedProblem
from tuner.runtime.extensions import extensions, load

if TYPE_CHECKING:
    from tuner.cli.forms import ResultOptions
    from tuner.cli.tune_forms import OperationForm, ProgramForm
    from tuner.core.programs import ProgramSource
    from tuner.db.store import Store
    from tuner.targets.backends import Backends
    from tuner.tuning.tuned_run import TunedCampaign

GROUP: Final = "operations"  # of entry points
PROGRAM: Final = "program"  # name of the entry point for files of MLIR and models in place of an operation


class TunedOperation(Protocol):
    """A port: the object that an extension adds to the entry points ``tuner.operations``, by operation."""

    def tune(self, form: "OperationForm", backends: "Backends") -> int:
        """Tunes the problem of ``tuner tune NAME SHAPE``, prints the result, returns the exit code.

        Raises UsageError for options that the operation does not have, or a problem that cannot be tuned.
        """


class ProgramOperation(Protocol):
    """A port: the object of the entry point PROGRAM of ``tuner.operations``, which tunes whole programs."""

    def tune(self, form: "ProgramForm", backends: "Backends") -> int:
        """Tunes the program of ``tuner tune FILE``, prints the result, returns the exit code.

        Raises UsageError for a file that cannot be read, or options that do not apply.
        """

    def contractions(self, file: Path) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
        """Returns the contractions of a file's program, and a line for each one that is left out.

        Raises UsageError for a file that cannot be read.
        """

    def resume(
        self,
        tuned: "TunedCampaign",
        source: "ProgramSource",
        backends: "Backends",
        store: "Store",
        result: "ResultOptions",
    ) -> int | Refusal:
        """Compiles, times and prints the program of a resumed campaign.

        Returns the exit code, or why the program cannot be compiled as it was: nothing is printed then.
        """


def added_operations() -> Mapping[str, object]:
    """Returns name -> extension of the operations that extensions add to those of ``tuner.core``.

    Imports none.
    """
    added = extensions(GROUP, OPERATIONS)
    return {name: extension for name, extension in added.items() if name != PROGRAM}


def operation_of(name: str) -> TunedOperation:
    """Imports and returns the operation ``name`` of an extension. Raises UsageError if there is none."""
    operation: TunedOperation = load(GROUP, name, OPERATIONS)
    return operation


def programs() -> ProgramOperation:
    """Imports and returns the extension that tunes whole programs.

    Raises UsageError if it is not installed.
    """
    operation: ProgramOperation = load(GROUP, PROGRAM, OPERATIONS)
    return operation
