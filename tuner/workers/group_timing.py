"""Times the winners of a run together, and does so again without those that break it."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.bench import FinalTimes
from tuner.core.errors import Failure
from tuner.core.target import Artifact


@dataclass(frozen=True)
class Group:
    """Those that take turns."""

    artifacts: tuple[Artifact, ...]
    has_baseline: bool = False  # and the baseline, if the judge has one that works

    @property
    def size(self) -> int:
        """Returns how many take turns at most."""
        return len(self.artifacts) + self.has_baseline


def time_finals(
    artifacts: tuple[Artifact | None, ...], together: Callable[[Group], FinalTimes | Failure]
) -> FinalTimes:
    """Returns the times in the order of ``artifacts``; None for one that is missing or fails.

    Where that fails, it is done without the baseline, and without those that fail alone; the result says why.
    """
    present = {place: artifact for place, artifact in enumerate(artifacts) if artifact is not None}
    if not present:
        return FinalTimes((None,) * len(artifacts), reason="nothing compiles any more" if artifacts else "")
    found = together(Group(tuple(present.values()), has_baseline=True))
    reason = ""
    if isinstance(found, Failure):
        reason = found.reason
        present = {place: one for place, one in present.items() if _works(together(Group((one,))))}
        found = together(Group(tuple(present.values()))) if present else found
    if isinstance(found, Failure):  # each fails alone, or only all of them together
        return FinalTimes((None,) * len(artifacts), reason=reason)
    by_place = dict(zip(present, found.times, strict=True))  # equal artifacts (A/A) keep a time each
    return FinalTimes(tuple(by_place.get(place) for place in range(len(artifacts))), found.baseline, reason)


def _works(outcome: FinalTimes | Failure) -> bool:
    return not isinstance(outcome, Failure) and outcome.times[0] is not None
