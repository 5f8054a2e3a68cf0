"""A schedule for a group of operations that earlier trials suggest, and where it comes from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.problem import Problem


@dataclass(frozen=True)
class GroupSchedule:
    """A configuration and its script for one group."""

    candidate: Candidate
    script: str
    origin: str  # TUNED, SAME_CONTRACTION or NEAREST
    trial: int  # id of the stored trial that suggests it


Schedules = Callable[[Problem], Iterator[GroupSchedule]]  # the best first; a script may fail to compile


def no_schedules(_problem: Problem) -> Iterator[GroupSchedule]:
    """Returns no schedule for any group: each gets its first configuration."""
    return iter(())
