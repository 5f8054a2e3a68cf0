"""The baselines of a tuned program as a table: what else runs it, and how much faster the program is."""

from tuner.analysis.comparison import faster_text
from tuner.core.median_interval import MedianInterval
from tuner.core.program_result import ProgramBaseline
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import Row
from tuner.output.json_documents import Document

HEADER: Row = ("baseline", "time a call", "reliability", "the program is")


def baseline_table(baselines: tuple[ProgramBaseline, ...]) -> tuple[Row, ...]:
    """Returns the table of baselines, its header first; one that was not timed has its reason."""
    return (HEADER, *(_row(each) for each in baselines))


def baseline_document(each: ProgramBaseline) -> Document:
    """Returns the JSON document of one baseline: seconds of a call, and the ratio with its interval.

    ``speedup`` is null where no ratio may be printed; ``reason`` is then why.
    """
    speed = ratio_of(each)
    return {
        "name": each.name,
        "call_s": None if each.call_s is None else each.call_s.median,
        "reliability": None if each.call_s is None else each.reliability.text,
        "speedup": None if speed is None else speed.median,
        "speedup_interval": None if speed is None else [speed.low, speed.high],
        "reason": None if speed is not None else _why_no_ratio(each),
    }


def ratio_of(each: ProgramBaseline) -> MedianInterval | None:
    """Returns how many times as fast the program is, where the times are reliable; else None."""
    return each.speed if each.reliability.is_reliable else None


def _why_no_ratio(each: ProgramBaseline) -> str:
    return each.reason or each.reliability.reason


def _row(each: ProgramBaseline) -> Row:
    if each.call_s is None:
        return (each.name, "-", "-", f"not compared: {each.reason}")
    speed = ratio_of(each)
    found = f"no ratio: {_why_no_ratio(each)}" if speed is None else faster_text(speed)
    return (each.name, seconds_text(each.call_s.median), each.reliability.word, found)
