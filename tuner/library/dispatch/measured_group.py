"""Times of a group of runs by timing round, as portfolios and rule files take them."""

from dataclasses import dataclass, replace

from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.core.machine import Compiler, Machine
from tuner.core.reliability import Reliability
from tuner.core.run_groups import RunGroup
from tuner.core.runs import Run, StoredTrial
from tuner.run_history.group_matrix import FAILED, GroupMatrix, MatrixCell

RoundsOfCell = tuple[float, ...]  # median seconds of each timing round; (): not timed


@dataclass(frozen=True)
class MeasuredGroup:
    """Times of configurations on the problems of a group, by round, and where they were measured."""

    matrix: TimeMatrix
    rounds_s: tuple[tuple[RoundsOfCell, ...], ...]  # [problem][column]; each cell's least is in ``matrix``
    baselines_s: tuple[float | None, ...]  # per problem; None: not timed
    reliability: tuple[Reliability, ...]  # per problem, of the times of its run
    machine: Machine
    threads: int
    compiler: Compiler


def measured_group(found: GroupMatrix, group: RunGroup) -> MeasuredGroup:
    """Returns the times of a group of runs: of each cell the search's and the final re-measurement's median.

    The least median counts, since what disturbs a timing adds time. A configuration that failed on a problem
    counts as one that does not apply to it.
    """
    rounds_s = tuple(tuple(_rounds(cell) for cell in row) for row in found.cells)
    matrix = replace(
        found.times,
        times_s=tuple(tuple(min(rounds, default=None) for rounds in row) for row in rounds_s),
        applies=tuple(
            tuple(cell.candidate is not None and cell.state != FAILED for cell in row) for row in found.cells
        ),
    )
    first = group.runs[0]
    return MeasuredGroup(
        matrix,
        rounds_s,
        tuple(map(_baseline_s, group.runs)),
        tuple(run.reliability for run in group.runs),
        first.machine,
        first.settings.threads,
        first.compiler,
    )


def _rounds(cell: MatrixCell) -> RoundsOfCell:
    return () if cell.trial is None else _medians(cell.trial)


def _medians(trial: StoredTrial) -> RoundsOfCell:
    medians = (trial.record.median_s, None if trial.final is None else trial.final.median_s)
    return tuple(median for median in medians if median is not None)


def _baseline_s(run: Run) -> float | None:
    return None if run.baseline is None else run.baseline.measurement.median_s
