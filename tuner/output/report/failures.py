"""Why trials failed: bars by stage, and for each reason the trials that failed for this reason."""

import re
from dataclasses import dataclass

from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.output.formatting import count_text
from tuner.output.report.bars import Bar

KINDS_SHOWN = 12  # of a run, the most frequent
LINKS_SHOWN = 60  # trials linked per kind of failure


@dataclass(frozen=True)
class FailureKind:
    """The failed trials of a run that failed at one stage for reasons that differ only in numbers."""

    place: str  # anchor on the page; "" if the kind is not shown
    stage: Stage
    reason: str  # of the first failure of this kind
    trials: tuple[int, ...]  # ids, by number

    def linked(self, listed: frozenset[int]) -> tuple[int, ...]:
        """Returns the ids of at most 60 failed trials to link to, by number; ``listed``: ids on the page."""
        return tuple(trial for trial in self.trials if trial in listed)[:LINKS_SHOWN]


def failure_kinds(run: int, trials: tuple[StoredTrial, ...]) -> tuple[FailureKind, ...]:
    """Returns the failed trials of the run with number ``run``, grouped by stage and reason.

    The most frequent group comes first; reasons that differ only in numbers are one group.
    """
    found: dict[tuple[str, str], list[tuple[Failure, int]]] = {}
    for trial in trials:
        if isinstance(trial.record.outcome, Failure):
            failure = trial.record.outcome
            kind = failure.stage.value, re.sub(r"\d+", "#", failure.reason)
            found.setdefault(kind, []).append((failure, trial.id))
    kinds = []
    for index, group in enumerate(sorted(found.values(), key=len, reverse=True)):
        place = f"failure-{run}-{index}" if index < KINDS_SHOWN else ""
        failure = group[0][0]
        kinds.append(FailureKind(place, failure.stage, failure.reason, tuple(trial for _, trial in group)))
    return tuple(kinds)


def stage_bars(kinds: tuple[FailureKind, ...]) -> tuple[Bar, ...]:
    """Returns a bar per stage with failed trials, in the order in which a candidate passes the stages."""
    counts = {stage: sum(len(kind.trials) for kind in kinds if kind.stage is stage) for stage in Stage}
    most = max(counts.values())
    return tuple(
        Bar(stage.value, count / most, count_text(count, "trial"), "failed")
        for stage, count in counts.items()
        if count
    )
