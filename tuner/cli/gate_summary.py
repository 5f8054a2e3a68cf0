"""The result of ``tuner gate``: as Markdown for a CI summary, as a table, and as JSON."""

from typing import TYPE_CHECKING, Any

from tuner.analysis.comparison import Comparable
from tuner.core.time_text import seconds_text
from tuner.output.fitted_table import table_lines
from tuner.output.formatting import count_text, one_line

if TYPE_CHECKING:
    from tuner.regression.gate import GateResult

HEADER = ("problem", "result", "slowdown", "99 % interval", "noise", "then", "now", "reliable")
SPARED = ("noise", "99 % interval")  # columns that a narrow terminal loses first


def gate_markdown(results: "tuple[GateResult, ...]") -> str:
    """Returns the results of ``tuner gate`` as Markdown: headline, a table line per kernel, reasons.

    Reasons are given for the kernels that were not timed.
    """
    rows = [_markdown_row(result) for result in results]
    reasons = [
        f"- {result.entry.key}: {_escaped(result.reason)}" for result in results if result.slowdown is None
    ]
    table = (_piped(HEADER), f"|{'---|' * len(HEADER)}", *rows)
    return "\n".join((f"### tuner gate: {_head(results)}", "", *table, *([""] if reasons else []), *reasons))


def gate_table(results: "tuple[GateResult, ...]", columns: int) -> list[str]:
    """Returns the results of ``tuner gate`` as a table of at most ``columns`` characters, and a verdict line.

    Reasons of untimed kernels are left out: they are printed while the gate runs.
    """
    rows = [(result.entry.key, result.status.value, *_times(result)) for result in results]
    return [*table_lines(HEADER, rows, columns, SPARED), f"gate: {_head(results)}"]


def gate_document(results: "tuple[GateResult, ...]") -> dict[str, Any]:
    """Returns the JSON document of ``tuner gate --json``: whether the gate passed, an entry per kernel."""
    passed = all(result.status.passes for result in results)
    return {"passed": passed, "entries": [_entry_document(result) for result in results]}


def gate_line(result: "GateResult") -> str:
    """Returns the result of one kernel as a progress line: status, slowdown with interval, reason.

    A slowdown that may not be printed is replaced by why not.
    """
    return f"{result.entry.key}: {result.status.value},{_slowdown_text(result)} {result.reason}"


def _slowdown_text(result: "GateResult") -> str:
    """Returns the slowdown of a kernel with its interval, or why none is printed; '' if it was not timed."""
    if result.slowdown is None:
        return ""
    compared = result.compared
    if isinstance(compared, Comparable):
        return f" {compared.longer_text},"
    return f" {result.reliability.text if result.reliability.unreliable else compared.reason},"


def _head(results: "tuple[GateResult, ...]") -> str:
    stopped = sum(not result.status.passes for result in results)
    return f"{stopped} of {count_text(len(results), 'kernel')} stopped the gate" if stopped else "passed"


def _markdown_row(result: "GateResult") -> str:
    status = result.status.value if result.status.passes else f"**{result.status.value}**"
    return _piped((result.entry.key, status, *_times(result)))


def _piped(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _times(result: "GateResult") -> tuple[str, ...]:
    slowdown = result.slowdown
    if slowdown is None or result.then_s is None or result.now_s is None:
        return ("-",) * 6
    low, high = slowdown.interval
    compared = result.compared
    longer = compared.longer_percent_text if isinstance(compared, Comparable) else "-"
    noise = (longer, f"{low:+.1%} .. {high:+.1%}", f"{slowdown.noise:.1%}")
    return (*noise, seconds_text(result.then_s), seconds_text(result.now_s), result.reliability.word)


def _escaped(text: str) -> str:
    """Returns a reason, which may quote untrusted text, with Markdown's special characters escaped."""
    return "".join(f"\\{sign}" if sign in "\\`*_|<>[]#" else sign for sign in one_line(text))


def _entry_document(result: "GateResult") -> dict[str, Any]:
    entry, slowdown, compared = result.entry, result.slowdown, result.compared
    return {
        "problem": entry.problem.key,
        "target": entry.target.text,
        "threads": entry.threads,
        "candidate": entry.candidate.text,
        "status": result.status.value,
        "passed": result.status.passes,
        "reason": result.reason,
        "slowdown": compared.longer if isinstance(compared, Comparable) else None,
        "slowdown_unknown": None if isinstance(compared, Comparable) else compared.reason,
        "interval": None if slowdown is None else list(slowdown.interval),
        "noise": None if slowdown is None else slowdown.noise,
        "sessions": result.sessions,
        "then_s": result.then_s,
        "now_s": result.now_s,
        "reliability": result.reliability.text,
        "recorded_s": entry.measurement.median_s,  # alone, when the file was written
        "recorded_machine": entry.machine,
        "recorded_compiler": entry.compiler,
    }
