"""The content of a report's section about a group of runs: many problems tuned under one budget."""

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.analysis.many_shapes.held_out_choices import HeldOutChoice, held_out_choices
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.reliability import Reliability, reliability_of_all
from tuner.core.run_groups import RunGroup
from tuner.output.formatting import knobs_text
from tuner.output.report.content import ReportedGroup
from tuner.output.report.portfolio_curve import PortfolioCurve, portfolio_curve_of
from tuner.output.report.time_map import TimeMap, time_map_of

CHOICES_SHOWN = 10  # the worst


@dataclass(frozen=True)
class GroupSection:
    """The section of a report about a group: map of times, curve of portfolios, the worst choices."""

    group: RunGroup
    columns: tuple[Candidate, ...]  # the numbered configurations of the map, from 0
    time_map: TimeMap | None  # None: nothing was timed
    curve: PortfolioCurve | None  # None: too little was timed, or a time is unreliable
    choices: tuple[HeldOutChoice, ...]  # the least efficient first; those without a time are left out
    untimed_choices: int  # problems whose choice was never timed on them
    reliability: Mapping[Problem, Reliability]  # of the times of each problem

    @property
    def whole(self) -> Reliability:
        """Returns how reliable what the times of all problems give is."""
        return reliability_of_all(tuple(self.reliability.values()))

    @property
    def problems(self) -> int:
        """Returns the number of problems of the group."""
        return len(self.group.runs)


def group_section_of(reported: ReportedGroup) -> GroupSection:
    """Returns the section of one group of runs."""
    matrix, trusts = reported.matrix, tuple(run.reliability for run in reported.group.runs)
    is_timed = bool(matrix.is_timed().any())
    choices = held_out_choices(matrix) if is_timed and len(matrix.problems) > 1 else ()
    timed = sorted((each for each in choices if each.efficiency is not None), key=_efficiency)
    return GroupSection(
        group=reported.group,
        columns=matrix.columns,
        time_map=time_map_of(matrix, trusts) if is_timed else None,
        curve=None if not is_timed or reliability_of_all(trusts).unreliable else portfolio_curve_of(matrix),
        choices=tuple(timed[:CHOICES_SHOWN]),
        untimed_choices=len(choices) - len(timed),
        reliability=dict(zip(matrix.problems, trusts, strict=True)),
    )


def share_text(share: float | None) -> str:
    """Returns a share of the best speed in percent, "97.1%"; "unknown" for None."""
    return "unknown" if share is None else f"{100 * share:.1f}%"


def choice_rows(section: GroupSection) -> tuple[tuple[str, ...], ...]:
    """Returns the table of the worst choices of dispatch, its head first."""
    rows = (
        (
            each.problem.key,
            share_text(None if section.reliability[each.problem].unreliable else each.efficiency),
            section.reliability[each.problem].word,
            each.source,
            f"{section.columns[each.column].strategy} {knobs_text(section.columns[each.column].choices)}",
        )
        for each in section.choices
    )
    return (("problem", "of the best", "reliability", "chosen by", "configuration"), *rows)


def _efficiency(choice: HeldOutChoice) -> float:
    assert choice.efficiency is not None
    return choice.efficiency
