"""Results of tuned programs: fusions and baselines, as tables and JSON documents.

First the baselines, then the fusions, each as a table and as a document; at the end the whole program.
"""

from collections import Counter
from collections.abc import Sequence

from tuner.analysis.ratios import faster_text
from tuner.core.programs import (
    NO_GAIN,
    ExplainedFusion,
    ProgramBaseline,
    ProgramResult,
    given_up_note,
    loops_note,
)
from tuner.core.records import MedianInterval
from tuner.core.serialization import seconds_text
from tuner.results.output.formatting import Row, knobs_text, table_lines
from tuner.results.output.json_documents import Document

BASELINES_HEADER: Row = ("baseline", "time a call", "reliability", "the program is")
FUSIONS_HEADER: Row = (
    *("fusion", "kind", "before", "time", "reliability", "share", "roofline", "schedule", "operations"),
    "strategy and knobs",
)
BEFORE = FUSIONS_HEADER.index("before")
FUSIONS_SPARED = ("before", "kind", "roofline", "share")  # columns that a narrow terminal loses first


def baseline_table(baselines: tuple[ProgramBaseline, ...]) -> tuple[Row, ...]:
    """Returns the table of baselines, header first; the last cell says why there is no time or no ratio."""
    rows = [BASELINES_HEADER]
    for baseline in baselines:
        speed = ratio_of(baseline)
        compared = f"no ratio: {_why_no_ratio(baseline)}" if speed is None else faster_text(speed)
        if baseline.call_s is None:
            rows.append((baseline.title, "-", "-", f"not compared: {baseline.reason}"))
        else:
            rows.append(
                (baseline.title, seconds_text(baseline.call_s.median), baseline.reliability.word, compared)
            )
    return tuple(rows)


def baseline_document(baseline: ProgramBaseline) -> Document:
    """Returns the JSON document of one baseline: seconds of a call, and how many times as fast tuner is.

    "speedup" and its interval are null where times are missing or unreliable; "reason" then says why.
    """
    speed = ratio_of(baseline)
    return {
        "name": baseline.name,
        "part": baseline.part or None,
        "call_s": None if baseline.call_s is None else baseline.call_s.median,
        "reliability": None if baseline.call_s is None else baseline.reliability.text,
        "speedup": None if speed is None else speed.median,
        "speedup_interval": None if speed is None else [speed.low, speed.high],
        "reason": None if speed is not None else _why_no_ratio(baseline),
    }


def ratio_of(baseline: ProgramBaseline) -> MedianInterval | None:
    """Returns the program's speed divided by the baseline's; None if times are missing or unreliable."""
    if baseline.reliability.is_reliable:
        return baseline.speed
    return None


def losses(baselines: Sequence[ProgramBaseline]) -> list[str]:
    """Returns a clause for each baseline that is reliably faster than the program.

    Such as "than eager: 0.80 times as fast (95 % interval 0.78 .. 0.82)".
    """
    return [
        f"than {baseline.title}: {faster_text(baseline.speed)}"
        for baseline in baselines
        if baseline.is_faster and baseline.speed is not None
    ]


def _why_no_ratio(baseline: ProgramBaseline) -> str:
    return baseline.reason or baseline.reliability.reason


def fusion_table(fusions: tuple[ExplainedFusion, ...]) -> tuple[Row, ...]:
    """Returns the table of a program's fusions in order, header first.

    The column of times before tuning is left out if no fusion has one.
    """
    rows = (FUSIONS_HEADER, *(_fusion_row(index, fusion) for index, fusion in enumerate(fusions)))
    if any(fusion.before_s is not None for fusion in fusions):
        return rows
    return tuple((*row[:BEFORE], *row[BEFORE + 1 :]) for row in rows)


def ops_text(ops: tuple[str, ...]) -> str:
    """Returns the names of operations, each once, with the number of times: "arith.addf x2"."""
    counts = Counter(ops)
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())


def explained_document(explained: ExplainedFusion) -> Document:
    """Returns the JSON document of one fusion: its operations, its schedule, its time and roofline.

    Shares are null if the time is unreliable.
    """
    fusion = explained.fusion
    return {
        "kind": fusion.kind,
        "ops": list(fusion.ops),
        "strategy": fusion.strategy or None,
        "knobs": dict(fusion.knobs),
        "origin": fusion.origin,
        "reason": fusion.reason or None,
        "divided": fusion.is_divided,
        "flop": fusion.flop,
        "bytes": fusion.moved_bytes,
        "time_s": explained.time_s,
        "reliability": None if explained.time_s is None else explained.reliability.text,
        "share": explained.share if explained.reliability.is_reliable else None,
        "roofline": explained.roofline if explained.reliability.is_reliable else None,
    }


def _fusion_row(number: int, explained: ExplainedFusion) -> Row:
    fusion = explained.fusion
    if fusion.strategy:
        schedule = f"{fusion.strategy} {knobs_text(fusion.knobs)}"
    else:
        schedule = fusion.reason
    schedule += ", on all threads" if fusion.is_divided else ""
    return (
        f"g{number}",
        fusion.kind,
        _seconds(explained.before_s),
        _seconds(explained.time_s),
        "-" if explained.time_s is None else explained.reliability.word,
        _percent(explained, explained.share),
        _percent(explained, explained.roofline),
        fusion.origin,
        ops_text(fusion.ops),
        schedule,
    )


def fusion_lines(
    fusions: tuple[ExplainedFusion, ...], columns: int | None, left_out: Sequence[str] = ()
) -> list[str]:
    """Returns the table of fusions as lines, then notes: failed configurations, time in scalar loops.

    ``left_out``: a line for each fusion that is not tuned, printed as a note.
    """
    lines = []
    if fusions:
        header, *rows = fusion_table(fusions)
        lines = table_lines(header, rows, columns, FUSIONS_SPARED)
    given_up = given_up_note([fusion.fusion for fusion in fusions])
    lines += [f"note    {given_up}"] if given_up else []
    return lines + [f"loops   {line}" for line in (*left_out, loops_note(fusions)) if line]


def _seconds(time_s: float | None) -> str:
    if time_s is None:
        return "-"
    return seconds_text(time_s)


def _percent(explained: ExplainedFusion, part: float | None) -> str:
    if part is None or not explained.reliability.is_reliable:
        return "-"
    return f"{part:.0%}"


def stored_program_lines(result: ProgramResult, columns: int | None = None) -> list[str]:
    """Returns a tuned program as lines: fusions, those left as scalar loops, time, gain, baselines."""
    lines = fusion_lines(result.fusions, columns, result.left_out)
    if result.call_s is not None:
        before = "" if result.before_s is None else f", {seconds_text(result.before_s)} without tuning"
        lines.append(f"time    {seconds_text(result.call_s)} a call{before}")
        lines.append(f"reliable {result.reliability.answer}")
    if result.speed is not None or result.gain_unknown:
        lines.append(gain_line(result.speed, result.gain_unknown))
    return lines + baseline_lines(result.baselines, columns)


def gain_line(speed: MedianInterval | None, unknown: str = "") -> str:
    """Returns a line with the speed of a tuned program relative to the untuned one; ``speed`` None: unknown.

    ``unknown``: why the speed is unknown, or a text that the tuned schedules are not faster and the program
    therefore does not use them.
    """
    if speed is not None:
        return f"gain    {faster_text(speed)}: worth it"
    if unknown.startswith(NO_GAIN):
        return f"gain    {unknown}"
    return f"gain    unknown: {unknown}"


def baseline_lines(baselines: tuple[ProgramBaseline, ...], columns: int | None) -> list[str]:
    """Returns the table of baselines as lines, and a line for each that is reliably faster."""
    if not baselines:
        return []
    header, *rows = baseline_table(baselines)
    slower = [f"slower  {clause}" for clause in losses(baselines)]
    return [*table_lines(header, rows, columns), *slower]


def stored_program_document(result: ProgramResult) -> Document:
    """Returns the JSON document of a tuned program: times of a call, speedup, fusions, baselines."""
    speed = result.speed
    return {
        "call_s": result.call_s,
        "before_s": result.before_s,
        "reliability": None if result.call_s is None else result.reliability.text,
        "speedup": None if speed is None else speed.median,
        "speedup_interval": None if speed is None else [speed.low, speed.high],
        "speedup_unknown": result.gain_unknown or None,
        "fusions": [{**explained_document(fusion), "before_s": fusion.before_s} for fusion in result.fusions],
        "left_out": list(result.left_out),
        "baselines": list(map(baseline_document, result.baselines)),
    }
