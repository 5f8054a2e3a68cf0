"""How much longer code takes today than recorded, relative to references timed in the same rounds."""

from dataclasses import dataclass, replace

from tuner.analysis.paired_slowdown import InterleavedSession, PairedSlowdown, paired_slowdown
from tuner.core.recorded_round import RecordedRound

LIBRARY = "the baseline library"  # drifts with clock, caches and memory, as a kernel does
REFERENCE_KERNEL = "the reference kernel"  # small packed panels: drifts with the clock and inner caches
RECORDED_TIME = "the recorded time"  # of another hour: drift does not cancel


@dataclass(frozen=True)
class RoundTimes:
    """The times of one session in which a recorded kernel is timed again, in seconds per call.

    Has the samples of the kernel and of the baseline library, and the time of the reference kernel.
    """

    kernel_s: tuple[float, ...]  # one sample per round
    library_s: tuple[float, ...] | None  # in the same rounds; None: no library here, or another one
    reference_kernel_s: float | None  # lower quartile


@dataclass(frozen=True)
class RelativeSlowdown:
    """How much longer code takes than recorded, relative to each reference that was timed then and now.

    References are the baseline library and a reference kernel; without any, the recorded time itself.
    """

    by_reference: tuple[tuple[str, PairedSlowdown], ...]
    whole: PairedSlowdown  # relative to the geometric mean of the references

    @property
    def least(self) -> float:
        """Returns the smallest slowdown over the references: 0.02 is 2 % longer than recorded."""
        return min(found.median for _name, found in self.by_reference)

    @property
    def disagreement(self) -> float:
        """Returns the largest minus the smallest slowdown over the references: 0.01 is 1 percentage point."""
        return max(found.median for _name, found in self.by_reference) - self.least

    @property
    def cancels_drift(self) -> bool:
        """True if the baseline library is among the references: its time drifts as a kernel's does."""
        return any(name == LIBRARY for name, _slowdown in self.by_reference)


def relative_slowdown(recorded: RecordedRound, sessions: tuple[RoundTimes, ...]) -> RelativeSlowdown:
    """Returns how much longer a recorded kernel takes in today's sessions, relative to the references.

    References are those that the recorded round and all ``sessions`` have; without any, today's times are
    compared with the recorded time itself.
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
    """Compares each session's times with the times expected from the first and from the last reference."""
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
