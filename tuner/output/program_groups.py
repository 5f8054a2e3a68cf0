"""The groups of a program as a table: what each computes, what it takes, where its schedule comes from."""

from collections import Counter

from tuner.core.explained_group import ExplainedGroup
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import Row
from tuner.output.formatting import knobs_text
from tuner.output.json_documents import Document

HEADER: Row = (
    *("group", "kind", "before", "time", "reliability", "share", "roofline", "schedule", "operations"),
    "strategy and knobs",
)
BEFORE = HEADER.index("before")
SPARED = ("before", "kind")  # columns that a narrow terminal loses first


def group_table(groups: tuple[ExplainedGroup, ...]) -> tuple[Row, ...]:
    """Returns the table of a program's groups in order, its header first.

    The column of the times before the tuning is there where a group has one. "schedule" is where it comes
    from: tuned, same contraction, nearest, first; loops have their reason in place of strategy and knobs.
    """
    rows = (HEADER, *(_row(number, each) for number, each in enumerate(groups)))
    if any(each.before_s is not None for each in groups):
        return rows
    return tuple((*row[:BEFORE], *row[BEFORE + 1 :]) for row in rows)


def ops_text(ops: tuple[str, ...]) -> str:
    """Returns the names of operations, each once, with the number of times: "arith.addf x2"."""
    counts = Counter(ops)
    return ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items())


def explained_document(each: ExplainedGroup) -> Document:
    """Returns the JSON document of a group: what it computes, by which schedule, what it takes."""
    group = each.group
    return {
        "kind": group.kind,
        "ops": list(group.ops),
        "strategy": group.strategy or None,
        "knobs": dict(group.knobs),
        "origin": group.origin,
        "reason": group.reason or None,
        "divided": group.is_divided,
        "flop": group.flop,
        "bytes": group.moved_bytes,
        "time_s": each.time_s,
        "reliability": None if each.time_s is None else each.reliability.text,
        "share": each.share if each.reliability.is_reliable else None,
        "roofline": each.roofline if each.reliability.is_reliable else None,
    }


def _row(number: int, each: ExplainedGroup) -> Row:
    group = each.group
    schedule = f"{group.strategy} {knobs_text(group.knobs)}" if group.strategy else group.reason
    schedule += ", on all threads" if group.is_divided else ""
    return (
        f"g{number}",
        group.kind,
        _seconds(each.before_s),
        _seconds(each.time_s),
        "-" if each.time_s is None else each.reliability.word,
        _percent(each, each.share),
        _percent(each, each.roofline),
        group.origin,
        ops_text(group.ops),
        schedule,
    )


def _seconds(time_s: float | None) -> str:
    return "-" if time_s is None else seconds_text(time_s)


def _percent(each: ExplainedGroup, part: float | None) -> str:
    """Returns a part of another time in percent; '-' where there is none, or the time is not reliable."""
    return "-" if part is None or not each.reliability.is_reliable else f"{part:.0%}"
