"""The gate: a file of candidates with their code and times, to find out if today's code is slower.

``recorded_entry`` makes an entry of a GateFile from a trial; ``check_entry`` compiles an entry's script today
and times it next to the recorded code, with the GateResult.
"""

import base64
import binascii
import datetime
import enum
import itertools
import json
import shlex
import statistics
import zlib
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tuner.analysis.ratios import Comparable, NotComparable, session_comparison
from tuner.analysis.slowdown import (
    LEAST_SESSIONS,
    Finding,
    InterleavedSession,
    PairedSlowdown,
    SlowdownLimits,
    finding_of,
    paired_slowdown,
)
from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure, UsageError
from tuner.core.interfaces import (
    AbstractRunner,
    Artifact,
    BoundRecord,
    FinalTimes,
    Partition,
    Script,
)
from tuner.core.problem import Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.records import Measurement, Record
from tuner.core.reliability import Reliability
from tuner.core.round_quality import reliability_of_sessions
from tuner.core.runs import ChosenStrategy
from tuner.core.serialization import decode, encode, form, if_changed, parsed, require_format
from tuner.core.text_files import read_text
from tuner.core.trials import NOT_TIMED, StoredTrial
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.results.regression.reevaluation import (
    SESSION_EFFORT,
    EvaluationCase,
    TimingSession,
    bind_again,
    defect_of,
    evaluated,
    failed_text,
    known_code,
    runner_of,
    strategy_of,
    timing_sessions,
    why_no_time,
)
from tuner.targets.backends import Backends
from tuner.tuning.request import require_offered

if TYPE_CHECKING:
    from tuner.db.store import Store


FORMAT: Final = "tuner-gate"
VERSION: Final = 3  # 3: the code of a CPU and of a GPU have one form
FILE_LIMIT_BYTES: Final = 256 << 20
CODE_LIMIT_BYTES: Final = 64 << 20  # of one entry, unpacked
SESSIONS_LIMIT = 30


@dataclass(frozen=True)
class _Code:
    artifact_sha256: str
    text: bytes  # of the code, compressed
    partitions: tuple[Partition, ...]
    code: KernelCode  # without its text; its binary compressed


def _packed_code(artifact: Artifact) -> _Code:
    code = replace(artifact.code, text="", binary=_packed(artifact.code.binary))
    return _Code(artifact.sha256, _packed(artifact.code.text.encode()), artifact.partitions, code)


def _artifact(stored: _Code) -> Artifact:
    try:
        text = _unpacked(stored.text, "text").decode()
    except UnicodeDecodeError as error:
        raise UsageError("text: is not text") from error
    code = replace(stored.code, text=text, binary=_unpacked(stored.code.binary, "code.binary"))
    return Artifact(code, stored.artifact_sha256, stored.partitions)


@dataclass(frozen=True)
class GateEntry:
    """One candidate of a gate file, with its recorded code, time, machine and compiler."""

    problem: Problem = field(metadata=PROBLEM)
    target: TargetName
    threads: int
    strategy: ChosenStrategy = field(metadata=form(str, attrgetter("text"), ChosenStrategy.parse))
    candidate: Candidate
    script_sha256: str
    artifact: Artifact = field(metadata=form(_Code, _packed_code, _artifact, is_flat=True))
    measurement: Measurement
    machine: str  # Machine.name
    mlir: str  # version of the LLVM that generated the code, and on CPUs its machine code
    compiler: str  # Compiler.fingerprint
    # text with the candidate's values; "" for a shipped strategy, whose script is bound again
    script: str = field(default="", metadata=if_changed())

    @property
    def key(self) -> str:
        """Returns the text that names the entry: problem, target and, if several, threads."""
        threads = f" {self.threads} threads" if self.threads > 1 else ""
        return f"{self.problem.key} {self.target.text}{threads}"


@dataclass(frozen=True)
class GateFile:
    """The content of a gate file: candidates whose speed is checked with later compilers."""

    created: datetime.datetime
    tuner: str  # version
    entries: tuple[GateEntry, ...]

    def with_entries(self, entries: tuple[GateEntry, ...]) -> "GateFile":
        """Returns the file with ``entries`` as well, each in place of an older entry of the same key."""
        by_key = {entry.key: entry for entry in (*self.entries, *entries)}
        return replace(self, entries=tuple(by_key.values()))


def gate_file_bytes(file: GateFile) -> bytes:
    """Returns the content of a gate file as JSON in UTF-8; ``read_gate_file`` reads it."""
    document = {"format": FORMAT, "version": VERSION, **encode(file)}
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def read_gate_file(path: Path) -> GateFile:
    """Returns the content of a gate file.

    Raises UsageError if the file cannot be read, has no entries, or has wrong values.
    """
    hint = f"tuner check --baseline {shlex.quote(str(path))} --record best"
    head = parsed(read_text(path, "a file of tuner check", FILE_LIMIT_BYTES, hint), f"{path}")
    require_format(head, FORMAT, VERSION, f"{path}")
    if not head.get("entries"):
        raise UsageError(f"{path}: entries: is empty")
    content = {name: head.get(name) for name in ("created", "tuner", "entries")}
    file = decode(GateFile, content, f"{path}: ")
    for index, entry in enumerate(file.entries):
        if entry.script and Script.of(entry.script).sha256 != entry.script_sha256:
            raise UsageError(
                f"{path}: entries[{index}]: its script was altered: the text does not match its hash "
                f"{entry.script_sha256[:12]}",
                hint,
            )
    return file


def _packed(content: bytes) -> bytes:
    return base64.b64encode(zlib.compress(content, 9))


def _unpacked(packed: bytes, where: str) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(base64.b64decode(packed, validate=True), CODE_LIMIT_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise UsageError(f"{where}: found damaged code ({error}), allowed what --record wrote") from error
    if not unpacking.eof:
        raise UsageError(f"{where}: found code cut off or above {CODE_LIMIT_BYTES} bytes, allowed it whole")
    return content


class GateStatus(enum.Enum):
    """The outcome of checking one entry of a gate file against today's compiler."""

    SAME_CODE = "same code"  # nothing to time
    NOT_SLOWER = "not slower"
    UNCLEAR = "unclear"  # too noisy: neither a slowdown nor its absence is shown
    SLOWER = "slower"
    FAILED = "failed"  # no longer compiles, is wrong, or cannot be compared

    @property
    def passes(self) -> bool:
        """True unless the code is slower or failed; an unclear outcome passes."""
        return self not in (GateStatus.SLOWER, GateStatus.FAILED)


@dataclass(frozen=True)
class GateResult:
    """The outcome of checking one entry of a gate file, with its slowdown and times, if it was timed."""

    entry: GateEntry
    status: GateStatus
    reason: str  # one line, to print
    slowdown: PairedSlowdown | None = None  # None: not timed interleaved
    sessions: int = 0
    now_s: float | None = None  # median over the sessions' medians
    then_s: float | None = None  # seconds per call of the recorded code, timed today
    reliability: Reliability = NOT_TIMED  # of ``then_s`` and ``now_s``

    @property
    def compared(self) -> Comparable | NotComparable:
        """Returns the ratio of the current code's time to the recorded code's, or why there is none."""
        if self.slowdown is None:
            return NotComparable(self.reason)
        return session_comparison(self.slowdown, self.reliability.unreliable)


def recorded_entry(backends: Backends, store: "Store", trial: StoredTrial) -> GateEntry:
    """Returns a new gate entry for a trial's candidate, which is compiled, verified and timed now.

    For a user's strategy the entry has the script from the database, so the user's file is not needed later.
    Raises UsageError for a replay, a trial of another machine, and a candidate that fails or is not timed.
    """
    record = trial.record
    run = store.run(trial.run)
    if not record.target.has_machine:
        raise UsageError(f"trial {trial.id}: is a replay: nothing was timed")
    backend = backends.target(record.target)
    machine = backend.machine(record.target)
    if machine.name != trial.machine.name:
        raise UsageError(
            f"trial {trial.id}: was timed on {trial.machine.name!r}, this machine is {machine.name!r}"
        )
    strategy = strategy_of(run, trial)
    case = EvaluationCase(record.problem, record.target, trial.threads)
    script = "" if strategy.path is None else trial.script_text
    bind = (lambda _: Script.of(script)) if script else bind_again(backends, case, strategy, "")
    with runner_of(backends, case, bind) as runner:
        bound = evaluated(runner, record.candidate)
    if not isinstance(bound.record.outcome, Measurement) or bound.artifact is None:
        raise UsageError(f"trial {trial.id}: {why_no_time(bound.record)}")
    compiler = backend.compiler(record.target)
    return GateEntry(
        problem=record.problem,
        target=record.target,
        threads=trial.threads,
        strategy=strategy,
        candidate=record.candidate,
        script_sha256=bound.script.sha256,
        artifact=bound.artifact,
        measurement=bound.record.outcome,
        machine=machine.name,
        mlir=compiler.mlir,
        compiler=compiler.fingerprint,
        script=script,
    )


def check_entry(backends: Backends, entry: GateEntry, limits: SlowdownLimits, seed: int = 0) -> GateResult:
    """Compiles an entry's candidate again; if the code differs from the recorded code, times both.

    Returns the GateResult. Its status is FAILED if the candidate cannot be compiled or run here, or is wrong.
    """
    case = EvaluationCase(entry.problem, entry.target, entry.threads, seed)
    try:
        needs = instructions_needed(entry.artifact.code.text)
        require_offered(backends, entry.target, needs, "its recorded code")
        bind = bind_again(backends, case, entry.strategy, entry.script)
    except UsageError as error:
        return GateResult(entry, GateStatus.FAILED, str(error))
    with runner_of(backends, case, bind, known_code(entry_record(entry))) as runner:
        current = evaluated(runner, entry.candidate)
        is_same_code = current.record.reused_from is not None
        if is_same_code:
            return _result_of_same_code(backends, case, entry, current)
        if not isinstance(current.record.outcome, Measurement):
            return GateResult(entry, GateStatus.FAILED, why_no_time(current.record))
        machine = backends.target(entry.target).machine(entry.target)
        return compared(runner, entry, current, limits, machine.physical_cores - entry.threads)


def _result_of_same_code(
    backends: Backends, case: EvaluationCase, entry: GateEntry, current: BoundRecord
) -> GateResult:
    """Returns SAME_CODE without timing, or FAILED if the code is wrong or does not run here."""
    failure = defect_of(backends, case, current.script, entry.candidate)
    if failure is not None:
        return GateResult(entry, GateStatus.FAILED, failed_text(failure))
    mlir = backends.target(entry.target).compiler(entry.target).mlir
    reason = f"the same LLVM dialect; its machine code is made by {mlir}, then by {entry.mlir}"
    if mlir == entry.mlir or entry.artifact.code.is_for_device:
        reason = "it compiles to the recorded code"
    return GateResult(entry, GateStatus.SAME_CODE, reason)


def compared(
    runner: AbstractRunner, entry: GateEntry, current: BoundRecord, limits: SlowdownLimits, spare_cores: int
) -> GateResult:
    """Times the current code interleaved with an entry's recorded code; returns the GateResult.

    Ends when the result is clear. ``limits`` say what is slower. The status is UNCLEAR after 30 sessions
    without a clear result, FAILED if either code does not run or is wrong.
    """
    then = BoundRecord(entry_record(entry), Script("", entry.script_sha256), entry.artifact)
    times: list[InterleavedSession] = []
    reliabilities: list[Reliability] = []
    for session in itertools.islice(
        timing_sessions(runner, (then, then, current), spare_cores), SESSIONS_LIMIT
    ):
        if isinstance(session, FinalTimes):
            return GateResult(entry, GateStatus.FAILED, _why_no_session(runner, then, session))
        times.append(interleaved(session))
        reliabilities.append(session.quality.reliability)
        if len(times) < LEAST_SESSIONS:
            continue
        slowdown = paired_slowdown(tuple(times))
        finding = finding_of(slowdown, len(times), limits)
        if finding is not Finding.UNCLEAR:
            break
    return GateResult(
        entry,
        GateStatus(finding.value),
        f"{len(times)} sessions",
        slowdown,
        len(times),
        now_s=statistics.median(statistics.median(session.now_s) for session in times),
        then_s=statistics.median(statistics.median(session.then_s) for session in times),
        reliability=reliability_of_sessions(tuple(reliabilities)),
    )


def interleaved(session: TimingSession) -> InterleavedSession:
    """Returns the samples of a session of (recorded code, recorded code, current code)."""
    then, again, now = session.times
    return InterleavedSession(then.samples_s, again.samples_s, now.samples_s)


def _why_no_session(runner: AbstractRunner, then: BoundRecord, lost: FinalTimes) -> str:
    recorded, _, current = lost.times
    for name, outcome in (("current", current), ("recorded", recorded)):
        if isinstance(outcome, Failure) and outcome.shows_a_defect:
            return f"the {name} code {failed_text(outcome)}"
    if runner.remeasure((then,), SESSION_EFFORT).measured[0] is None:
        return "the recorded code does not run here any more: record it again"
    return "the current code ran alone, and fails interleaved with the recorded code"


def entry_record(entry: GateEntry) -> Record:
    """Returns a gate entry as the record of its candidate, with the recorded code and time."""
    return Record(
        problem=entry.problem,
        candidate=entry.candidate,
        target=entry.target,
        outcome=entry.measurement,
        script_sha256=entry.script_sha256,
        artifact_sha256=entry.artifact.sha256,
    )
