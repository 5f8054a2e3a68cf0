"""The baselines of a tuned program as a table: what else runs it, and how much faster the program is."""

from tuner.core.median_interval import MedianInterval
from tuner.core.program_result import ProgramBaseline
from tuner.output.fitted_table import Row
from tuner.output.formatting import seconds_text
from tuner.output.json_documents import Document

HEADER: Row = ("baseline", "time a call", "the program is")


def baseline_table(baselines: tuple[ProgramBaseline, ...]) -> tuple[Row, ...]:
    """Returns the table of baselines, its header first; one that was not timed has its reason."""
    return (HEADER, *(_row(each) for each in baselines))


def baseline_document(each: ProgramBaseline) -> Document:
    """Returns the JSON document of one baseline: seconds of a call, and the ratio with its interval."""
    return {
        "name": each.name,
        "call_s": None if each.call_s is None else each.call_s.median,
        "speedup": None if each.speed is None else each.speed.median,
        "speedup_interval": None if each.speed is None else [each.speed.low, each.speed.high],
        "reason": each.reason or None,
    }


def times_as_fast(speed: MedianInterval) -> str:
    """Returns a ratio of speeds with its interval: "1.31 times as fast (1.25 .. 1.36)"."""
    return f"{speed.median:.2f} times as fast ({speed.low:.2f} .. {speed.high:.2f})"


def _row(each: ProgramBaseline) -> Row:
    if each.call_s is None or each.speed is None:
        return (each.name, "-", f"not compared: {each.reason}")
    return (each.name, seconds_text(each.call_s.median), times_as_fast(each.speed))
