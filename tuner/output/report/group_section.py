"""The content of a report's section about a group of runs: many problems tuned under one budget."""

from dataclasses import dataclass

from tuner.analysis.many_shapes.held_out_choices import HeldOutChoice, held_out_choices
from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.run_groups import RunGroup
from tuner.output.report.portfolio_curve import PortfolioCurve, portfolio_curve_of
from tuner.output.report.time_map import TimeMap, time_map_of

CHOICES_SHOWN = 10  # the worst


@dataclass(frozen=True)
class ReportedGroup:
    """A group of runs, with the names of its problems and the times of its configurations."""

    group: RunGroup
    matrix: TimeMatrix


@dataclass(frozen=True)
class GroupSection:
    """The section of a report about a group: map of times, curve of portfolios, the worst choices."""

    group: RunGroup
    columns: tuple[Candidate, ...]  # the numbered configurations of the map, from 0
    time_map: TimeMap | None  # None: nothing was timed
    curve: PortfolioCurve | None  # None: too little was timed
    choices: tuple[HeldOutChoice, ...]  # the least efficient first; those without a time are left out
    untimed_choices: int  # problems whose choice was never timed on them

    @property
    def problems(self) -> int:
        """Returns the number of problems of the group."""
        return len(self.group.runs)


def group_section_of(reported: ReportedGroup) -> GroupSection:
    """Returns the section of one group of runs."""
    matrix = reported.matrix
    is_timed = bool(matrix.is_timed().any())
    choices = held_out_choices(matrix) if is_timed and len(matrix.problems) > 1 else ()
    timed = sorted((each for each in choices if each.efficiency is not None), key=_efficiency)
    return GroupSection(
        group=reported.group,
        columns=matrix.columns,
        time_map=time_map_of(matrix) if is_timed else None,
        curve=portfolio_curve_of(matrix) if is_timed else None,
        choices=tuple(timed[:CHOICES_SHOWN]),
        untimed_choices=len(choices) - len(timed),
    )


def _efficiency(choice: HeldOutChoice) -> float:
    assert choice.efficiency is not None
    return choice.efficiency
