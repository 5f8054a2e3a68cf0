"""A report's section about a tuned program: its time, its fusions and its baselines."""

from dataclasses import dataclass

from tuner.analysis.ratios import faster_text
from tuner.core.programs import ExplainedFusion, ProgramResult
from tuner.core.requests import Campaign
from tuner.core.serialization import seconds_text
from tuner.results.output.formatting import Row
from tuner.results.output.program_tables import baseline_table, fusion_table, ratio_of
from tuner.results.report.content import Bar


@dataclass(frozen=True)
class ProgramSection:
    """The section of a report about a tuned program; the first row of a table is its header."""

    campaign: int  # id of the campaign
    source: str  # name of the program
    time: str  # of a call; "" where none was timed
    reliability: str  # of that time, with the reason
    gain: str  # over the program before the tuning; "" where the two are not comparable
    bars: tuple[Bar, ...]  # the time of each fusion
    fusions: tuple[Row, ...]
    left_out: tuple[str, ...]
    baseline_bars: tuple[Bar, ...]  # times of a call; () without a reliable ratio to a baseline
    baselines: tuple[Row, ...]  # () without a baseline


def program_section_of(campaign: Campaign) -> ProgramSection | None:
    """Returns the section of the program whose fusions a campaign tuned; None where there is none."""
    result = campaign.result
    if result is None:
        return None
    time = ""
    gain = ""
    if result.call_s is not None:
        time = seconds_text(result.call_s)
    if result.speed is not None:
        gain = faster_text(result.speed)
    return ProgramSection(
        campaign=campaign.id,
        source=campaign.settings.source,
        time=time,
        gain=gain,
        reliability=result.reliability.text,
        bars=_fusion_bars(result.fusions),
        fusions=fusion_table(result.fusions) if result.fusions else (),
        left_out=result.left_out,
        baseline_bars=_baseline_bars(result),
        baselines=baseline_table(result.baselines) if result.baselines else (),
    )


def _fusion_bars(fusions: tuple[ExplainedFusion, ...]) -> tuple[Bar, ...]:
    longest_s = max((fusion.time_s or 0.0 for fusion in fusions), default=0.0)
    if not longest_s:
        return ()
    bars = []
    for index, explained in enumerate(fusions):
        name = f"g{index} {explained.fusion.kind}, {explained.fusion.origin}"
        colour = "failed"  # loops have the colour of failures
        if explained.fusion.strategy:
            colour = "ours"
        bars.append(Bar(name, (explained.time_s or 0.0) / longest_s, _figure(explained), colour))
    return tuple(bars)


def _figure(explained: ExplainedFusion) -> str:
    if explained.time_s is None:
        return "not timed"
    figure = seconds_text(explained.time_s)
    if not explained.reliability.is_reliable:
        return f"{figure}, {explained.reliability.word}"
    if explained.share is not None:
        figure += f", {explained.share:.0%}"
    if explained.roofline is not None:
        figure += f", roofline {explained.roofline:.0%}"
    return figure


def _baseline_bars(result: ProgramResult) -> tuple[Bar, ...]:
    times_s: list[tuple[str, float, str]] = []
    for baseline in result.baselines:
        speed = ratio_of(baseline)
        if baseline.part or baseline.call_s is None or speed is None:
            continue
        if not times_s:  # all were timed in the same rounds: the first ratio gives tuner's time
            times_s.append(("tuner", baseline.call_s.median / speed.median, "ours"))
        times_s.append((baseline.name, baseline.call_s.median, "baseline"))
    longest_s = max((time_s for _, time_s, _ in times_s), default=0.0)
    return tuple(
        Bar(name, time_s / longest_s, seconds_text(time_s), colour) for name, time_s, colour in times_s
    )
