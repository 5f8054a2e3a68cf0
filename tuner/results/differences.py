"""Differences between two trials, as values, lines and JSON: knobs, texts of stages, instructions, time.

``trial_difference`` compares two trials into a ``TrialDifference``; ``difference_lines`` and
``difference_document`` print it.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tuner.analysis.ratios import Comparable, NotComparable, between_trials
from tuner.analysis.selected_result import timed
from tuner.core.candidate import Value
from tuner.core.runs import Run
from tuner.core.serialization import count_text, interval_text
from tuner.core.trials import StoredTrial
from tuner.results.instruction_mix import assembly_mix, instruction_mix
from tuner.results.output.formatting import table_lines, trial_time_text, wrapped
from tuner.results.output.json_documents import Document, history_document, slowdown_document
from tuner.results.output.trial_facts import resources_lines

CONTEXT_LINES = 2  # around a change
Stages = tuple[tuple[str, str], ...]  # (stage, text after it), in order
INSTRUCTIONS_SHOWN = 12
NONE = "-"
FIRST = "first"  # the first stage that differs


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
        """True if both trials have the same problem: only then their times are compared."""
        return self.first.record.problem == self.second.record.problem

    @property
    def first_stage(self) -> str | None:
        """Returns the first stage after which the texts of the two trials differ; None: all are equal."""
        return next((stage.stage for stage in self.stages if stage.lines), None)


def trial_difference(
    run: Run, first: StoredTrial, second: StoredTrial, first_stages: Stages, second_stages: Stages
) -> TrialDifference:
    """Returns how ``second``, a trial of ``run``, differs from ``first``, a trial of any run.

    Stages are pairs (stage, text after it) of ``trial_stages``; texts of equal stages are compared. Times of
    different problems are not compared.
    """
    ours = dict(first_stages)
    theirs = dict(second_stages)
    knobs = []
    for name in {**first.knobs, **second.knobs}:
        knob = (name, first.knobs.get(name), second.knobs.get(name))
        if knob[1] != knob[2]:
            knobs.append(knob)
    is_of_one_problem = first.record.problem == second.record.problem
    compared = None
    if is_of_one_problem and first.time_s is not None and second.time_s is not None:
        compared = between_trials(run, second, first)
    stages = tuple(_stage(name, ours[name], theirs[name]) for name in ours if name in theirs)
    return TrialDifference(first, second, tuple(knobs), compared, stages, _unequal_instructions(ours, theirs))


def _stage(name: str, ours: str, theirs: str) -> StageDifference:
    diff = difflib.unified_diff(ours.splitlines(), theirs.splitlines(), lineterm="", n=CONTEXT_LINES)
    lines = tuple(diff)[2:]  # without the names of files
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return StageDifference(name, added, removed, lines)


def _unequal_instructions(
    ours: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[tuple[str, int, int], ...]:
    for stage, mix in (("assembly", assembly_mix), ("code", instruction_mix)):
        if stage in ours and stage in theirs:
            first = dict(mix(ours[stage]))
            second = dict(mix(theirs[stage]))
            counts = ((name, first.get(name, 0), second.get(name, 0)) for name in {**first, **second})
            unequal = [count for count in counts if count[1] != count[2]]
            return tuple(sorted(unequal, key=lambda counted: (-abs(counted[2] - counted[1]), counted[0])))
    return ()


def difference_lines(
    difference: TrialDifference, shown: tuple[str, ...], columns: int | None = None
) -> list[str]:
    """Returns a comparison of two trials as lines, with the diffs of the stages named in ``shown``.

    "first" in ``shown`` means the first stage that differs; ``columns``: width to fit tables to, None: any.
    """
    names = (f"trial {difference.first.id}", f"trial {difference.second.id}")
    lines = table_lines(("", *names), _unequal_facts(difference), columns)
    if not difference.knobs:
        lines.append("knobs     the same")
    lines += wrapped([f"change    {_change_text(difference)}"], columns)
    lines += _stage_lines(difference)
    lines += _instruction_lines(difference, names, columns)
    for stage in difference.stages:
        is_shown = stage.stage in shown or (FIRST in shown and stage.stage == difference.first_stage)
        if is_shown and stage.lines:
            lines += [f"--- {stage.stage} of {names[0]}", f"+++ {stage.stage} of {names[1]}", *stage.lines]
    return lines


def _unequal_facts(difference: TrialDifference) -> list[tuple[str, str, str]]:
    rows = []
    facts = zip(_trial_facts(difference.first), _trial_facts(difference.second), strict=True)
    for (name, ours), (_, theirs) in facts:
        if ours != theirs:
            rows.append((name, ours, theirs))
    for name, our_value, their_value in difference.knobs:
        rows.append((name, _value_text(our_value), _value_text(their_value)))
    return rows


def _value_text(value: Value | None) -> str:
    return NONE if value is None else str(value)


def _stage_lines(difference: TrialDifference) -> list[str]:
    if not difference.stages:
        return []
    first = difference.first_stage
    lines = ["differ    at no stage" if first is None else f"differ    first at stage {first}"]
    for stage in difference.stages:
        changed = "the same"
        if stage.lines:
            changed = f"{count_text(stage.added, 'line')} added, {stage.removed} removed"
        lines.append(f"{stage.stage:<9} {changed}")
    return lines


def _instruction_lines(difference: TrialDifference, names: tuple[str, str], columns: int | None) -> list[str]:
    rows = []
    for name, ours, theirs in difference.instructions[:INSTRUCTIONS_SHOWN]:
        rows.append((name, str(ours), str(theirs), f"{theirs - ours:+d}"))
    if not rows:
        return []
    lines = table_lines(("instruction", *names, "change"), rows, columns)
    more = len(difference.instructions) - len(rows)
    if more:
        lines.append(f"and {more} more")
    return lines


def difference_document(difference: TrialDifference) -> Document:
    """Returns the JSON document of ``tuner diff --json``, the comparison of two trials."""
    compared = difference.compared or NotComparable(_no_times(difference))
    return {
        "first": history_document(difference.first),
        "second": history_document(difference.second),
        "knobs": {name: [ours, theirs] for name, ours, theirs in difference.knobs},
        **slowdown_document(compared),
        "first_stage": difference.first_stage,
        "stages": [
            {"stage": stage.stage, "added": stage.added, "removed": stage.removed, "diff": list(stage.lines)}
            for stage in difference.stages
        ],
        "instructions": {name: [ours, theirs] for name, ours, theirs in difference.instructions},
    }


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


def _change_text(difference: TrialDifference) -> str:
    compared = difference.compared
    if compared is None:
        return f"unknown: {_no_times(difference)}"
    if isinstance(compared, NotComparable):
        return f"{'none' if compared.is_equal else 'unknown'}: {compared.reason}"
    return f"trial {difference.second.id} takes {compared.longer_text}"


def _no_times(difference: TrialDifference) -> str:
    if difference.is_of_one_problem:
        return "one has no time"
    return "the problems differ"
