"""Whether today's compiler makes slower code: each candidate is timed interleaved with its recorded code."""

import enum
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.comparison import Comparable, NotComparable, session_comparison
from tuner.analysis.paired_slowdown import (
    LEAST_SESSIONS,
    Finding,
    InterleavedSession,
    PairedSlowdown,
    SlowdownLimits,
    finding_of,
    paired_slowdown,
)
from tuner.core.bench import AbstractBench, BoundRecord
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.errors import Failure, UsageError
from tuner.core.record import Measurement, Record
from tuner.core.reliability import Reliability
from tuner.core.round_quality import reliability_of_sessions, round_quality
from tuner.core.runs import NOT_TIMED, RunSettings, StoredTrial
from tuner.core.target import Effort, Script
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.regression.gate_file import GateEntry
from tuner.regression.reevaluation import EvaluationCase, bench_of, evaluated, known_code
from tuner.tuning.composition import Composition
from tuner.tuning.needs_check import require_offered
from tuner.tuning.outcome_source import Bind
from tuner.tuning.remeasurement import noise_of

if TYPE_CHECKING:
    from tuner.db.store import Store

SESSION_EFFORT = Effort(budget_s=0.1, min_samples=11, max_samples=60)  # of each of the three, interleaved
SESSIONS_LIMIT = 30


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
    """The outcome of checking one entry of a gate file, with its slowdown and times."""

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
        """Returns the ratio of the current code's time to the recorded code's, or why there is none.

        The status needs no ratio: the sessions are interleaved, and other load lengthens both codes.
        """
        if self.slowdown is None:
            return NotComparable(self.reason)
        return session_comparison(self.slowdown, self.reliability.unreliable)


@dataclass(frozen=True)
class GateSession:
    """One timing session of recorded and current code."""

    times: InterleavedSession
    objection: str  # why its times cannot be relied on; "" where they can


def recorded_entry(composition: Composition, store: "Store", trial: StoredTrial) -> GateEntry:
    """Returns a new gate entry of a trial's candidate, which is compiled, verified and timed now.

    Raises UsageError for a replayed trial, a trial of another machine, and a candidate that fails or is not
    timed.
    """
    record, run = trial.record, store.run(trial.run)
    if not record.target.has_machine:
        raise UsageError(f"trial {trial.id}: is a replay: nothing was timed")
    source = composition.outcomes(record.target)
    machine = source.machine(record.target)
    if machine.name != trial.machine.name:
        raise UsageError(
            f"trial {trial.id}: was timed on {trial.machine.name!r}, this machine is {machine.name!r}"
        )
    strategy = _chosen(run.settings, record.candidate.strategy)
    case = EvaluationCase(record.problem, record.target, trial.threads)
    with bench_of(composition, case, _bind(composition, case, strategy)) as bench:
        bound = evaluated(bench, record.candidate)
    if not isinstance(bound.record.outcome, Measurement) or bound.artifact is None:
        raise UsageError(f"trial {trial.id}: {_why_no_time(bound.record)}")
    compiler = source.compiler(record.target)
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
    )


def check_entry(
    composition: Composition, entry: GateEntry, limits: SlowdownLimits, seed: int = 0
) -> GateResult:
    """Checks one entry of a gate file: compiles its candidate again and times it against the recorded code.

    Equal code is not timed; changed code is verified first and then timed interleaved with the recorded code.
    Code that needs instructions which this machine lacks is FAILED. Raises UsageError for too little memory.
    """
    case = EvaluationCase(entry.problem, entry.target, entry.threads, seed)
    try:
        needs = instructions_needed(entry.artifact.host_code)
        require_offered(composition, entry.target, needs, "its recorded code")
        bind = _bind(composition, case, entry.strategy)
    except UsageError as error:
        return GateResult(entry, GateStatus.FAILED, str(error))
    with bench_of(composition, case, bind, known_code(entry_record(entry))) as bench:
        current = evaluated(bench, entry.candidate)
        if current.record.reused_from is not None:
            return GateResult(entry, GateStatus.SAME_CODE, _same_code_text(composition, entry))
        if not isinstance(current.record.outcome, Measurement):
            return GateResult(entry, GateStatus.FAILED, _why_no_time(current.record))
        machine = composition.outcomes(entry.target).machine(entry.target)
        return compared(bench, entry, current, limits, machine.physical_cores - entry.threads)


def compared(
    bench: AbstractBench,
    entry: GateEntry,
    current: BoundRecord,
    limits: SlowdownLimits,
    spare_cores: int,
) -> GateResult:
    """Times the current code interleaved with an entry's recorded code until the result is clear.

    Sessions are added until they show a slowdown or rule one out by ``limits``, at most 30; otherwise the
    status is UNCLEAR. FAILED where either code does not run. ``spare_cores``: cores without a timed thread.
    """
    then = BoundRecord(entry_record(entry), Script("", entry.script_sha256), entry.artifact)
    taken: list[GateSession] = []
    for session in turns(bench, then, current, spare_cores):
        if session is None:
            return GateResult(entry, GateStatus.FAILED, _missing_text(bench, then))
        taken.append(session)
        if len(taken) < LEAST_SESSIONS:
            continue
        slowdown = paired_slowdown(tuple(each.times for each in taken))
        finding = finding_of(slowdown, len(taken), limits)
        if finding is not Finding.UNCLEAR:
            break
    return _result(entry, GateStatus(finding.value), slowdown, tuple(taken))


def turns(
    bench: AbstractBench, then: BoundRecord, current: BoundRecord, spare_cores: int
) -> Iterator[GateSession | None]:
    """Yields up to 30 sessions, each of which loads old and new code anew and times them interleaved.

    ``then`` is the old code, which is also loaded twice to measure the noise. ``spare_cores``: cores without
    a timed thread. Yields None and ends where either code fails.
    """
    quietest_s = math.inf  # of the reference kernel
    for _ in range(SESSIONS_LIMIT):
        found = bench.remeasure((then, then, current), SESSION_EFFORT)
        first, again, now = found.times
        if first is None or again is None or now is None:
            yield None
            return
        host = first.host
        quietest_s = quietest_s if host is None else min(quietest_s, host.anchor_s)
        quality = round_quality(
            noise_of(first, again),
            None if found.baseline is None else found.baseline.measurement,
            host,
            quietest_anchor_s=None if host is None else quietest_s,
            spare_cores=spare_cores,
        )
        times = InterleavedSession(first.samples_s, again.samples_s, now.samples_s)
        yield GateSession(times, quality.unreliable)


def _result(
    entry: GateEntry, status: GateStatus, slowdown: PairedSlowdown, taken: tuple[GateSession, ...]
) -> GateResult:
    return GateResult(
        entry,
        status,
        f"{len(taken)} sessions",
        slowdown,
        len(taken),
        _median(taken, lambda session: session.now_s),
        _median(taken, lambda session: session.then_s),
        reliability_of_sessions(tuple(each.objection for each in taken)),
    )


def _median(
    taken: tuple[GateSession, ...], samples_of: Callable[[InterleavedSession], tuple[float, ...]]
) -> float:
    return statistics.median(statistics.median(samples_of(session.times)) for session in taken)


def _bind(composition: Composition, case: EvaluationCase, strategy: ChosenStrategy) -> Bind:
    """Returns the function that binds candidates of a strategy. Raises UsageError for unreadable scripts."""
    source = composition.outcomes(case.target)
    return source.bind((strategy,), case.problem, case.threads, source.machine(case.target))


def _chosen(settings: RunSettings, name: str) -> ChosenStrategy:
    """Returns a strategy as its run chose it: with the path of the script where it is a user's."""
    return next((each for each in settings.strategies if each.name == name), ChosenStrategy(name))


def entry_record(entry: GateEntry) -> Record:
    """Returns the trial record that a gate entry stands for, as it was when the gate file was written."""
    return Record(
        problem=entry.problem,
        candidate=entry.candidate,
        target=entry.target,
        outcome=entry.measurement,
        script_sha256=entry.script_sha256,
        artifact_sha256=entry.artifact.sha256,
    )


def _same_code_text(composition: Composition, entry: GateEntry) -> str:
    mlir = composition.outcomes(entry.target).compiler(entry.target).mlir
    if mlir == entry.mlir or entry.artifact.program is not None:
        return "it compiles to the recorded code"
    return f"the same LLVM dialect; its machine code is made by {mlir}, then by {entry.mlir}"


def _why_no_time(record: Record) -> str:
    if isinstance(record.outcome, Failure):
        return f"fails at stage {record.outcome.stage.value}: {record.outcome.reason}"
    return "is verified, and nothing is timed here"


def _missing_text(bench: AbstractBench, then: BoundRecord) -> str:
    alone = bench.remeasure((then,), SESSION_EFFORT).times[0]
    if alone is None:
        return "the code of then does not run here: record it anew"
    return "the current code ran alone, and fails interleaved with the recorded code"
