"""Events that a group of runs reports to its observer, which prints them."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.run_groups import RunGroup
from tuner.tuning.events import Event


@dataclass(frozen=True)
class GroupStarted:
    """Event: a group is stored or resumed, its pool is known, and its trials begin."""

    group: RunGroup
    proposed_before: int  # trials that earlier sessions of the group proposed


@dataclass(frozen=True)
class RunEvent:
    """Event: one of the runs of a group has reported an event."""

    place: int  # of the run in the group
    event: Event
    proposed: int  # trials of the group so far
    elapsed_s: float  # of all sessions of the group


GroupEvent = GroupStarted | RunEvent
GroupObserver = Callable[[GroupEvent], None]


def ignore_group(event: GroupEvent) -> None:
    """Does nothing: the default observer of a group's events."""
