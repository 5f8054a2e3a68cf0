"""The comparison of two trials, as lines and as a JSON document."""

from collections.abc import Iterator

from tuner.analysis.comparison import NotComparable
from tuner.analysis.selected_result import timed
from tuner.core.runs import StoredTrial
from tuner.core.time_text import interval_text
from tuner.output.fitted_table import table_lines
from tuner.output.formatting import count_text, trial_time_text
from tuner.output.json_documents import Document, history_document, slowdown_document
from tuner.output.tables import resources_lines
from tuner.run_history.trial_difference import StageDifference, TrialDifference

INSTRUCTIONS_SHOWN = 12
NONE = "-"
FIRST = "first"  # the first stage that differs


def difference_lines(found: TrialDifference, shown: tuple[str, ...], columns: int | None = None) -> list[str]:
    """Returns the comparison of two trials as lines: knobs, times, stages, instruction counts.

    ``shown`` names the stages whose texts are compared line by line; FIRST stands for the first stage whose
    texts differ. ``columns``: the width of the terminal; None without a limit.
    """
    lines = _table_lines(found, columns)
    lines += _time_lines(found)
    lines += _stage_lines(found)
    lines += _instruction_lines(found, columns)
    for stage in found.stages:
        is_shown = stage.stage in shown or (FIRST in shown and stage.stage == found.first_stage)
        if is_shown and stage.lines:
            lines += [f"--- {stage.stage} of trial {found.first.id}"]
            lines += [f"+++ {stage.stage} of trial {found.second.id}", *stage.lines]
    return lines


def difference_document(found: TrialDifference) -> Document:
    """Returns the JSON document of ``tuner diff --json``, the comparison of two trials."""
    compared = found.compared or NotComparable(_no_times(found))
    return {
        "first": history_document(found.first),
        "second": history_document(found.second),
        "knobs": {name: [ours, theirs] for name, ours, theirs in found.knobs},
        **slowdown_document(compared),
        "first_stage": found.first_stage,
        "stages": [
            {"stage": each.stage, "added": each.added, "removed": each.removed, "diff": list(each.lines)}
            for each in found.stages
        ],
        "instructions": {name: [ours, theirs] for name, ours, theirs in found.instructions},
    }


def _table_lines(found: TrialDifference, columns: int | None) -> list[str]:
    """Returns a table of the properties and knobs that differ, one line each."""
    pairs = [(name, *map(_value, values)) for name, *values in found.knobs]
    facts = zip(_facts(found.first), _facts(found.second), strict=True)
    rows = [(name, ours, theirs) for (name, ours), (_, theirs) in facts if ours != theirs] + pairs
    header = ("", f"trial {found.first.id}", f"trial {found.second.id}")
    same = [] if found.knobs else ["knobs     the same"]
    return [*table_lines(header, rows, columns), *same]


def _facts(trial: StoredTrial) -> Iterator[tuple[str, str]]:
    record = trial.record
    yield "problem", record.problem.key
    yield "target", record.target.text
    yield "threads", str(trial.threads)
    yield "machine", trial.machine.name
    yield "strategy", trial.strategy
    yield "status", record.status
    has_interval = trial.time_s is not None and trial.early_stopped is None
    yield "time", trial_time_text(trial)
    yield "reliable", "-" if trial.best_s is None else trial.reliability.answer
    yield "interval", interval_text(timed(trial).interval_s) if has_interval else NONE
    kernels = (line.removeprefix("kernel").strip() for line in resources_lines(record.resources))
    yield "resources", "; ".join(kernels) or NONE


def _value(value: object) -> str:
    return NONE if value is None else str(value)


def _time_lines(found: TrialDifference) -> list[str]:
    compared = found.compared
    if compared is None:
        return [f"change    unknown: {_no_times(found)}"]
    if isinstance(compared, NotComparable):
        return [f"change    {'none' if compared.is_equal else 'unknown'}: {compared.reason}"]
    return [f"change    trial {found.second.id} takes {compared.longer_text}"]


def _no_times(found: TrialDifference) -> str:
    return "one has no time" if found.is_of_one_problem else "the problems differ"


def _stage_lines(found: TrialDifference) -> list[str]:
    phrase = "at no stage" if found.first_stage is None else f"first at stage {found.first_stage}"
    return [f"differ    {phrase}", *map(_stage_line, found.stages)] if found.stages else []


def _stage_line(stage: StageDifference) -> str:
    if not stage.lines:
        return f"{stage.stage:<9} the same"
    return f"{stage.stage:<9} {count_text(stage.added, 'line')} added, {stage.removed} removed"


def _instruction_lines(found: TrialDifference, columns: int | None) -> list[str]:
    shown = found.instructions[:INSTRUCTIONS_SHOWN]
    rows = [(name, str(ours), str(theirs), f"{theirs - ours:+d}") for name, ours, theirs in shown]
    if not rows:
        return []
    header = ("instruction", f"trial {found.first.id}", f"trial {found.second.id}", "change")
    more = len(found.instructions) - len(shown)
    return [*table_lines(header, rows, columns), *([f"and {more} more"] if more else [])]
