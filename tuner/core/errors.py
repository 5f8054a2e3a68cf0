"""The exceptions (of the user, the machine, a candidate), and the value that a candidate's failure becomes.

TunerError
├─ UsageError        arguments, files or options of the user are wrong
├─ MachineError      this machine cannot work on: its disk is full; says nothing of a candidate
└─ CandidateError    this candidate failed at a stage; becomes a Failure, never ends a run
"""

import contextlib
import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass


class Stage(enum.Enum):
    """The stages at which a candidate can fail, in the order in which a candidate passes through them."""

    BIND = "bind"  # knobs into the script's text
    COMPILE = "compile"  # transform and lowering
    RESOURCES = "resources"  # fits the machine: registers, shared memory, code size
    LOAD = "load"  # JIT, or module load
    RUN = "run"  # crash, hang, memory limit
    VERIFY = "verify"  # the numbers are wrong
    MEASURE = "measure"  # timing


# Stages whose failures would repeat; a crash or a timeout may have been the machine's fault
REPEATABLE = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES, Stage.VERIFY)

# A candidate that failed at one of these has run: it may have damaged its process's memory or a GPU's context
RAN = (Stage.RUN, Stage.VERIFY, Stage.MEASURE)


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no time."""

    stage: Stage
    reason: str  # one line, to print


class TunerError(Exception):
    """Root of everything this package raises on purpose: one line that says what is wrong, and a way out.

    ``hint`` is what to type, "" where nothing helps; a command in a hint is the hint's end, so that the
    option that names the database can be added.
    """

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message, *([hint] if hint else []))
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Returns the message, and after it the hint."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(TunerError):
    """The user's arguments or files are wrong. One line: what, found, allowed. Exit code 2.

    Args:
        message: one line that says what is wrong.
        hint: what to do or type, printed after the message; "" for none.

    Example:
        >>> import tuner
        >>> try:
        ...     tuner.Matmul(0, 64, 64)
        ... except tuner.UsageError as error:
        ...     print(error)
        size m: found 0, allowed 1..2147483647
    """


class MachineError(TunerError):
    """This machine cannot continue, whatever the candidate: its disk is full."""


class CandidateError(TunerError):
    """A candidate failed at ``stage``; ``reason`` is one line to print."""

    def __init__(self, stage: Stage, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage
        self.reason = reason

    def __reduce__(self) -> tuple[type["CandidateError"], tuple[Stage, str]]:
        """Pickles the exception by its fields, so that it can be sent between processes."""
        return (CandidateError, (self.stage, self.reason))

    @property
    def failure(self) -> Failure:
        """Returns the failure as the value that a record stores."""
        return Failure(self.stage, self.reason)


NEAR = 0.65  # of difflib's ratio: f33 is near f32, sm_75 is not near sm_90


def unknown_value(what: str, found: object, allowed: Collection[str]) -> UsageError:
    """Returns the error of a value that is none of those allowed; its hint names the nearest of them."""
    import difflib

    near = difflib.get_close_matches(str(found), allowed, n=1, cutoff=NEAR)
    listed = ", ".join(allowed) or "none"
    return UsageError(
        f"{what}: found {found!r}, allowed {listed}", *(f"did you mean {each}?" for each in near)
    )


def error_lines(message: str, hint: str = "") -> str:
    """Returns what a command prints of an error: what is wrong, and on a second line the way out."""
    titled = {"error": message, "hint": hint}
    return "\n".join(f"{title}: {' '.join(text.split())}" for title, text in titled.items() if text)


def last_line(printed: str) -> str:
    """Returns the last line that a process printed, leaving out a hint; "it said nothing" for no line."""
    lines = [line for line in printed.strip().splitlines() if not line.startswith("hint: ")]
    return lines[-1] if lines else "it said nothing"


@contextlib.contextmanager
def failing_at(stage: Stage) -> Iterator[None]:
    """Context manager: turns a UsageError into a CandidateError of ``stage``, so that the run goes on."""
    try:
        yield
    except UsageError as error:
        raise CandidateError(stage, str(error)) from error


NO_ATTRIBUTE = "attempt to access a non-existent attribute"  # MLIR's bindings; the name is not in it


def defect_line(error: BaseException) -> str:
    """Returns one line for an exception that was not raised on purpose: its class and message.

    A MemoryError, and a KeyError of an attribute that an operation lacks, become sentences.
    """
    said = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory: {said}" if said else "not enough memory"
    if isinstance(error, KeyError) and NO_ATTRIBUTE in said:
        return "an operation lacks an attribute that its kind needs here: is the transform meant for it?"
    return f"{type(error).__name__}: {said}"
