"""The kinds of error, the user's, the machine's and a candidate's, and the value a candidate's becomes.

TunerError
├─ UsageError        words, files or flags of the user are wrong; the message says what, found, allowed
├─ MachineError      this machine cannot work on: its disk is full; says nothing of a candidate
└─ CandidateError    this candidate failed at a stage; becomes a Failure, never ends a run
"""

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Stage(enum.Enum):
    """Where a candidate can fail, in the order it passes them."""

    BIND = "bind"  # knobs into the script's text
    COMPILE = "compile"  # transform and lowering
    RESOURCES = "resources"  # fits the machine: registers, shared memory, code size
    LOAD = "load"  # JIT, or module load
    RUN = "run"  # crash, hang, memory limit
    VERIFY = "verify"  # the numbers are wrong
    MEASURE = "measure"  # timing


# Stages whose failures would repeat; a crash or a time-out may have been the machine's
REPEATABLE = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES, Stage.VERIFY)

# What failed at one of these has run: it may have damaged its process's memory, or taken a GPU's context
RAN = (Stage.RUN, Stage.VERIFY, Stage.MEASURE)


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no time."""

    stage: Stage
    reason: str  # one line, for people


class TunerError(Exception):
    """Root of everything this package raises on purpose.

    ``command`` is what to type, the end of the line: who knows the database adds the flag that names it.
    """

    def __init__(self, line: str = "", command: str = "") -> None:
        super().__init__(line, *([command] if command else []))
        self.command = command

    def __str__(self) -> str:
        """Returns the whole line."""
        return f"{self.args[0]}{self.command}"


class UsageError(TunerError):
    """The user's words or files are wrong. One line: what, found, allowed. Exit code 2."""


class MachineError(TunerError):
    """This machine cannot work on, whatever the candidate: its disk is full."""


class CandidateError(TunerError):
    """A candidate failed at ``stage``; ``reason`` is one line for people."""

    def __init__(self, stage: Stage, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage
        self.reason = reason

    def __reduce__(self) -> tuple[type["CandidateError"], tuple[Stage, str]]:
        """Pickles by its fields: it crosses process borders."""
        return (CandidateError, (self.stage, self.reason))

    @property
    def failure(self) -> Failure:
        """Returns the failure as the value that is stored."""
        return Failure(self.stage, self.reason)


@contextlib.contextmanager
def failing_at(stage: Stage) -> Iterator[None]:
    """Turns a UsageError of what is done within into this candidate's failure: the run goes on."""
    try:
        yield
    except UsageError as error:
        raise CandidateError(stage, str(error)) from error


NO_ATTRIBUTE = "attempt to access a non-existent attribute"  # MLIR's bindings, which do not name it


def defect_line(error: BaseException) -> str:
    """Returns one line for an error that was not raised on purpose: its class and message.

    Memory that ran out, and an attribute that an operation lacks, are said in words.
    """
    said = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory: {said}" if said else "not enough memory"
    if isinstance(error, KeyError) and NO_ATTRIBUTE in said:
        return "an operation lacks an attribute that its kind needs here: is the transform meant for it?"
    return f"{type(error).__name__}: {said}"
