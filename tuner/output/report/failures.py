"""Why trials failed: by stage as bars, by reason with the trials that did."""

import re
from dataclasses import dataclass

from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.output.formatting import count_text
from tuner.output.report.bars import Bar, bars
from tuner.output.report.element import Markup, element, joined

KINDS_SHOWN = 12  # of a run, those met most
LINKS_SHOWN = 60  # of a kind


@dataclass(frozen=True)
class FailureKind:
    """Failures of one stage whose reasons differ in numbers only."""

    stage: Stage
    reason: str  # of the first
    trials: tuple[int, ...]  # ids, by number


def failure_kinds(trials: tuple[StoredTrial, ...]) -> tuple[FailureKind, ...]:
    """Gathers the failures by stage and reason, the most frequent first."""
    found: dict[tuple[str, str], list[tuple[Failure, int]]] = {}
    for trial in trials:
        if trial.record is not None and isinstance(trial.record.outcome, Failure):
            failure = trial.record.outcome
            kind = failure.stage.value, re.sub(r"\d+", "#", failure.reason)
            found.setdefault(kind, []).append((failure, trial.id))
    kinds = (
        FailureKind(group[0][0].stage, group[0][0].reason, tuple(trial for _, trial in group))
        for group in found.values()
    )
    return tuple(sorted(kinds, key=lambda kind: -len(kind.trials)))


def failures(run: int, kinds: tuple[FailureKind, ...], listed: frozenset[int]) -> Markup:
    """Draws them; ``listed`` are the trials that the page has a row of."""
    if not kinds:
        return element("p", "None.")
    left_out = len(kinds) - len(kinds[:KINDS_SHOWN])
    rarer = f"{count_text(left_out, 'rarer kind')} left out." if left_out else None
    return joined(
        (
            bars(_stages(kinds)),
            *(_kind(run, index, kind, listed) for index, kind in enumerate(kinds[:KINDS_SHOWN])),
            None if rarer is None else element("p", rarer, class_="faint"),
        )
    )


def kind_place(run: int, index: int) -> str:
    """Returns the name of a kind's place on the page."""
    return f"failure-{run}-{index}"


def _stages(kinds: tuple[FailureKind, ...]) -> tuple[Bar, ...]:
    """Returns a bar per stage, in the order that a candidate passes them."""
    counts = {stage: sum(len(kind.trials) for kind in kinds if kind.stage is stage) for stage in Stage}
    most = max(counts.values())
    return tuple(
        Bar(stage.value, count / most, count_text(count, "trial"), "failed")
        for stage, count in counts.items()
        if count
    )


def _kind(run: int, index: int, kind: FailureKind, listed: frozenset[int]) -> Markup:
    summary = element(
        "summary", element("b", f"{len(kind.trials)} x {kind.stage.value}"), " ", element("span", kind.reason)
    )
    links: list[str] = []
    linked = [trial for trial in kind.trials if trial in listed][:LINKS_SHOWN]
    for trial in linked:
        links += [element("a", str(trial), href=f"#t{trial}"), " "]
    left_out = len(kind.trials) - len(linked)
    more = f"and {left_out} more: tuner history --run {run} --status failed" if left_out else None
    return element(
        "details", summary, element("p", "trials ", *links, more), id=kind_place(run, index), class_="kind"
    )
