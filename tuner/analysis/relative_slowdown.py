"""How much longer code takes than on another day, relative to references timed in the same rounds."""

from dataclasses import dataclass, replace

from tuner.analysis.paired_slowdown import InterleavedSession, PairedSlowdown, paired_slowdown
from tuner.core.recorded_round import RecordedRound

LIBRARY = "the baseline library"  # drifts with the clock, caches and memory, as a kernel does
REFERENCE_KERNEL = "the reference kernel"  # a product of small panels: drifts with the clock and first caches
RECORDED_TIME = "the recorded time"  # of another hour: drift is not cancelled


@dataclass(frozen=True)
class RoundTimes:
    """Seconds per call of one session of today."""

    kernel_s: tuple[float, ...]  # one sample per round
    library_s: tuple[float, ...] | None  # in the same rounds; None: no library here, or another one
    reference_kernel_s: float | None  # lower quartile


@dataclass(frozen=True)
class RelativeSlowdown:
    """How much longer code takes than recorded, by each reference that was timed then and now."""

    by_reference: tuple[tuple[str, PairedSlowdown], ...]
    whole: PairedSlowdown  # relative to the geometric mean of the references

    @property
    def least(self) -> float:
        """Returns the smallest slowdown that a reference shows."""
        return min(found.median for _name, found in self.by_reference)

    @property
    def disagreement(self) -> float:
        """Returns the difference between the largest and the smallest slowdown that references show."""
        return max(found.median for _name, found in self.by_reference) - self.least

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
        (REFERENCE_KERNEL, recorded.panel_product_s, [_reference_kernel_s(each) for each in sessions]),
    )
    references = [
        (name, then_s, now_s) for name, then_s, now_s in named if then_s is not None and all(now_s)
    ] or [(RECORDED_TIME, 1.0, [(1.0,) * len(each.kernel_s) for each in sessions])]
    expected = [
        (name, [tuple(recorded.kernel_s * seconds / then_s for seconds in each) for each in now_s])
        for name, then_s, now_s in references
    ]
    return RelativeSlowdown(
        tuple((name, _slowdown(recorded, one, one, sessions)) for name, one in expected),
        _slowdown(recorded, expected[0][1], expected[-1][1], sessions),
    )


def _slowdown(
    recorded: RecordedRound,
    by_first: list[tuple[float, ...]],
    by_last: list[tuple[float, ...]],
    sessions: tuple[RoundTimes, ...],
) -> PairedSlowdown:
    """Compares today's times with those that the first and the last reference let expect, of each session."""
    paired = tuple(
        InterleavedSession(first, last, each.kernel_s)
        for first, last, each in zip(by_first, by_last, sessions, strict=True)
    )
    return replace(paired_slowdown(paired), noise=recorded.noise)


def _library_s(session: RoundTimes) -> tuple[float, ...]:
    return session.library_s or ()


def _reference_kernel_s(session: RoundTimes) -> tuple[float, ...]:
    seconds = session.reference_kernel_s
    return () if seconds is None else (seconds,) * len(session.kernel_s)
