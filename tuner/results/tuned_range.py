"""The result of a campaign that tuned a range of rows: its best trials, and how they cover each m."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.analysis.row_ranges import RowBlock, RowCover, RowRange, row_cover, stored_range
from tuner.core.errors import UsageError
from tuner.core.requests import Campaign
from tuner.core.runs import Run
from tuner.core.trials import StoredTrial
from tuner.tuning.tuned_run import TunedCampaign, tuned_campaign

if TYPE_CHECKING:
    from tuner.db.store import Store


@dataclass(frozen=True)
class TunedRange:
    """A range of rows with the best trial of each tuned m that has a time."""

    row_range: RowRange
    runs: tuple[Run, ...]  # in the order of the trials
    trials: tuple[StoredTrial, ...]  # by number of rows; at least one
    cover: RowCover  # its blocks are the trials


def range_of(campaign: Campaign) -> RowRange | None:
    """Returns the range of rows that a campaign tuned; None for a campaign that tuned single problems."""
    return stored_range(campaign.settings.source, (run.settings.problem for run in campaign.runs))


def tuned_range(campaign_id: int, store: "Store") -> TunedRange:
    """Returns the result of a campaign that tuned a range of rows.

    Raises UsageError for an unknown campaign, one that tuned no range, and one without a time.
    """
    tuned = tuned_campaign(store, campaign_id)
    found = result_of_range(tuned)
    if found is None and range_of(tuned.campaign) is None:
        line = f"campaign {campaign_id}: tuned single problems, not a range of rows"
        raise UsageError(line, "tuner tune matmul 1..4096x512x128")
    if found is None:
        raise UsageError(f"campaign {campaign_id}: has no time")
    return found


def result_of_range(tuned: TunedCampaign) -> TunedRange | None:
    """Returns the best trials of a campaign that tuned a range of rows, and how they cover each m.

    None for a campaign that tuned single problems, and if no run of the campaign has a time.
    """
    row_range = range_of(tuned.campaign)
    if row_range is None:
        return None
    runs = []
    trials = []
    blocks = []
    for run, best in zip(tuned.runs, tuned.best, strict=True):
        if best is not None and best.best_s is not None:
            runs.append(run.run)
            trials.append(best)
            blocks.append(RowBlock(best.record.problem.sizes[0], best.best_s))
    if not trials:
        return None
    cover = row_cover(blocks, row_range.problem, is_reliable=tuned.reliability.is_reliable)
    return TunedRange(row_range, tuple(runs), tuple(trials), cover)


def range_lines(store: "Store", runs: Iterable[int]) -> list[str]:
    """Returns a line per range of rows that the runs with the ids ``runs`` were tuned for."""
    campaigns = store.campaigns_of_runs()
    lines = []
    for number in dict.fromkeys(campaigns[run] for run in runs if run in campaigns):
        campaign = store.campaign(number)
        row_range = range_of(campaign)
        if row_range is not None:
            first = campaign.runs[0].id
            last = campaign.runs[-1].id
            lines.append(
                f"range {row_range.text}: runs {first} to {last}, as tuner show campaign:{campaign.id} lists"
            )
    return lines
