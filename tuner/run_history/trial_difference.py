"""The differences between two trials: knobs, texts of each stage, instruction counts, time."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.analysis.run_comparison import between_trials
from tuner.core.candidate import Value
from tuner.core.runs import Run, StoredTrial
from tuner.targets.gpu.machine_code.instruction_mix import assembly_mix, instruction_mix

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
