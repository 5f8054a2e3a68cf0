"""What is stored of a tuned program, as lines and as a JSON document."""

from tuner.analysis.comparison import faster_text
from tuner.core.program_result import ProgramResult
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import table_lines
from tuner.output.group_result import group_document
from tuner.output.json_documents import Document
from tuner.output.program_baselines import baseline_document, baseline_table
from tuner.output.program_groups import SPARED, explained_document, group_table
from tuner.tuning.many_shapes.tuned_group import TunedGroup


def stored_program_lines(result: ProgramResult, columns: int | None = None) -> list[str]:
    """Returns a tuned program as lines: its groups, its time, the gain, its baselines.

    ``columns``: width of the terminal; None without a limit.
    """
    lines: list[str] = []
    if result.groups:
        header, *rows = group_table(result.groups)
        lines += table_lines(header, rows, columns, SPARED)
    lines += [f"loops   {line}" for line in result.left_out]
    if result.call_s is not None:
        before = "" if result.before_s is None else f", {seconds_text(result.before_s)} without tuning"
        lines.append(f"time    {seconds_text(result.call_s)} a call{before}")
        lines.append(f"reliable {result.reliability.answer}")
    if result.speed is not None:
        lines.append(f"gain    {faster_text(result.speed)}")
    elif result.gain_unknown:
        lines.append(f"gain    unknown: {result.gain_unknown}")
    if result.baselines:
        header, *rows = baseline_table(result.baselines)
        lines += table_lines(header, rows, columns)
    return lines


def stored_program_document(result: ProgramResult) -> Document:
    """Returns the JSON document of a tuned program."""
    speed = result.speed
    return {
        "call_s": result.call_s,
        "before_s": result.before_s,
        "reliability": None if result.call_s is None else result.reliability.text,
        "speedup": None if speed is None else speed.median,
        "speedup_interval": None if speed is None else [speed.low, speed.high],
        "speedup_unknown": result.gain_unknown or None,
        "groups": [{**explained_document(each), "before_s": each.before_s} for each in result.groups],
        "left_out": list(result.left_out),
        "baselines": [baseline_document(each) for each in result.baselines],
    }


def shown_group_document(tuned: TunedGroup) -> Document:
    """Returns the JSON document of a stored group of runs, with the program whose groups it tuned."""
    result = tuned.group.result
    program = None if result is None else stored_program_document(result)
    return {**group_document(tuned), "program": program}
