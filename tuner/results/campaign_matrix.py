"""The matrix of a campaign: problems x configurations, each cell with its trial or why it has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.trials import StoredTrial
from tuner.targets.backends import Backends
from tuner.tuning.pool import PoolProblem, projected_pool

if TYPE_CHECKING:
    from tuner.db.store import Store

# Of a cell; "failed" is also what was verified and not timed, or has a stale time.
TIMED, FAILED, NOT_TRIED, INAPPLICABLE = STATES = ("timed", "failed", "not tried", "inapplicable")
Tried = Mapping[tuple[int, Candidate], StoredTrial]  # (run id, projection) -> trial with an outcome


@dataclass(frozen=True)
class MatrixCell:
    """One configuration on one problem: its projection (the nearest allowed configuration), and its trial."""

    state: str  # one of STATES
    candidate: Candidate | None  # the projection; None: inapplicable
    trial: StoredTrial | None  # with an outcome; None: not tried, or inapplicable
    time_s: float | None  # median seconds per call: of the final re-measurement where there is one

    @property
    def reason(self) -> str:
        """Returns in one line why the cell has no time; "" if it has one."""
        if self.state == FAILED and self.trial is not None:
            outcome = self.trial.record.outcome
            return self.trial.stale or str(getattr(outcome, "reason", "verified, not timed"))
        return {TIMED: "", NOT_TRIED: "not tried", INAPPLICABLE: "no allowed configuration is near it"}[
            self.state
        ]


@dataclass(frozen=True)
class CampaignMatrix:
    """The table (problems x configurations) of a campaign.

    The columns are first the configurations to try on every problem, then those that samplers proposed.
    """

    campaign: int  # id
    problems: tuple[Problem, ...]
    names: tuple[str, ...]  # of the problems, "" where they have none
    counts: tuple[int, ...]  # how often each problem occurs
    columns: tuple[Candidate, ...]  # unprojected: the pool of the campaign, then what samplers proposed
    cells: tuple[tuple[MatrixCell, ...], ...]  # [problem][column]
    costs: tuple[tuple[float, ...], ...]  # [problem][column], of the cost model; inf where there is none

    @property
    def times(self) -> TimeMatrix:
        """Returns the median seconds per call from which portfolios are chosen, [problem][column]."""
        return TimeMatrix(
            self.problems,
            self.counts,
            self.columns,
            tuple(tuple(cell.time_s for cell in row) for row in self.cells),
            tuple(tuple(cell.candidate is not None for cell in row) for row in self.cells),
            self.costs,
        )


def campaign_matrix(campaign_id: int, backends: Backends, store: "Store") -> CampaignMatrix:
    """Returns the matrix of a stored campaign; a cell whose projection was tried has that trial."""
    campaign = store.campaign(campaign_id)
    proposals = store.campaign_proposals(campaign_id)
    tried: dict[tuple[int, Candidate], StoredTrial] = {}
    for proposal in proposals:
        trial = proposal.proposal.trial
        if trial is not None:
            tried[proposal.run, proposal.proposal.candidate] = trial
    columns = tuple(dict.fromkeys((*campaign.settings.columns, *(proposal.column for proposal in proposals))))
    common = campaign.runs[0].settings
    machine = campaign.runs[0].machine
    target = backends.target_of_run(common)
    problems = []
    names = []
    for run in campaign.runs:
        spaces = target.plan(run.settings, machine).feasible.spaces
        count = 1 if run.campaign is None else run.campaign.count
        problems.append(PoolProblem(run.settings.problem, count, spaces))
        names.append("" if run.campaign is None else run.campaign.name)
    pool = projected_pool(tuple(problems), columns, machine, common.threads)
    cells = []
    for run, candidates in zip(campaign.runs, pool.candidates, strict=True):
        cells.append(tuple(_cell(candidate, run.id, tried) for candidate in candidates))
    return CampaignMatrix(
        campaign_id, pool.problems, tuple(names), pool.counts, columns, tuple(cells), pool.costs
    )


def _cell(candidate: Candidate | None, run: int, tried: Tried) -> MatrixCell:
    if candidate is None:
        return MatrixCell(INAPPLICABLE, None, None, None)
    trial = tried.get((run, candidate))
    if trial is None:
        return MatrixCell(NOT_TRIED, candidate, None, None)
    time_s = None if trial.stale else trial.best_s  # not "not tried": the same row is never proposed twice
    return MatrixCell(FAILED if time_s is None else TIMED, candidate, trial, time_s)
