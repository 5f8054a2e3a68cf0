"""The portfolio of a stored campaign, a few configurations that serve its problems, and its dispatch rule.

In matrices of times, configurations are columns and problems are rows. A configuration is projected onto a
problem: replaced by the nearest one that the problem's constraints allow. A cell has the projection's time.
"""

import datetime
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tuner.analysis.portfolio import (
    Portfolio,
    Regret,
    choose_portfolio,
    regret_held_out,
    regret_in_sample,
    served,
    usable_columns,
)
from tuner.analysis.time_matrix import TimeMatrix, known_times, residuals
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, UsageError
from tuner.core.machine import Machine
from tuner.core.reliability import Reliability, reliability_of_all
from tuner.core.requests import Campaign
from tuner.core.runs import Compiler, Run
from tuner.results.campaign_matrix import FAILED, CampaignMatrix, MatrixCell, campaign_matrix
from tuner.space.scripts.header import custom_ops
from tuner.targets.backends import Backends
from tuner.tuning.events import Interruption
from tuner.tuning.missing_cells import MissingCell, measure_cells
from tuner.tuning.pool import PoolProblem, projected_pool
from tuner.tuning.rule import Configuration, DispatchRule, ProblemSpaces, RuleProblem, StatedRegret
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.db.store import Store


RoundsOfCell = tuple[float, ...]  # median seconds, of the search and of the final round; (): not timed


@dataclass(frozen=True)
class MeasuredCampaign:
    """Times of configurations on the problems of a campaign, by round, and where they were measured."""

    matrix: TimeMatrix
    rounds_s: tuple[tuple[RoundsOfCell, ...], ...]  # [problem][column]; each cell's least is in ``matrix``
    baselines_s: tuple[float | None, ...]  # per problem; None: not timed
    reliability: tuple[Reliability, ...]  # per problem, of the times of its run
    machine: Machine
    threads: int
    compiler: Compiler


def measured_campaign(cells: CampaignMatrix, campaign: Campaign) -> MeasuredCampaign:
    """Returns the campaign's times: per problem and configuration the least median, as disturbances add time.

    ``cells``: the campaign's matrix. A configuration that failed on a problem counts as not applicable to it.
    """
    rounds_s = []
    times_s = []
    applies = []
    for row in cells.cells:
        rounds_of_row = tuple(map(_medians, row))
        rounds_s.append(rounds_of_row)
        times_s.append(tuple(min(rounds, default=None) for rounds in rounds_of_row))
        applies.append(tuple(cell.candidate is not None and cell.state != FAILED for cell in row))
    first = campaign.runs[0]
    return MeasuredCampaign(
        replace(cells.times, times_s=tuple(times_s), applies=tuple(applies)),
        tuple(rounds_s),
        tuple(map(_baseline_s, campaign.runs)),
        tuple(run.reliability for run in campaign.runs),
        first.machine,
        first.settings.threads,
        first.compiler,
    )


def _medians(cell: MatrixCell) -> RoundsOfCell:
    if cell.trial is None or cell.time_s is None:
        return ()
    medians_s = [cell.trial.record.median_s]
    if cell.trial.final is not None:
        medians_s.append(cell.trial.final.median_s)
    return tuple(median_s for median_s in medians_s if median_s is not None)


def _baseline_s(run: Run) -> float | None:
    if run.baseline is None:
        return None
    return run.baseline.measurement.median_s


@dataclass(frozen=True)
class CampaignPortfolio:
    """Configurations chosen for the problems of a campaign, with the times that they were chosen by."""

    campaign: int
    names: tuple[str, ...]  # of the problems, "" where they have none
    measured: MeasuredCampaign
    portfolio: Portfolio
    allowed: tuple[int, ...]  # columns of the matrix that were chosen among
    universal: tuple[int, ...]  # columns that can do any problem
    missing: tuple[MissingCell, ...]  # chosen columns on problems where they were not tried

    @property
    def columns(self) -> tuple[Candidate, ...]:
        """Returns the chosen configurations, unprojected; the one that serves most problems first."""
        return tuple(self.measured.matrix.columns[column] for column in self.portfolio.columns)

    def regret(self, *, held_out: bool = False) -> Regret:
        """Returns what each problem loses with these configurations instead of its fastest measured one.

        Args:
            held_out: True: for each problem, configurations are chosen by the times of the other problems, as
                for a problem that comes later; the fastest chosen one with a time on the problem counts.
                False: the configurations of this portfolio.

        Returns:
            The efficiency (best known time / time) of each problem; their geometric mean and the worst.

        Raises:
            Nothing: the times are those that the portfolio was chosen by.

        Example:
            >>> import tuner
            >>> regret = tuner.portfolio(1, configs=1).regret()
            >>> regret.worst <= regret.geomean <= 1
            True
        """
        if not held_out:
            return regret_in_sample(self.measured.matrix, self.portfolio)
        size = len(self.portfolio.columns)
        return regret_held_out(self.measured.matrix, size, self.allowed, self.universal)


def campaign_portfolio(
    campaign_id: int, size: int, backends: Backends, store: "Store", *, is_stock: bool = False
) -> CampaignPortfolio:
    """Returns the ``size`` configurations that serve a campaign's problems best, by its stored times.

    ``is_stock``: only configurations whose scripts stock ``mlir-opt`` runs. Raises UsageError for an unknown
    campaign, one without a time, and for a size that cannot be chosen.
    """
    matrix = campaign_matrix(campaign_id, backends, store)
    campaign = store.campaign(campaign_id)
    measured = measured_campaign(matrix, campaign)
    if not measured.matrix.is_timed().any():
        raise UsageError(f"campaign {campaign_id}: has no time")
    allowed = usable_columns(measured.matrix, _stock(matrix, backends, campaign.runs) if is_stock else None)
    universal = tuple(column for column in _universal(matrix, backends, campaign.runs) if column in allowed)
    portfolio = choose_portfolio(measured.matrix, size, allowed, universal)
    missing = _missing(portfolio, matrix)
    return CampaignPortfolio(campaign_id, matrix.names, measured, portfolio, allowed, universal, missing)


def measured_portfolio(
    campaign_id: int,
    size: int,
    backends: Backends,
    store: "Store",
    interruption: Interruption,
    *,
    is_stock: bool = False,
    report_missing: Callable[[int], None] = lambda _count: None,
) -> CampaignPortfolio:
    """Returns a campaign's portfolio after its missing times were measured and stored.

    ``is_stock``: only configurations whose scripts stock ``mlir-opt`` runs. ``report_missing`` gets the
    number of missing times first, if there are any. Raises UsageError without any time, TunerError where
    nothing can be measured here, KeyboardInterrupt after an interruption.
    """
    portfolio = campaign_portfolio(campaign_id, size, backends, store, is_stock=is_stock)
    if not portfolio.missing:
        return portfolio
    report_missing(len(portfolio.missing))
    measure_cells(campaign_id, portfolio.missing, backends, store, interruption)
    if interruption.is_asked:
        raise KeyboardInterrupt
    return with_current_times(portfolio, backends, store)


def with_current_times(known: CampaignPortfolio, backends: Backends, store: "Store") -> CampaignPortfolio:
    """Returns a portfolio of the same configurations, with times read again from the database."""
    matrix = campaign_matrix(known.campaign, backends, store)
    campaign = store.campaign(known.campaign)
    measured = measured_campaign(matrix, campaign)
    columns = tuple(map(measured.matrix.columns.index, known.columns))
    portfolio = served(measured.matrix, columns)
    return replace(known, measured=measured, portfolio=portfolio, missing=_missing(portfolio, matrix))


def _missing(portfolio: Portfolio, matrix: CampaignMatrix) -> tuple[MissingCell, ...]:
    missing: dict[tuple[int, Candidate], MissingCell] = {}
    for row, column in portfolio.predicted:
        candidate = matrix.cells[row][column].candidate
        if candidate is not None:
            missing.setdefault((row, candidate), MissingCell(row, matrix.columns[column], candidate))
    return tuple(missing.values())


def _universal(matrix: CampaignMatrix, backends: Backends, runs: tuple[Run, ...]) -> tuple[int, ...]:
    """Returns the columns that can compute any size of each combination of type and layout here."""
    # 1x1x1 stands for any size: constraints on sizes ask for a minimum or a multiple in most cases
    smallest_problems = {replace(run.settings.problem, sizes=(1, 1, 1)): run for run in runs}
    target = backends.target_of_run(runs[0].settings)
    able = set(range(len(matrix.columns)))
    for smallest, run in smallest_problems.items():
        try:
            plan = target.plan(replace(run.settings, problem=smallest, first=()), run.machine)
        except UsageError:
            return ()  # nothing can do the smallest problem
        smallest_problem = PoolProblem(smallest, 1, plan.feasible.spaces)
        pool = projected_pool((smallest_problem,), matrix.columns, run.machine, run.settings.threads)
        (row,) = pool.candidates
        able &= {column for column, candidate in enumerate(row) if candidate is not None}
    return tuple(sorted(able))


def _stock(matrix: CampaignMatrix, backends: Backends, runs: tuple[Run, ...]) -> tuple[int, ...]:
    custom = set()
    target = backends.target_of_run(runs[0].settings)
    for run, row in zip(runs, matrix.cells, strict=True):
        settings = run.settings
        bind = target.bind(settings.strategies, settings.problem, settings.threads, run.machine)
        for column, cell in enumerate(row):
            if column in custom or cell.candidate is None:
                continue
            try:
                script = bind(cell.candidate)
            except CandidateError:
                continue  # a configuration that cannot be bound has no time either
            if custom_ops(script.text):
                custom.add(column)
    return tuple(column for column in range(len(matrix.columns)) if column not in custom)


def rule_of(portfolio: CampaignPortfolio) -> DispatchRule:
    """Returns the dispatch rule of a campaign's portfolio: its configurations, their times and its regret."""
    regret = StatedRegret.of(portfolio.regret(), portfolio.regret(held_out=True))
    return dispatch_rule(portfolio.measured, portfolio.portfolio, regret)


def dispatch_rule(
    campaign: MeasuredCampaign, portfolio: Portfolio, regret: StatedRegret | None
) -> DispatchRule:
    """Returns a portfolio's dispatch rule, with measured times only, tuner's version and today's date.

    ``regret``: the efficiencies to store with the rule; None: unknown.
    """
    space = ProblemSpaces.shipped(campaign.machine, campaign.threads)
    chosen = [campaign.matrix.columns[column] for column in portfolio.columns]
    return DispatchRule(
        tuner=__version__,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=campaign.machine.name,
        threads=campaign.threads,
        compiler=campaign.compiler.fingerprint,
        space_sha256=space.sha256(candidate.strategy for candidate in chosen),
        regret=regret,
        reliability=reliability_of_all(campaign.reliability),
        configurations=tuple(Configuration(candidate.strategy, candidate.choices) for candidate in chosen),
        problems=tuple(_rule_problems(campaign, portfolio)),
    )


def _rule_problems(campaign: MeasuredCampaign, portfolio: Portfolio) -> Iterator[RuleProblem]:
    columns = portfolio.columns
    table = residuals(known_times(campaign.matrix))
    for row, problem in enumerate(campaign.matrix.problems):
        serving = portfolio.serving[row]
        rounds_s = campaign.rounds_s[row]
        yield RuleProblem(
            problem=problem,
            count=campaign.matrix.counts[row],
            serves=None if serving is None else columns.index(serving),
            rounds_s=tuple(rounds_s[column] for column in columns),
            residuals=tuple(_number_or_none(table[row, column]) for column in columns),
            baseline_s=campaign.baselines_s[row],
            best_s=min(itertools.chain.from_iterable(rounds_s), default=None),
            reliability=campaign.reliability[row],
        )


def _number_or_none(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
