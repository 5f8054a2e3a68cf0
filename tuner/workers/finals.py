"""Times the winners of a run together, and does so again without those that break it."""

from collections.abc import Callable

from tuner.errors import Failure
from tuner.record import Measurement
from tuner.target import Artifact

Times = tuple[Measurement | None, ...]


def time_finals(
    artifacts: tuple[Artifact | None, ...], together: Callable[[tuple[Artifact, ...]], Times | Failure]
) -> Times:
    """Returns the times in the order of ``artifacts``; None for one that is missing or fails."""
    present = {place: artifact for place, artifact in enumerate(artifacts) if artifact is not None}
    times = together(tuple(present.values())) if present else ()
    if isinstance(times, Failure):
        present = {place: one for place, one in present.items() if _works(together((one,)))}
        times = together(tuple(present.values())) if present else ()
    if isinstance(times, Failure):  # each works alone, together they do not
        return (None,) * len(artifacts)
    by_place = dict(zip(present, times, strict=True))  # equal artifacts (A/A) keep a time each
    return tuple(by_place.get(place) for place in range(len(artifacts)))


def _works(outcome: Times | Failure) -> bool:
    return not isinstance(outcome, Failure) and outcome[0] is not None
