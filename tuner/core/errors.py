"""The exceptions (of the user, the machine, a candidate), and the value that a candidate's failure becomes.

TunerError
├─ UsageError        arguments, files or options of the user are wrong
├─ MachineError      this machine cannot work on: its disk is full; says nothing of a candidate
├─ DeviceError       a call of the GPU driver failed, or of a simulated GPU
└─ CandidateError    this candidate failed at a stage; becomes a Failure, never ends a run
"""

import contextlib
import enum
import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

DISTRIBUTION = "mlir-tuner"  # no index has it
# Package -> the module that is imported, where the names differ by more than _ and -.
MODULES = {"cuda-bindings": "cuda", "iree-base-compiler": "iree", "nvidia-ml-py": "pynvml", "pyyaml": "yaml"}
# (package and versions, package, extra or None)
REQUIREMENT = re.compile(r"(([\w.-]+)[^;]*)(?:;.*extra == ['\"]([\w-]+)['\"])?")
FOLDER = Path(__file__).parents[2]  # of the clone
EXCEEDED = "exceeded"  # begins the reason of a child process that took too much memory
TIMED_OUT = "timed out after"  # how the reasons of timeouts begin: of a child process, of an assembler
FAULT = "killed by SIGSEGV"  # how the reason begins where a candidate accesses memory that is not its own
NEAR = 0.65  # of difflib's ratio: f33 is near f32, sm_75 is not near sm_90
LISTED = 8  # names in the message for an unknown strategy; of more it gives the number
NEAREST = 3  # names in its hint
REASON_LIMIT = 300  # characters
NO_ATTRIBUTE = "attempt to access a non-existent attribute"  # MLIR's bindings; the name is not in it
SCRIPT = "script"
PAYLOAD = "payload"
# As tuner.mlir.transform writes them.
NAMED = re.compile(r"([\w.]+|an op) at (script|payload):(\d+):(\d+)")
# As MLIR writes a diagnostic: "payload":4:10: failed to legalize operation 'bufferization.to_tensor'
RAW = re.compile(r"\"(script|payload)\":(\d+):(\d+): [^\n:']*'(\w+\.[\w.]+)'")


# After these "the process must be terminated and relaunched": CUDA driver API, CUresult.
STICKY_ERRORS = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        *("ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "ASSERT", "HARDWARE_STACK_ERROR", "ILLEGAL_INSTRUCTION"),
        *("MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED", "TENSOR_MEMORY_LEAK"),
        *("ECC_UNCORRECTABLE", "CONTAINED", "EXTERNAL_DEVICE"),
    )
)


class Stage(enum.Enum):
    """The stages at which a candidate can fail, in the order in which a candidate passes through them."""

    BIND = "bind"  # knobs into the script's text
    COMPILE = "compile"  # transform and lowering
    RESOURCES = "resources"  # fits the machine: registers, shared memory, code size
    LOAD = "load"  # JIT, or module load
    RUN = "run"  # crash, hang, memory limit
    VERIFY = "verify"  # the numbers are wrong
    MEASURE = "measure"  # timing


# Stages whose failures would repeat, unless they are timeouts: a busy machine may have been the cause
REPEATABLE = (Stage.BIND, Stage.COMPILE, Stage.RESOURCES, Stage.VERIFY)

# A candidate that failed at one of these has run: it may have damaged its process's memory or a GPU's context
RAN = (Stage.RUN, Stage.VERIFY, Stage.MEASURE)


@dataclass(frozen=True)
class Failure:
    """Why a candidate failed: the stage, and a reason in one line."""

    stage: Stage
    reason: str  # one line, to print

    @property
    def would_repeat(self) -> bool:
        """Returns whether the same code would fail again, so that it need not be tried again.

        True for the stages BIND, COMPILE, RESOURCES and VERIFY, unless the failure is a timeout.
        """
        return self.stage in REPEATABLE and not self.reason.startswith(TIMED_OUT)

    @property
    def without_numbers(self) -> "Failure":
        """Returns the failure with "#" for each number of its reason, so that alike failures are equal."""
        return Failure(self.stage, re.sub(r"\d+", "#", self.reason))

    @property
    def shows_a_defect(self) -> bool:
        """Returns whether the code is wrong, or faults; a timeout or a lack of memory does not show that."""
        return self.stage is Stage.VERIFY or (self.stage is Stage.RUN and self.reason.startswith(FAULT))


@dataclass(frozen=True)
class Refusal:
    """Why something cannot be made or done, where that is not an error: the caller goes on, or prints it."""

    text: str  # one line or a clause, to print
    hint: str = ""  # what to type; "": nothing helps

    def __str__(self) -> str:
        return self.text


class TunerError(Exception):
    """Base class of the errors that tuner raises on purpose; not raised for defects of tuner.

    ``message`` says in one line what is wrong. ``hint`` says what to do, "" where nothing helps; a command in
    a hint is the hint's end, so that the option that names the database can be added. ``str`` gives the
    message and the hint.
    """

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message, *([hint] if hint else []))  # pickle creates the copy from these args
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if self.hint:
            return f"{self.message}; {self.hint}"
        return self.message


class UsageError(TunerError):
    """The user's arguments or files are wrong. The message says what; a command exits with code 2.

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
    """This machine cannot continue with any candidate, for example because its disk is full."""


class CandidateError(TunerError):
    """A candidate or a program failed at ``stage``; ``reason`` says why in one line. A run goes on after it.

    Args:
        stage: where it failed, such as ``Stage.COMPILE``.
        reason: one line that says why.

    Example:
        >>> import tuner
        >>> payload = "func.func @main(%x: complex<f32>) -> complex<f32> { return %x : complex<f32> }"
        >>> try:
        ...     tuner.compile_program(payload, target="cpu")
        ... except tuner.CandidateError as error:
        ...     print(f"{error.stage.value}: {error.reason}")
        compile: payload: argument: found complex<f32>, allowed memrefs, tensors and numbers
    """

    def __init__(self, stage: Stage, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage
        self.reason = reason

    def __reduce__(self) -> tuple[type["CandidateError"], tuple[Stage, str]]:
        """Pickles the exception by its fields, so that it can be sent between processes."""
        return (type(self), (self.stage, self.reason))

    @property
    def failure(self) -> Failure:
        """Returns stage and reason as the Failure that a record stores."""
        return Failure(self.stage, self.reason)


class GroupMemberError(CandidateError):
    """One of several kernels that are timed together failed; ``index`` is its position among them, from 0.

    It is caught in the process that timed the kernels: other processes receive a Failure at that position.
    """

    def __init__(self, stage: Stage, reason: str, index: int) -> None:
        super().__init__(stage, reason)
        self.index = index

    def __reduce__(self) -> tuple[type["GroupMemberError"], tuple[Stage, str, int]]:  # type: ignore[override]
        """Pickles the exception by its fields."""
        return (type(self), (self.stage, self.reason, self.index))


class DeviceError(TunerError):
    """A call of the GPU driver failed, or no GPU can do what was asked; a simulated GPU raises it, too.

    Args:
        message: what failed.
        error_name: the driver's name of the error, such as "CUDA_ERROR_ILLEGAL_ADDRESS"; "" if it named none.

    Example:
        >>> import tuner
        >>> payload = "func.func @twice(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }"
        >>> program = tuner.compile_program(payload, target="simulator")
        >>> try:
        ...     program(1.0, stream=7)
        ... except tuner.DeviceError as error:
        ...     print(error.error_name)
        CUDA_ERROR_INVALID_HANDLE
    """

    def __init__(self, message: str, error_name: str = "") -> None:
        super().__init__(message)
        self.error_name = error_name

    def __reduce__(self) -> tuple[type["DeviceError"], tuple[str, str]]:
        """Pickles the exception by its fields, so that it can be sent between processes."""
        return (DeviceError, (str(self), self.error_name))

    @property
    def is_sticky(self) -> bool:
        """Returns whether every later GPU call of this process will fail too, as after an illegal address."""
        return self.error_name in STICKY_ERRORS


@contextlib.contextmanager
def failing_as_member(index: int) -> Iterator[None]:
    """Context manager: turns a CandidateError raised inside into a GroupMemberError for kernel ``index``."""
    try:
        yield
    except CandidateError as error:
        raise GroupMemberError(error.stage, error.reason, index) from error


class IndexOutOfRange(CandidateError, IndexError):  # noqa: N818 - named as what happened
    """An index that a program reads as data, such as that of a gather, is outside of the indexed tensor."""


def unknown_value(what: str, found: object, allowed: Collection[str]) -> UsageError:
    """Returns the UsageError for ``found``, not in ``allowed``; its hint names the nearest allowed value."""
    near = nearest(str(found), allowed)
    listed = ", ".join(allowed) or "none"
    return UsageError(f"{what}: found {found!r}, allowed {listed}", f"did you mean {near}?" if near else "")


def unknown_strategy(what: str, found: str, names: Collection[str], also: str = "") -> UsageError:
    """Returns the UsageError for an unknown strategy; its hint has the three names that are most like it.

    ``also``: what is allowed besides names, such as "or the path of a .mlir script".
    """
    listed = ", ".join(names) if len(names) <= LISTED else f"one of {len(names)} names"
    comma = ", " if also else ""
    likely = near_names(found, names)
    hint = f"did you mean {', '.join(likely[:-1])} or {likely[-1]}?" if len(likely) > 1 else ""
    if len(names) > LISTED:
        hint += " All names: tuner strategies"
    return UsageError(f"{what}: found {found!r}, allowed {listed}{comma}{also}", hint)


def near_names(found: str, names: Collection[str]) -> list[str]:
    """Returns the NEAREST (3) names that are most like ``found``; names that contain it come first."""
    import difflib

    def distance(name: str) -> tuple[bool, float]:
        contains = bool(found) and found.lower() in name
        return not contains, -difflib.SequenceMatcher(None, found.lower(), name).ratio()

    return sorted(names, key=distance)[:NEAREST]


def nearest(found: str, names: Collection[str]) -> str:
    """Returns the name that is most like ``found``; "" where none is near."""
    import difflib

    return "".join(difflib.get_close_matches(found, names, n=1, cutoff=NEAR))


def error_lines(message: str, hint: str = "") -> str:
    """Returns what a command prints for an error: ``error: MESSAGE``, and on a second line ``hint: HINT``."""
    lines = {"error": message, "hint": hint}
    return "\n".join(f"{title}: {' '.join(text.split())}" for title, text in lines.items() if text)


def last_line(printed: str) -> str:
    """Returns the last line that a command printed, hints left out; "it said nothing" for an empty output."""
    lines = [line for line in printed.strip().splitlines() if not line.startswith("hint: ")]
    if lines:
        return lines[-1]
    return "it said nothing"


@contextlib.contextmanager
def failing_at(stage: Stage) -> Iterator[None]:
    """Context manager: turns a UsageError raised inside into a CandidateError of ``stage``."""
    try:
        yield
    except UsageError as error:
        raise CandidateError(stage, str(error)) from error


def reason_of(error: object) -> str:
    """Returns the text of an error as one line of at most REASON_LIMIT (300) characters."""
    return " ".join(str(error).split())[:REASON_LIMIT]


def install_extra(extra: str, folder: Path = FOLDER) -> str:
    """Returns the pip command that installs an extra of tuner.

    It installs from the clone in ``folder`` if that has a pyproject.toml, else the extra's packages by name.
    Raises PackageNotFoundError if their names are needed and tuner is not installed.
    """
    if (folder / "pyproject.toml").is_file():
        return f"pip install -e {shlex.quote(f'{folder}[{extra}]')}"
    packages = [requirement[1].strip() for requirement in _requirements() if requirement[3] == extra]
    return f"pip install {shlex.join(packages)}"


def install_module(module: str) -> str:
    """Returns the pip command that installs a missing Python module.

    It installs the extra of tuner that has the module's package, else the package itself.
    """
    from importlib.metadata import PackageNotFoundError  # takes as long to load as a short command

    name = module.partition(".")[0]
    package_of = {known: package for package, known in MODULES.items()}
    package = package_of.get(name, name.replace("_", "-"))
    requirements: list[re.Match[str]] = []
    with contextlib.suppress(PackageNotFoundError):
        requirements = _requirements()
    extras = [found[3] for found in requirements if found[2].lower() == package.lower()]
    if not extras or None in extras:
        return f"pip install {package}"
    return install_extra(package if package in extras else extras[0])


def _requirements() -> list[re.Match[str]]:
    """Returns the matches of REQUIREMENT: what this distribution needs, always or with an extra.

    Raises PackageNotFoundError where it is not installed.
    """
    from importlib.metadata import requires  # takes as long to load as a short command

    return list(filter(None, map(REQUIREMENT.match, requires(DISTRIBUTION) or ())))


def defect_line(error: BaseException) -> str:
    """Returns a line for an exception not raised on purpose: class and message, or a plainer sentence."""
    said = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        if said:
            return f"not enough memory: {said}"
        return "not enough memory"
    if isinstance(error, KeyError) and NO_ATTRIBUTE in said:
        return "an operation lacks an attribute that its kind needs here: is the transform meant for it?"
    return f"{type(error).__name__}: {said}"


@dataclass(frozen=True)
class OpPlace:
    """The name of an op, and its line and column (from 1) in the bound script or the payload."""

    text: str  # SCRIPT or PAYLOAD
    op: str  # "transform.loop.unroll"
    line: int  # from 1
    column: int


def named_places(reason: str) -> tuple[OpPlace, ...]:
    """Returns the ops whose line and column an error message gives, each once.

    First the ops in the form ``transform.loop.unroll at script:6:2``, then those in MLIR's form,
    ``"payload":4:10: ... 'op.name'``.
    """
    named = [OpPlace(text, op, int(line), int(column)) for op, text, line, column in NAMED.findall(reason)]
    raw = [OpPlace(text, op, int(line), int(column)) for text, line, column, op in RAW.findall(reason)]
    return tuple(dict.fromkeys(named + raw))
