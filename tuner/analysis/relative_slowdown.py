"""How much longer code takes than on another day, relative to references timed in the same rounds."""

import math
from dataclasses import dataclass, replace

from tuner.analysis.paired_slowdown import PairedSlowdown, TurnSession, paired_slowdown
from tuner.core.recorded_round import RecordedRound

LIBRARY = "the baseline library"  # drifts with the clock, caches and memory, as a kernel does
REFERENCE_KERNEL = "the reference kernel"  # multiply-adds in registers: drifts with the clock only
RECORDED_TIME = "the recorded time"  # of another hour: drift is not cancelled


@dataclass(frozen=True)
class RoundTimes:
    """Seconds per call of one session of today."""

    kernel_s: tuple[float, ...]  # one sample per round
    library_s: tuple[float, ...] | None  # in the same rounds; None: no library here, or another one
    reference_kernel_s: float | None  # median


@dataclass(frozen=True)
class RelativeSlowdown:
    """How much longer code takes than recorded, by each reference that was timed then and now."""

    by_reference: tuple[tuple[str, PairedSlowdown], ...]

    @property
    def whole(self) -> PairedSlowdown:
        """Returns the mean of the references' slowdowns, with the interval that holds all their intervals."""
        found = [slowdown for _name, slowdown in self.by_reference]
        return PairedSlowdown(
            math.expm1(sum(math.log1p(each.median) for each in found) / len(found)),
            (min(each.interval[0] for each in found), max(each.interval[1] for each in found)),
            max(each.noise for each in found),
        )

    @property
    def cancels_drift(self) -> bool:
        """Returns True where the library is among the references: it needs what a kernel needs."""
        return any(name == LIBRARY for name, _slowdown in self.by_reference)


def relative_slowdown(recorded: RecordedRound, sessions: tuple[RoundTimes, ...]) -> RelativeSlowdown:
    """Returns the slowdown relative to each reference that the recorded round and all sessions have.

    Without any reference the recorded time itself is what is compared with.
    """
    named = (
        (LIBRARY, recorded.library_s, [_library_s(each) for each in sessions]),
        (REFERENCE_KERNEL, recorded.reference_kernel_s, [_reference_kernel_s(each) for each in sessions]),
    )
    references = [
        (name, then_s, now_s) for name, then_s, now_s in named if then_s is not None and all(now_s)
    ] or [(RECORDED_TIME, 1.0, [(1.0,) * len(each.kernel_s) for each in sessions])]
    return RelativeSlowdown(
        tuple((name, _slowdown(recorded, then_s, now_s, sessions)) for name, then_s, now_s in references)
    )


def _slowdown(
    recorded: RecordedRound,
    reference_then_s: float,
    reference_now_s: list[tuple[float, ...]],
    sessions: tuple[RoundTimes, ...],
) -> PairedSlowdown:
    """Compares today's times with the recorded one, scaled by how fast the reference is today."""
    expected = [
        tuple(seconds * recorded.kernel_s / reference_then_s for seconds in now_s)
        for now_s in reference_now_s
    ]
    paired = tuple(
        TurnSession(then, then, each.kernel_s) for then, each in zip(expected, sessions, strict=True)
    )
    return replace(paired_slowdown(paired), noise=recorded.noise)


def _library_s(session: RoundTimes) -> tuple[float, ...]:
    return session.library_s or ()


def _reference_kernel_s(session: RoundTimes) -> tuple[float, ...]:
    median_s = session.reference_kernel_s
    return () if median_s is None else (median_s,) * len(session.kernel_s)
