"""The result of ``tuner check``: as lines for people, and as JSON."""

from typing import TYPE_CHECKING, Any

from tuner.analysis.comparison import Comparable
from tuner.core.time_text import seconds_text

if TYPE_CHECKING:
    from tuner.core.reliability import Reliability
    from tuner.regression.script_check import ScriptCheck


def check_lines(check: "ScriptCheck", recorded_s: float | None) -> list[str]:
    """Returns the finding of ``tuner check`` as lines, with the times and the ratio that the finding is from.

    ``recorded_s`` is the time in the script's header, seconds per call; None: the script was not timed.
    """
    from tuner.regression.script_check import CheckFinding

    match check.finding:
        case CheckFinding.FAILED | CheckFinding.COMPILED:
            return [check.reason]
        case CheckFinding.VERIFIED:
            if check.median_s is None:
                return [f"correct; {check.reason}"]
            time = f"{seconds_text(check.median_s)} ({check.reliability.text})"
            return [f"correct; {time}, {check.reason}"]
        case CheckFinding.CANNOT_TELL:
            return [f"correct; cannot tell if slower: {check.reason}", *_time_lines(check, recorded_s)]
        case CheckFinding.NOT_SLOWER | CheckFinding.SLOWER:
            return [f"correct; {check.finding.value} {check.reason}", *_time_lines(check, recorded_s)]


def check_document(check: "ScriptCheck", recorded_s: float | None, recorded: "Reliability") -> dict[str, Any]:
    """Returns the JSON document of ``tuner check --json``.

    ``ratio`` is 1 + the slowdown since the recording, relative to reference kernels; null where none may be
    printed, and ``ratio_unknown`` is then the reason. ``recorded_s`` is the time in the script's header,
    seconds per call, and ``recorded`` how reliable it is.
    """
    from tuner.regression.script_check import CheckFinding

    compared = check.compared
    return {
        "correct": check.finding not in (CheckFinding.FAILED, CheckFinding.COMPILED),
        "median_s": check.median_s,
        "reliability": check.reliability.text,
        "recorded_s": recorded_s,
        "recorded_reliability": None if recorded_s is None else recorded.text,
        "ratio": compared.ratio if isinstance(compared, Comparable) else None,
        "ratio_unknown": None if isinstance(compared, Comparable) else compared.reason,
        "interval": None if compared.interval is None else list(compared.interval),
        "finding": check.finding.value,
        "reason": check.reason,
        "sessions": check.sessions,
        "passed": check.finding.passes,
    }


def _time_lines(check: "ScriptCheck", recorded_s: float | None) -> list[str]:
    assert check.median_s is not None
    assert recorded_s is not None
    lines = [
        f"time      {seconds_text(check.median_s)}, recorded {seconds_text(recorded_s)}",
        f"reliable  {check.reliability.answer}",
    ]
    compared = check.compared
    if isinstance(compared, Comparable):
        lines.append(f"ratio     {compared.ratio_text}, {check.sessions} sessions")
    elif compared.is_equal:
        lines.append(f"ratio     {compared.reason}, {check.sessions} sessions")
    return lines
