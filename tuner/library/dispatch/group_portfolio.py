"""The portfolio of a stored group of runs: its columns, what they lose, and what of them was not measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tuner.analysis.many_shapes.portfolio import Portfolio, choose_portfolio, served, usable_columns
from tuner.analysis.many_shapes.regret import Regret, regret_held_out, regret_in_sample
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, UsageError
from tuner.core.runs import Run
from tuner.library.dispatch.measured_group import MeasuredGroup, measured_group
from tuner.run_history.group_matrix import GroupMatrix, group_matrix
from tuner.scripts.portability import custom_ops
from tuner.tuning.composition import Composition
from tuner.tuning.interruption import Interruption
from tuner.tuning.many_shapes.missing_cells import MissingCell, measure_cells
from tuner.tuning.many_shapes.projected_pool import PoolProblem, projected_pool

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True)
class GroupPortfolio:
    """Columns chosen for the problems of a group, with the times that they were chosen by."""

    group: int
    names: tuple[str, ...]  # of the problems, "" where they have none
    measured: MeasuredGroup
    portfolio: Portfolio
    allowed: tuple[int, ...]  # columns of the matrix that were chosen among
    universal: tuple[int, ...]  # columns that can do any problem
    missing: tuple[MissingCell, ...]  # chosen columns on problems where they were not tried

    @property
    def columns(self) -> tuple[Candidate, ...]:
        """Returns the chosen configurations, unprojected; the one that serves most problems first."""
        return tuple(self.measured.matrix.columns[column] for column in self.portfolio.columns)

    def regret(self, *, held_out: bool = False) -> Regret:
        """Returns what each problem loses with these configurations instead of its best known one.

        Args:
            held_out: whether each problem is held out while the configurations are chosen, as a problem that
                comes later would be; all configurations count as measured on it.

        Returns:
            The efficiency (best known time / time) of each problem; their geometric mean and the worst.

        Raises:
            Nothing: the times are those that the portfolio was chosen by.

        Example:
            >>> import tuner
            >>> regret = tuner.portfolio(1, configs=1).regret(held_out=True)
            >>> regret.worst <= regret.geomean <= 1
            True
        """
        if not held_out:
            return regret_in_sample(self.measured.matrix, self.portfolio)
        size = len(self.portfolio.columns)
        return regret_held_out(self.measured.matrix, size, self.allowed, self.universal)


def group_portfolio(
    group_id: int, size: int, composition: Composition, store: "Store", *, is_stock: bool = False
) -> GroupPortfolio:
    """Returns the portfolio of ``size`` configurations of a stored group.

    With ``is_stock`` only configurations count whose scripts stock ``mlir-opt`` runs. Raises UsageError for
    an unknown group, one without a time, and a size above the number of configurations.
    """
    found, group = group_matrix(group_id, composition, store), store.group(group_id)
    measured = measured_group(found, group)
    if not measured.matrix.is_timed().any():
        raise UsageError(f"group {group_id}: has no time")
    allowed = usable_columns(measured.matrix, _stock(found, composition, group.runs) if is_stock else None)
    universal = tuple(column for column in _universal(found, composition, group.runs) if column in allowed)
    portfolio = choose_portfolio(measured.matrix, size, allowed, universal)
    return _with_missing(
        GroupPortfolio(group_id, found.names, measured, portfolio, allowed, universal, ()), found
    )


def measured_portfolio(
    group_id: int,
    size: int,
    composition: Composition,
    store: "Store",
    interruption: Interruption,
    *,
    is_stock: bool = False,
    report_missing: Callable[[int], None] = lambda _count: None,
) -> GroupPortfolio:
    """Returns the portfolio of a group after the times that its columns lacked were measured and stored.

    ``report_missing`` is called with their number before. Raises KeyboardInterrupt where interrupted; what
    was measured is stored. Raises UsageError as ``group_portfolio`` and ``measure_cells`` do.
    """
    found = group_portfolio(group_id, size, composition, store, is_stock=is_stock)
    if not found.missing:
        return found
    report_missing(len(found.missing))
    measure_cells(group_id, found.missing, composition, store, interruption)
    if interruption.is_asked:
        raise KeyboardInterrupt
    return measured_again(found, composition, store)


def measured_again(known: GroupPortfolio, composition: Composition, store: "Store") -> GroupPortfolio:
    """Returns the same columns with the times that the group has by now."""
    found, group = group_matrix(known.group, composition, store), store.group(known.group)
    measured = measured_group(found, group)
    places = tuple(measured.matrix.columns.index(column) for column in known.columns)
    again = replace(known, measured=measured, portfolio=served(measured.matrix, places))
    return _with_missing(again, found)


def _with_missing(chosen: GroupPortfolio, found: GroupMatrix) -> GroupPortfolio:
    return replace(chosen, missing=tuple(_missing(chosen.portfolio, found)))


def _missing(portfolio: Portfolio, found: GroupMatrix) -> Iterator[MissingCell]:
    """Yields the cells of chosen columns without a time, each projection of a problem once."""
    seen = set()
    for row, column in portfolio.predicted:
        candidate = found.cells[row][column].candidate
        if candidate is not None and (row, candidate) not in seen:
            seen.add((row, candidate))
            yield MissingCell(row, found.columns[column], candidate)


def _universal(found: GroupMatrix, composition: Composition, runs: tuple[Run, ...]) -> tuple[int, ...]:
    """Returns the columns that can do a problem of any size, of every kind of problem in the group."""
    kinds = {replace(run.settings.problem, sizes=(1, 1, 1)): run for run in runs}
    source = composition.outcomes_of_run(runs[0].settings)
    able = set(range(len(found.columns)))
    for smallest, run in kinds.items():
        try:
            plan = source.plan(replace(run.settings, problem=smallest, first=()), run.machine)
        except UsageError:
            return ()  # nothing can do the smallest problem
        of = PoolProblem(smallest, 1, plan.feasible.spaces)
        (row,) = projected_pool((of,), found.columns, run.machine, run.settings.threads).candidates
        able &= {column for column, candidate in enumerate(row) if candidate is not None}
    return tuple(sorted(able))


def _stock(found: GroupMatrix, composition: Composition, runs: tuple[Run, ...]) -> tuple[int, ...]:
    """Returns the columns whose scripts call none of tuner's transform ops, on any problem of the group."""
    custom = set()
    source = composition.outcomes_of_run(runs[0].settings)
    for run, row in zip(runs, found.cells, strict=True):
        settings = run.settings
        bind = source.bind(settings.strategies, settings.problem, settings.threads, run.machine)
        for column, cell in enumerate(row):
            if column in custom or cell.candidate is None:
                continue
            try:
                script = bind(cell.candidate)
            except CandidateError:
                continue  # a configuration that cannot be bound has no time either
            if custom_ops(script.text):
                custom.add(column)
    return tuple(column for column in range(len(found.columns)) if column not in custom)
