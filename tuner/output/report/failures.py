"""Why trials failed: by stage as bars, by reason with the trials that did."""

import re
from dataclasses import dataclass

from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.output.formatting import count_text
from tuner.output.report.bars import Bar

KINDS_SHOWN = 12  # of a run, those met most
LINKS_SHOWN = 60  # of a kind


@dataclass(frozen=True)
class FailureKind:
    """Failures of one stage whose reasons differ in numbers only."""

    place: str  # on the page; "" where it is not shown
    stage: Stage
    reason: str  # of the first
    trials: tuple[int, ...]  # ids, by number

    def linked(self, listed: frozenset[int]) -> tuple[int, ...]:
        """Returns the trials that are named; ``listed`` are those that the page has a row of."""
        return tuple(trial for trial in self.trials if trial in listed)[:LINKS_SHOWN]


def failure_kinds(run: int, trials: tuple[StoredTrial, ...]) -> tuple[FailureKind, ...]:
    """Gathers a run's failures by stage and reason, the most frequent first."""
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
    """Returns a bar per stage, in the order that a candidate passes them."""
    counts = {stage: sum(len(kind.trials) for kind in kinds if kind.stage is stage) for stage in Stage}
    most = max(counts.values())
    return tuple(
        Bar(stage.value, count / most, count_text(count, "trial"), "failed")
        for stage, count in counts.items()
        if count
    )
