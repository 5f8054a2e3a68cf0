"""Timing rounds as values, and how reliable their times are: noise, drift, load, number of samples.

``round_quality`` says how much a timing round was disturbed, ``reliability_in_round`` whether two of its
times may be compared. ``reliability_alone`` is for times outside of rounds, ``is_pressed`` for the load
before timing.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from tuner.core.machine import PresentLoad
from tuner.core.records import HostConditions, Measurement, drift
from tuner.core.reliability import RELIABLE, Reliability, reliable_unless, unknown, unreliable
from tuner.core.runs import Baseline

NOISE_LIMIT = 0.05  # relative: differences that a quiet machine shows between timings of the same code
DRIFT_LIMIT = 0.1  # relative, between quarters of a round: OpenBLAS on two quiet cores shows up to 9 %
SHARE_LIMIT = 0.05  # of the time: steal time, throttling
WAITED_LIMIT = 0.1  # of the time: interleaved threads wait a little for one another on quiet cores
NO_NOISE_FLOOR = "the noise floor is not known: no code was timed twice"
OTHERS_LIMIT = 0.2  # processors busy with other programs, where no processor is free for them
LEAST_SAMPLES = 6  # the range of 6 samples contains the median with 1 - 2 (1/2)^6 = 97 %, of 5 with 94 %


@dataclass(frozen=True)
class RoundQuality:
    """How reliable the times of a timing round are, by its noise and its disturbance.

    A timing round times the top trials of a run and the baseline interleaved, at the end of the run.
    """

    noise: float | None  # A/A noise floor: relative differences below it mean nothing; None: not known
    disturbance: float  # relative: the largest of the noise, the drifts and the shares of lost processor time
    reliability: Reliability
    host: HostConditions | None = None  # CPU
    is_lost: bool = False  # True: it gave no times, or they do not count; ``reliability`` says why

    @classmethod
    def lost(cls, reason: str) -> "RoundQuality":
        """Returns the quality of a timing round without times, which failed or timed out for ``reason``."""
        lost = unreliable(f"the final re-measurement was lost: {reason}")
        return cls(None, 0.0, lost, is_lost=True)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Returns the sort key (is lost, is not RELIABLE, disturbance): the quietest round sorts first."""
        return (self.is_lost, not self.reliability.is_reliable, self.disturbance)


@dataclass(frozen=True)
class TimedRound:
    """The result of one timing round before it is stored: times of trials and baseline, and quality."""

    quality: RoundQuality
    times: tuple[tuple[int, Measurement], ...]  # (id of the trial, its times)
    baseline: Baseline | None


@dataclass(frozen=True)
class StoredRound:
    """A timing round as stored with its run, without its times; a run may have several."""

    number: int  # 0: of an older tuner, which stored no conditions
    started: datetime.datetime  # UTC
    quality: RoundQuality
    is_answering: bool  # True: the quietest of its run, whose times are used
    of_trials: int = 0  # number of trials of the run at that time: an extended run has more


def repeat_text(noise: float) -> str:
    """Returns a clause for an A/A noise that is too large: 'two timings of the same code differ by 34%'."""
    far = f"{noise:.0%}" if noise < 1 else f"a factor of {1 + noise:.1f}"
    return f"two timings of the same code differ by {far}"


def noise_text(noise: float | None) -> str:
    """Returns '; noise floor 1.2%', the end of a line on times; '' if unknown or above NOISE_LIMIT (5 %).

    Above the limit times are unreliable, and the reason printed for that says how far they differ.
    """
    is_floor = noise is not None and noise <= NOISE_LIMIT
    if is_floor:
        return f"; noise floor {noise:.1%}"
    return ""


@dataclass(frozen=True)
class Evidence:
    """How measurements were taken: whether interleaved, with which noise, how reliable the round is."""

    is_interleaved: bool  # sample by sample, in one round
    noise: float | None  # A/A noise floor of that round, relative; None: not known
    reliability: Reliability = RELIABLE  # of the round; that of single times may be less


def reliability_in_round(times: tuple[Measurement, ...], evidence: Evidence) -> Reliability:
    """Returns how reliable times of a timing round are; a ratio of two may be printed if they are RELIABLE.

    That of the round if that is UNRELIABLE; else UNKNOWN if its noise floor is not known; else UNRELIABLE
    where a measurement was stopped early, was not interleaved, has fewer than LEAST_SAMPLES (6) samples, or
    the noise floor is above NOISE_LIMIT (5 %). ``times`` has one or more measurements.
    """
    if evidence.reliability.unreliable:
        return evidence.reliability
    reason = _objection(times, evidence)
    if reason and evidence.noise is None:
        return unknown(reason)
    return reliable_unless(reason)


def _objection(times: tuple[Measurement, ...], evidence: Evidence) -> str:
    if not all(time.is_complete for time in times):
        return "a measurement was stopped early"
    if not evidence.is_interleaved:
        return "not timed interleaved in one round"
    fewest = min(len(time.samples_s) for time in times)
    if fewest < LEAST_SAMPLES:
        return f"found {fewest} samples, {LEAST_SAMPLES} are needed"
    if evidence.noise is None:
        return NO_NOISE_FLOOR
    if evidence.noise > NOISE_LIMIT:
        return repeat_text(evidence.noise)
    return ""


def reliability_alone(
    host: HostConditions | None, *, quietest_reference_s: float | None, spare_cores: int
) -> Reliability:
    """Returns how reliable the time of a kernel is that was timed alone, such as a trial's first time.

    Never RELIABLE, as one timing shows no noise: UNRELIABLE where ``host`` shows a disturbance, else UNKNOWN.
    ``quietest_reference_s``: least time of the run's reference kernel; None: not known. ``spare_cores``:
    cores without a timed thread.
    """
    if host is None:
        return unknown("timed alone, and the load of the machine is not known")
    symptom = _symptom(None, tuple(_drifts(None, host, quietest_reference_s))) or _pressed(host, spare_cores)
    if symptom:
        return unreliable(f"{symptom}: {_cause(host)}")
    return unknown("timed alone, its noise is not known")


def reliability_of_sessions(sessions: Sequence[Reliability]) -> Reliability:
    """Returns RELIABLE if more than half of the sessions are, else UNRELIABLE; UNKNOWN without sessions."""
    disturbed = [session for session in sessions if not session.is_reliable]
    if not sessions:
        return unknown("nothing was timed")
    if 2 * len(disturbed) < len(sessions):
        return RELIABLE
    return unreliable(f"{len(disturbed)} of {len(sessions)} sessions were disturbed: {disturbed[-1].reason}")


def round_quality(
    noise: float | None,
    baseline: Measurement | None,
    host: HostConditions | None,
    *,
    quietest_reference_s: float | None,  # least time of the run's reference kernel; None: a GPU, or not known
    spare_cores: int,  # cores without a timed thread
) -> RoundQuality:
    """Returns the quality of a timing round: noise, largest disturbance, and whether its times are reliable.

    They are not where ``noise`` is large or unknown, the reference kernel or baseline drifted, or ``host``
    shows that timed threads were held back.
    """
    drifts = tuple(_drifts(baseline, host, quietest_reference_s))
    shares = () if host is None else (host.waited_share, host.stolen_share, host.throttled_share)
    disturbance = max((noise or 0.0, *(most for _, most in drifts), *shares))
    symptom = _symptom(noise, drifts) or _pressed(host, spare_cores)
    reason = f"{symptom}: {_cause(host)}" if symptom else ""
    if not symptom and noise is None:  # the same code timed once is not evidence of a quiet machine
        reason = NO_NOISE_FLOOR
    return RoundQuality(noise, disturbance, reliable_unless(reason), host)


def _drifts(
    baseline: Measurement | None, host: HostConditions | None, quietest_reference_s: float | None
) -> Iterator[tuple[str, float]]:
    if host is not None:
        yield "the reference kernel drifted", host.reference_drift
        if quietest_reference_s is not None:
            yield "the reference kernel was slower than earlier", host.reference_s / quietest_reference_s - 1
    if baseline is not None:
        yield "the baseline drifted", drift(baseline.samples_s)


def _symptom(noise: float | None, drifts: tuple[tuple[str, float], ...]) -> str:
    if noise is not None and noise > NOISE_LIMIT:
        return repeat_text(noise)
    what, most = max(drifts, key=itemgetter(1), default=("", 0.0))
    floor = "" if noise is None else f" (noise floor {noise:.1%})"
    if most > DRIFT_LIMIT:
        return f"{what} by {most:.0%}{floor}"
    return ""


def _pressed(host: HostConditions | None, spare_cores: int) -> str:
    if host is None:
        return ""
    if max(host.stolen_share, host.throttled_share) > SHARE_LIMIT or host.waited_share > WAITED_LIMIT:
        return "the timed threads did not run all the time"
    if host.others_cores > spare_cores + OTHERS_LIMIT:
        return "the timed threads had no processor for themselves"
    return ""


def is_pressed(load: PresentLoad, processors: int, threads: int) -> bool:
    """True if ``threads`` threads that start now would have to share processors with other programs.

    ``processors``: how many this process may use. Also True if the hypervisor takes more than SHARE_LIMIT of
    each thread's time.
    """
    return load.busy > processors - threads + OTHERS_LIMIT or load.stolen > SHARE_LIMIT * threads


def _cause(host: HostConditions | None) -> str:
    if host is None:
        return "something else was running"
    if host.throttled_share > SHARE_LIMIT:
        return f"throttling, a quota held the processes back for {host.throttled_share:.0%} of the time"
    if host.stolen_share > SHARE_LIMIT:
        return f"steal time, the hypervisor took {host.stolen_share:.0%}"
    if host.others_cores > OTHERS_LIMIT or host.waited_share > WAITED_LIMIT:
        waited = f", the timed threads waited {host.waited_share:.0%} of the time"
        return f"load, other programs kept {host.others_cores:.1f} processors busy{waited}"
    return "throttling or another clock of the processor, no other program was seen"
