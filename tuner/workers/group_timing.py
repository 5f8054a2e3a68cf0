"""Times the top-k candidates of a run interleaved; times again without candidates that make this fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from tuner.core.bench import BoundRecord, FinalTimes
from tuner.core.errors import Failure
from tuner.core.target import Artifact, Effort, Script
from tuner.workers.evaluation import work_seed


@dataclass(frozen=True)
class Group:
    """Artifacts that are timed interleaved, and whether the baseline is timed with them."""

    artifacts: tuple[Artifact, ...]
    has_baseline: bool = False  # times the baseline too, if the evaluator has one that works

    @property
    def size(self) -> int:
        """Returns the largest number of programs that are timed interleaved: artifacts, and the baseline."""
        return len(self.artifacts) + self.has_baseline


@final
class RemeasurementRounds:
    """The final re-measurements of one bench; each timed group of artifacts gets a different random seed."""

    def __init__(
        self,
        seed: int,  # of the run
        compiled: Callable[[tuple[Script, ...]], Sequence[Artifact | Failure | None]],
        timed: Callable[[Group, Effort, int, float | None], FinalTimes | Failure],  # seed, seconds per call
    ) -> None:
        self._seed = seed
        self._compiled = compiled
        self._timed = timed
        self._asked = 0  # groups timed so far

    def times(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times trials interleaved, with the baseline where it works.

        Scripts without an artifact are compiled first. The result has one time per element of ``top_trials``;
        None: the trial no longer compiles or runs.
        """
        bare = tuple(dict.fromkeys(each.script for each in top_trials if each.artifact is None))
        pairs = zip(bare, self._compiled(bare), strict=True)
        made = {script: outcome for script, outcome in pairs if isinstance(outcome, Artifact)}
        artifacts = tuple(each.artifact or made.get(each.script) for each in top_trials)
        medians_s = [each.record.median_s for each in top_trials if each.record.median_s is not None]
        slowest_s = max(medians_s, default=None)

        def together(group: Group) -> FinalTimes | Failure:
            self._asked += 1
            return self._timed(group, effort, work_seed(self._seed, -self._asked), slowest_s)

        return time_finals(artifacts, together)


def time_finals(
    artifacts: tuple[Artifact | None, ...], together: Callable[[Group], FinalTimes | Failure]
) -> FinalTimes:
    """Times artifacts interleaved, with the baseline; returns times in the order of ``artifacts``.

    ``together`` times one group. None for an artifact that is missing or fails. Where timing all artifacts
    together fails, each artifact is timed alone, and the artifacts that work are timed together again,
    without the baseline; ``reason`` of the result says why.
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
    if isinstance(found, Failure):  # each artifact fails alone, or only all of them together
        return FinalTimes((None,) * len(artifacts), reason=reason)
    by_place = dict(zip(present, found.times, strict=True))  # equal artifacts (A/A) have separate times
    return FinalTimes(tuple(by_place.get(place) for place in range(len(artifacts))), found.baseline, reason)


def _works(outcome: FinalTimes | Failure) -> bool:
    return not isinstance(outcome, Failure) and outcome.times[0] is not None
