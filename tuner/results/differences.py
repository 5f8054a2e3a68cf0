"""Differences between two trials, or between two runs that should be equal, as values, lines and JSON.

``trial_difference`` compares knobs, code of each stage, and time; ``differences`` compares runs trial by
trial, apart from clocks and IDs.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.analysis.ratios import Comparable, NotComparable, between_trials
from tuner.analysis.selected_result import timed
from tuner.core.candidate import Value
from tuner.core.runs import Run, StoredTrial
from tuner.core.serialization import interval_text
from tuner.results.output.formatting import count_text, table_lines, trial_time_text
from tuner.results.output.json_documents import Document, history_document, slowdown_document
from tuner.results.output.tables import resources_lines
from tuner.targets.gpu.sass import assembly_mix, instruction_mix

# ------------------------------------------------------------------------------
# The differences between two runs with the same settings, trial by trial, apart from clocks and IDs.


@dataclass(frozen=True)
class Difference:
    """One property of one trial that differs between two runs, with both values as text."""

    number: int  # of the trial
    what: str
    first: str
    second: str

    @property
    def text(self) -> str:
        """Returns the difference as one line: the trial's number, the property, and its value in each run."""
        return f"trial {self.number}: {self.what}: {self.first} in the first run, {self.second} in the second"


def differences(first: tuple[StoredTrial, ...], second: tuple[StoredTrial, ...]) -> tuple[Difference, ...]:
    """Returns the differences between two runs' trials, matched by number: at most one per trial.

    That is the first unequal property of proposal, outcome, knobs, verdict, script, code, origin and final
    time. A trial that only one run has differs, too.
    """
    ours, theirs = _run_facts(first), _run_facts(second)
    return tuple(
        Difference(number, name, a, b)
        for number in sorted({*ours, *theirs})
        for name, a, b in list(_unequal(ours.get(number, {}), theirs.get(number, {})))[:1]
    )


def _unequal(first: dict[str, object], second: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    for name in {**first, **second}:
        a, b = first.get(name), second.get(name)
        if a != b:
            yield name, str(a), str(b)


def _run_facts(trials: tuple[StoredTrial, ...]) -> dict[int, dict[str, object]]:
    """Returns, by trial number, the properties that do not depend on interruptions of a run."""
    numbers = {trial.id: trial.number for trial in trials}
    return {trial.number: dict(_facts_of(trial, numbers)) for trial in trials}


def _facts_of(trial: StoredTrial, numbers: dict[int, int]) -> Iterator[tuple[str, object]]:
    yield "row", trial.row
    record = trial.record
    yield "outcome", record.outcome
    yield "knobs", record.candidate.text
    yield "verdict", record.verdict
    yield "script", record.script_sha256
    yield "code", record.artifact_sha256
    origin = record.reused_from
    yield "reused from", origin if origin is None else numbers.get(origin, f"trial {origin} of another run")
    yield "final", trial.final


# ------------------------------------------------------------------------------
# The differences between runs that should be equal, as lines and as a JSON document.


SHOWN = 10  # differences


def run_difference_lines(found: "Sequence[Difference]") -> list[str]:
    """Returns the number of differences between two runs' trials, and the first 10 of them, as lines."""
    return [f"differences  {len(found)}", *(f"  {each.text}" for each in found[:SHOWN])]


def run_difference_document(found: "Sequence[Difference]") -> dict[str, Any]:
    """Returns JSON of the differences between two runs' trials: their number, and the text of each."""
    return {"differences": len(found), "found": [each.text for each in found]}


# ------------------------------------------------------------------------------
# The differences between two trials: knobs, texts of each stage, instruction counts, time.


CONTEXT_LINES = 2  # around a change
Stages = tuple[tuple[str, str], ...]  # (stage, text after it), in order


@dataclass(frozen=True)
class StageDifference:
    """How the texts of two trials after one stage of compilation differ: a unified diff, with counts."""

    stage: str
    added: int  # lines only in the second
    removed: int  # lines only in the first
    lines: tuple[str, ...]  # a unified diff; () where the texts are equal


@dataclass(frozen=True)
class TrialDifference:
    """How a second trial differs from a first: knobs, text after each stage, instruction counts, and time."""

    first: StoredTrial
    second: StoredTrial
    knobs: tuple[tuple[str, Value | None, Value | None], ...]  # (name, first, second); None: no such knob
    compared: Comparable | NotComparable | None  # second over first; None: no time, or other problems
    stages: tuple[StageDifference, ...]  # stages that both trials have
    instructions: tuple[tuple[str, int, int], ...]  # unequal counts, the largest difference first

    @property
    def is_of_one_problem(self) -> bool:
        """Returns whether the two compared trials are of the same problem."""
        return self.first.record.problem == self.second.record.problem

    @property
    def first_stage(self) -> str | None:
        """Returns the first stage after which the texts of the two trials differ; None: all are equal."""
        return next((each.stage for each in self.stages if each.lines), None)


def trial_difference(
    run: Run, first: StoredTrial, second: StoredTrial, first_stages: Stages, second_stages: Stages
) -> TrialDifference:
    """Returns how ``second``, a trial of ``run``, differs from ``first``, a trial of any run.

    ``first_stages`` and ``second_stages`` are (stage, text after it) pairs, see ``trial_stages``; only stages
    that both trials have are compared. The ratio of times is left out for different problems or a missing
    time.
    """
    ours, theirs = dict(first_stages), dict(second_stages)
    is_comparable = first.record.problem == second.record.problem
    has_times = first.time_s is not None and second.time_s is not None
    return TrialDifference(
        first,
        second,
        _unequal_knobs(first, second),
        between_trials(run, second, first) if is_comparable and has_times else None,
        tuple(_stage(name, ours[name], theirs[name]) for name in ours if name in theirs),
        _unequal_instructions(ours, theirs),
    )


def _unequal_knobs(
    first: StoredTrial, second: StoredTrial
) -> tuple[tuple[str, Value | None, Value | None], ...]:
    ours, theirs = first.knobs, second.knobs
    names = (name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))
    return tuple((name, ours.get(name), theirs.get(name)) for name in names)


def _stage(name: str, ours: str, theirs: str) -> StageDifference:
    lines = tuple(difflib.unified_diff(ours.splitlines(), theirs.splitlines(), lineterm="", n=CONTEXT_LINES))[
        2:
    ]  # without the names of files
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return StageDifference(name, added, removed, lines)


def _unequal_instructions(
    ours: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[tuple[str, int, int], ...]:
    """Returns unequal instruction counts, in the assembly where both trials have it, else in the code."""
    for stage, mix in (("assembly", assembly_mix), ("code", instruction_mix)):
        if stage in ours and stage in theirs:
            return _unequal_counts(dict(mix(ours[stage])), dict(mix(theirs[stage])))
    return ()


def _unequal_counts(first: Mapping[str, int], second: Mapping[str, int]) -> tuple[tuple[str, int, int], ...]:
    pairs = ((name, first.get(name, 0), second.get(name, 0)) for name in {**first, **second})
    return tuple(sorted((each for each in pairs if each[1] != each[2]), key=_by_difference))


def _by_difference(counts: tuple[str, int, int]) -> tuple[int, str]:
    return -abs(counts[2] - counts[1]), counts[0]


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
    facts = zip(_trial_facts(found.first), _trial_facts(found.second), strict=True)
    rows = [(name, ours, theirs) for (name, ours), (_, theirs) in facts if ours != theirs] + pairs
    header = ("", f"trial {found.first.id}", f"trial {found.second.id}")
    same = [] if found.knobs else ["knobs     the same"]
    return [*table_lines(header, rows, columns), *same]


def _trial_facts(trial: StoredTrial) -> Iterator[tuple[str, str]]:
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
