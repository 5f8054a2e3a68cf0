"""The phases of a search: the first points, then what the sampler chose."""

from dataclasses import dataclass
from itertools import groupby

from tuner.core.runs import Run, StoredTrial


@dataclass(frozen=True)
class Phase:
    """Trials that were proposed for one reason, one after the other."""

    name: str  # where first points come from, or the sampler
    first: int  # numbers of trials
    last: int


def phases_of(run: Run, trials: tuple[StoredTrial, ...]) -> tuple[Phase, ...]:
    """Returns the phases that a run went through, in order."""
    named = [(trial.number, _reason(run, trial)) for trial in sorted(trials, key=lambda each: each.number)]
    found = []
    for name, group in groupby(named, key=lambda pair: pair[1]):
        numbers = [number for number, _ in group]
        found.append(Phase(name, numbers[0], numbers[-1]))
    return tuple(found)


def _reason(run: Run, trial: StoredTrial) -> str:
    """Returns why a trial was proposed: first points come before any other, those of two origins by turns."""
    points = run.settings.first or ()
    if trial.number < len(points) and trial.record is not None:
        origins = {point.candidate: point.origin for point in points}
        if trial.record.candidate in origins:
            return ", ".join(dict.fromkeys(origins.values()))
    return run.settings.sampler
