"""The content of a report's section about a tuned program: its groups, and what else runs it."""

from dataclasses import dataclass

from tuner.analysis.comparison import faster_text
from tuner.core.explained_group import ExplainedGroup
from tuner.core.program_result import ProgramBaseline, ProgramResult
from tuner.core.run_groups import RunGroup
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import Row
from tuner.output.program_baselines import baseline_table, ratio_of
from tuner.output.program_groups import group_table
from tuner.output.report.bars import Bar


@dataclass(frozen=True)
class ProgramSection:
    """The section of a report about a tuned program; the first row of a table is its header."""

    group: int  # id of the group of runs
    source: str  # name of the program
    time: str  # of a call; "" where none was timed
    reliability: str  # of that time, with the reason
    gain: str  # over the program before the tuning; "" where the two are not comparable
    bars: tuple[Bar, ...]  # the time of each group
    groups: tuple[Row, ...]
    left_out: tuple[str, ...]
    baseline_bars: tuple[Bar, ...]  # times of a call; () without a timed baseline
    baselines: tuple[Row, ...]  # () without a baseline


def program_section_of(group: RunGroup) -> ProgramSection | None:
    """Returns the section of the program whose groups a group of runs tuned; None where there is none."""
    result = group.result
    if result is None:
        return None
    return ProgramSection(
        group=group.id,
        source=group.settings.source,
        time="" if result.call_s is None else seconds_text(result.call_s),
        gain="" if result.speed is None else faster_text(result.speed),
        reliability=result.reliability.text,
        bars=_group_bars(result.groups),
        groups=group_table(result.groups) if result.groups else (),
        left_out=result.left_out,
        baseline_bars=_baseline_bars(result),
        baselines=baseline_table(result.baselines) if result.baselines else (),
    )


def _group_bars(groups: tuple[ExplainedGroup, ...]) -> tuple[Bar, ...]:
    """Returns a bar for the time of each group; groups that run as loops have the colour of failures."""
    longest_s = max((each.time_s or 0.0 for each in groups), default=0.0)
    if not longest_s:
        return ()
    return tuple(
        Bar(
            f"g{number} {each.group.kind}, {each.group.origin}",
            (each.time_s or 0.0) / longest_s,
            _figure(each),
            "ours" if each.group.strategy else "failed",
        )
        for number, each in enumerate(groups)
    )


def _figure(each: ExplainedGroup) -> str:
    if each.time_s is None:
        return "not timed"
    share = "" if each.share is None else f", {each.share:.0%}"
    roofline = "" if each.roofline is None else f", roofline {each.roofline:.0%}"
    if not each.reliability.is_reliable:
        return f"{seconds_text(each.time_s)}, {each.reliability.word}"
    return f"{seconds_text(each.time_s)}{share}{roofline}"


def _baseline_bars(result: ProgramResult) -> tuple[Bar, ...]:
    """Returns a bar for the time of a call by each baseline, relative to the longest, tuner's first.

    Tuner's is the baseline's over the ratio, of the first baseline: all were timed in the same rounds.
    """
    timed = [each for each in result.baselines if ratio_of(each) is not None]
    if not timed or timed[0].speed is None:
        return ()
    ours_s = _median_s(timed[0]) / timed[0].speed.median
    rows = [("tuner", ours_s, "ours"), *((each.name, _median_s(each), "baseline") for each in timed)]
    longest_s = max(seconds for _, seconds, _ in rows)
    return tuple(Bar(name, seconds / longest_s, seconds_text(seconds), kind) for name, seconds, kind in rows)


def _median_s(each: ProgramBaseline) -> float:
    assert each.call_s is not None
    return each.call_s.median
