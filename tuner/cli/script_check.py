"""The result of ``tuner check``: as lines for people, and as JSON."""

from typing import TYPE_CHECKING, Any

from tuner.core.time_text import seconds_text

if TYPE_CHECKING:
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
            time = "" if check.median_s is None else f"{seconds_text(check.median_s)}, "
            return [f"correct; {time}{check.reason}"]
        case CheckFinding.CANNOT_TELL:
            return [f"correct; cannot tell if slower: {check.reason}", *_time_lines(check, recorded_s)]
        case CheckFinding.NOT_SLOWER | CheckFinding.SLOWER:
            return [f"correct; {check.finding.value} {check.reason}", *_time_lines(check, recorded_s)]


def check_document(check: "ScriptCheck", recorded_s: float | None) -> dict[str, Any]:
    """Returns the JSON document of ``tuner check --json``.

    ``ratio`` is 1 + the slowdown since the recording, relative to reference kernels; null if not comparable.
    ``recorded_s`` is the time in the script's header, seconds per call.
    """
    from tuner.regression.script_check import CheckFinding

    slowdown = check.slowdown
    return {
        "correct": check.finding not in (CheckFinding.FAILED, CheckFinding.COMPILED),
        "median_s": check.median_s,
        "recorded_s": recorded_s,
        "ratio": None if slowdown is None else 1 + slowdown.median,
        "interval": None if slowdown is None else [1 + end for end in slowdown.interval],
        "finding": check.finding.value,
        "reason": check.reason,
        "sessions": check.sessions,
        "passed": check.finding.passes,
    }


def _time_lines(check: "ScriptCheck", recorded_s: float | None) -> list[str]:
    assert check.median_s is not None
    assert recorded_s is not None
    time = f"time   {seconds_text(check.median_s)}, recorded {seconds_text(recorded_s)}"
    if check.slowdown is None:
        return [time]
    low, high = check.slowdown.interval
    ratio = f"{1 + check.slowdown.median:.3f} (99 % interval {1 + low:.3f} .. {1 + high:.3f})"
    return [time, f"ratio  {ratio}, {check.sessions} sessions"]
