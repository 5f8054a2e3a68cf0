"""What ``tuner tune`` does of an operation that an extension adds, and of a program."""

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
    """An object that a distribution adds to the group ``tuner.operations``, with the operation's name."""

    def tune(self, form: "OperationForm", backends: "Backends") -> int:
        """Tunes what ``tuner tune NAME SHAPE`` asks for, prints the result, returns the exit code.

        Raises UsageError.
        """


class ProgramOperation(Protocol):
    """The object that tunes whole programs: the entry point PROGRAM."""

    def tune(self, form: "ProgramForm", backends: "Backends") -> int:
        """Tunes a program, prints the result, returns the exit code. Raises UsageError."""

    def contractions(self, file: Path) -> tuple[tuple[NamedProblem, ...], tuple[str, ...]]:
        """Returns the contractions of a file, and a line for each that was left out. Raises UsageError."""

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
    """Returns the operations that extensions add to those of ``tuner.core``, by name; imports none."""
    added = extensions(GROUP, OPERATIONS)
    return {name: extension for name, extension in added.items() if name != PROGRAM}


def operation_of(name: str) -> TunedOperation:
    """Imports and returns an operation that an extension adds, by name. Raises UsageError if none does."""
    operation: TunedOperation = load(GROUP, name, OPERATIONS)
    return operation


def programs() -> ProgramOperation:
    """Imports and returns what tunes whole programs."""
    operation: ProgramOperation = load(GROUP, PROGRAM, OPERATIONS)
    return operation
