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
    present = tuple(artifact for artifact in artifacts if artifact is not None)
    times = together(present) if present else ()
    if isinstance(times, Failure):
        present = tuple(artifact for artifact in present if _works(together((artifact,))))
        times = together(present) if present else ()
    if isinstance(times, Failure):  # each works alone, together they do not
        return (None,) * len(artifacts)
    by_artifact = dict(zip(present, times, strict=True))
    return tuple(None if artifact is None else by_artifact.get(artifact) for artifact in artifacts)


def _works(outcome: Times | Failure) -> bool:
    return not isinstance(outcome, Failure) and outcome[0] is not None
