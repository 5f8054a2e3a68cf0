"""Checks an exported script: still correct, and as fast as recorded, relative to reference codes.

``checked`` gives a ScriptCheck with its CheckFinding.
"""

import enum
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tuner.analysis.ratios import Comparable, NotComparable, comparison, session_comparison
from tuner.analysis.slowdown import (
    LEAST_SESSIONS,
    Finding,
    PairedSlowdown,
    RelativeSlowdown,
    RoundTimes,
    SlowdownLimits,
    finding_of,
    relative_slowdown,
)
from tuner.core.candidate import Candidate, RecordedRound
from tuner.core.errors import Failure
from tuner.core.interfaces import AbstractRunner, BoundRecord, FinalTimes, Script
from tuner.core.records import Measurement, Verdict
from tuner.core.reliability import RELIABLE, Reliability, reliable_unless, unreliable
from tuner.core.round_quality import Evidence, reliability_alone
from tuner.core.trials import NOT_TIMED
from tuner.results.regression.reevaluation import (
    SESSION_EFFORT,
    EvaluationCase,
    TimingSession,
    evaluated,
    failed_text,
    runner_of,
    timing_sessions,
)
from tuner.space.scripts.header import ScriptProvenance
from tuner.targets.backends import Backends
from tuner.tuning.request import require_offered

SESSIONS_LIMIT = 15  # quiet sessions: half of the gate's, since a user waits
DISAGREEMENT_LIMIT = 0.1  # relative: difference of slowdowns by two references on an unchanged machine
LEAST_BY_EACH = 0.01  # relative: a slowdown is reported where each reference shows more
BROKEN = "it ran alone, and failed when it was timed interleaved with the references"
LEAST_DISTURBED = 6  # disturbed sessions, of half a second each, that show a lasting load


class CheckFinding(enum.Enum):
    """The outcome of checking an exported script."""

    NOT_SLOWER = "not slower"
    VERIFIED = "verified"  # correct; the target times nothing, or the script has no recorded time
    COMPILED = "compiled only"  # for another processor, whose code cannot run here
    SLOWER = "slower"
    FAILED = "failed"  # does not compile, is wrong, or fails while it is timed
    CANNOT_TELL = "cannot tell"  # correct; neither a slowdown nor its absence is shown

    @property
    def passes(self) -> bool:
        """True if the check passed: the command then exits with code 0."""
        return self in (CheckFinding.NOT_SLOWER, CheckFinding.VERIFIED)


@dataclass(frozen=True)
class ScriptCheck:
    """The result of checking an exported script: today's time, and its slowdown against the recorded one."""

    finding: CheckFinding
    reason: str  # one clause, to print
    median_s: float | None = None  # today's seconds per call; None: not timed
    slowdown: PairedSlowdown | None = None  # relative to the references; None: not comparable
    sessions: int = 0  # number of sessions of the slowdown
    hint: str = ""  # what to do where the recorded time is unreliable or not of a timing round
    reliability: Reliability = NOT_TIMED  # of ``median_s``

    @property
    def compared(self) -> Comparable | NotComparable:
        """Returns the ratio of today's time to the recorded one, relative to reference codes.

        NotComparable with the reason where there is none.
        """
        if self.slowdown is None:
            return NotComparable(self.reason)
        if self.finding is CheckFinding.CANNOT_TELL:
            objection = self.reason
        else:
            objection = self.reliability.unreliable
        return session_comparison(self.slowdown, objection)


@dataclass(frozen=True)
class _Session:
    kernel: Measurement | None  # None: the kernel failed
    times: RoundTimes | None
    reliability: Reliability
    wrong: Failure | None = None  # shows that the kernel's code is wrong


def checked(
    backends: Backends, provenance: ScriptProvenance, script: str, limits: SlowdownLimits, seed: int = 0
) -> ScriptCheck:
    """Verifies and times an exported script in child processes; compares with its recorded time.

    Returns the ScriptCheck. Its finding is VERIFIED if no time is recorded or the target has no clock,
    COMPILED for another processor, CANNOT_TELL if the recorded time is of another machine or unreliable.
    Raises UsageError for too little memory or missing instructions.
    """
    require_offered(backends, provenance.target, provenance.needs, "the script")
    case = case_of(backends, provenance, seed)
    with runner_of(backends, case, lambda _candidate: Script.of(script)) as runner:
        current = evaluated(runner, Candidate(provenance.strategy, provenance.knobs), SESSION_EFFORT)
        return check_of(backends, runner, current, provenance, limits)


def case_of(backends: Backends, provenance: ScriptProvenance, seed: int) -> EvaluationCase:
    """Returns the case of an exported script, with the library that its recorded time was compared with."""
    baseline = ""  # the target's default
    if provenance.baseline is not None:
        choices = backends.target(provenance.target).baselines
        baseline = choices.recorded(provenance.baseline.name, provenance.problem)
    return EvaluationCase(provenance.problem, provenance.target, provenance.threads, seed, baseline)


def check_of(
    backends: Backends,
    runner: AbstractRunner,
    current: BoundRecord,
    provenance: ScriptProvenance,
    limits: SlowdownLimits,
) -> ScriptCheck:
    """Returns the check of code that was evaluated now, ``current``, against a recorded time.

    ``runner``: of ``case_of``. ``current`` need not be the recorded code: an audit gives today's.
    """
    outcome = current.record.outcome
    if isinstance(outcome, Failure):
        return ScriptCheck(CheckFinding.FAILED, failed_text(outcome))
    if isinstance(outcome, Verdict):
        if current.record.is_compiled_only:
            return ScriptCheck(CheckFinding.COMPILED, "; ".join(outcome.notes))
        return ScriptCheck(CheckFinding.VERIFIED, f"{outcome.elements} elements verified, nothing timed")
    machine = backends.target(provenance.target).machine(provenance.target)
    spare_cores = machine.physical_cores - provenance.threads
    alone = ScriptCheck(
        CheckFinding.VERIFIED,
        "no time recorded",
        outcome.median_s,
        reliability=reliability_alone(outcome.host, quietest_reference_s=None, spare_cores=spare_cores),
    )
    if provenance.median_s is None:
        return alone
    if not machine.is_named(provenance.machine):
        reason = f"it was recorded on another machine, {provenance.machine}"
        return replace(alone, finding=CheckFinding.CANNOT_TELL, reason=reason)
    if provenance.reliability.unreliable:
        reason = f"the recorded time is {provenance.reliability.text}"
        hint = _recorded_again(provenance)
        return replace(alone, finding=CheckFinding.CANNOT_TELL, reason=reason, hint=hint)
    return compared(runner, current, provenance, limits, spare_cores)


def compared(
    runner: AbstractRunner,
    current: BoundRecord,
    provenance: ScriptProvenance,
    limits: SlowdownLimits,
    spare_cores: int,
) -> ScriptCheck:
    """Times an exported script in sessions; returns the comparison with its recorded time.

    Times are relative to reference codes. Ends when a slowdown is ruled out, after 15 undisturbed sessions,
    or when at least six sessions, and at least half of all, were disturbed. A slowdown is reported only after
    15 sessions, as consecutive sessions may share a disturbance.
    """
    # of a script by an older tuner, or timed alone, only the median is known
    recorded = provenance.round or RecordedRound(provenance.median_s or math.nan, noise=0.0)
    library = None if provenance.baseline is None else provenance.baseline.name
    quiet: list[_Session] = []
    disturbed: list[_Session] = []
    slowdown: RelativeSlowdown | None = None
    conclusion: tuple[CheckFinding, str] | None = None
    for timed in timing_sessions(runner, (current, current), spare_cores):
        session = _session(timed, library)
        if session.wrong is not None:
            return ScriptCheck(CheckFinding.FAILED, failed_text(session.wrong))
        (quiet if session.reliability.is_reliable else disturbed).append(session)
        if session.reliability.is_reliable and len(quiet) >= LEAST_SESSIONS:
            slowdown = relative_slowdown(recorded, tuple(session.times for session in quiet if session.times))
            conclusion = _conclusion(slowdown, len(quiet), limits)
        if conclusion and conclusion[0].passes:
            break
        if _is_busy(quiet, disturbed) or len(quiet) == SESSIONS_LIMIT:
            break
    medians_s = [session.kernel.median_s for session in quiet or disturbed if session.kernel is not None]
    if not medians_s:
        return ScriptCheck(CheckFinding.FAILED, BROKEN)
    is_busy = _is_busy(quiet, disturbed)
    if conclusion is None or (is_busy and not conclusion[0].passes):
        conclusion = (CheckFinding.CANNOT_TELL, _why_undecided(quiet, disturbed))
    reliability = unreliable(_why_undecided(quiet, disturbed)) if is_busy else RELIABLE
    whole = None if slowdown is None else slowdown.whole
    is_to_record = provenance.round is None and conclusion[0] is CheckFinding.CANNOT_TELL
    hint = _recorded_again(provenance) if is_to_record else ""
    return ScriptCheck(*conclusion, statistics.median(medians_s), whole, len(quiet), hint, reliability)


def _session(timed: TimingSession | FinalTimes, library: str | None) -> _Session:
    if isinstance(timed, FinalTimes):
        wrong = next((failure for failure in timed.failures if failure.shows_a_defect), None)
        return _Session(None, None, unreliable(BROKEN), wrong)
    kernel, again = timed.times
    host = kernel.host
    baseline = None if timed.baseline is None else timed.baseline.measurement
    quality = timed.quality
    evidence = Evidence(is_interleaved=True, noise=quality.noise, reliability=quality.reliability)
    ratio = comparison(kernel, baseline or again, evidence)
    is_same_library = timed.baseline is not None and timed.baseline.name == library
    times = RoundTimes(
        kernel.samples_s,
        baseline.samples_s if baseline and is_same_library else None,
        None if host is None else host.panel_product_s,
    )
    # the ratio is not used: only why there would be none, i.e. whether the session can be relied on
    why = ratio.reason if isinstance(ratio, NotComparable) and not ratio.is_equal else ""
    return _Session(kernel, times, reliable_unless(why))


def _conclusion(
    slowdown: RelativeSlowdown, sessions: int, limits: SlowdownLimits
) -> tuple[CheckFinding, str] | None:
    names = " and ".join(name for name, _ in slowdown.by_reference)
    if slowdown.disagreement > DISAGREEMENT_LIMIT:
        reason = f"{names} disagree: the machine's memory or clock is another than then"
        return CheckFinding.CANNOT_TELL, reason
    match finding_of(slowdown.whole, sessions, limits):
        case Finding.NOT_SLOWER:
            return CheckFinding.NOT_SLOWER, f"relative to {names}"
        case Finding.SLOWER if not slowdown.cancels_drift:
            reason = f"it is slower relative to {names} alone, as it is where the machine has become slower"
            return CheckFinding.CANNOT_TELL, reason
        case Finding.SLOWER if slowdown.least > LEAST_BY_EACH:
            return CheckFinding.SLOWER, f"relative to {names}"
    return None  # more sessions may show it


def _recorded_again(provenance: ScriptProvenance) -> str:
    retime = f"tuner tune --resume {provenance.run} --retime"
    return f"record its time again: {retime}, then: tuner export --trial {provenance.trial}"


def _is_busy(quiet: Sequence[_Session], disturbed: Sequence[_Session]) -> bool:
    # half of the sessions or more were disturbed: sessions that look quiet may not be quiet
    return len(disturbed) >= max(LEAST_DISTURBED, len(quiet))


def _why_undecided(quiet: Sequence[_Session], disturbed: Sequence[_Session]) -> str:
    if not _is_busy(quiet, disturbed):
        return f"the interval is too wide after {len(quiet)} sessions"
    sessions = len(quiet) + len(disturbed)
    return f"{len(disturbed)} of {sessions} sessions were disturbed: {disturbed[-1].reliability.reason}"
