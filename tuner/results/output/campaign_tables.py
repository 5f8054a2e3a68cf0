"""Results of campaigns, many problems tuned under one budget: a table of the problems, JSON documents."""

from tuner.core.problem_text import parse_row_range
from tuner.core.serialization import count_text, seconds_text
from tuner.results.output.formatting import Row, gflop_per_s, knobs_text, speed_text, table_lines
from tuner.results.output.json_documents import Document, tune_document
from tuner.results.output.program_tables import stored_program_document
from tuner.results.output.run_result import why_lines
from tuner.tuning.tuned_run import TunedCampaign, TunedRun

CAMPAIGN_HEADER: Row = (
    *("run", "name", "problem", "count", "trials", "time", "reliability", "share", "GFLOP/s"),
    "strategy and knobs",
)
CAMPAIGN_SPARED = ("name", "share", "GFLOP/s", "trials")  # columns that a narrow terminal loses first


def campaign_lines(tuned: TunedCampaign, columns: int | None = None, database_text: str = "") -> list[str]:
    """Returns the result of a campaign: a table with a row per problem, totals, a command to type.

    ``columns``: width to fit, None: any width. ``database_text``: the option --db for printed commands, or
    "".
    """
    total_s = tuned.total_s
    total = "unknown: a problem has no time" if total_s is None else seconds_text(total_s)
    if not tuned.reliability.is_reliable:
        total += f" ({tuned.reliability.text})"
        total_s = None  # shares are of a total that is whole and reliable
    counted = zip(tuned.runs, tuned.counts, strict=True)
    rows = [_campaign_row(run, count, total_s) for run, count in counted]
    calls = sum(tuned.counts)
    spent = f"{count_text(tuned.trials, 'trial')} in {tuned.campaign.seconds:.0f} s"
    lines = [f"campaign  {tuned.campaign.id}: {count_text(len(tuned.runs), 'problem')}, {spent}"]
    if tuned.ended_early:
        lines.append(f"early     {tuned.ended_early}")
    table = table_lines(CAMPAIGN_HEADER, rows)
    if columns is not None and max(map(len, table)) > columns:
        facts = [row[:-1] for row in rows]
        details = [row[-1] for row in rows]
        table = table_lines(CAMPAIGN_HEADER[:-1], facts, columns, CAMPAIGN_SPARED, details)
    if parse_row_range(tuned.campaign.settings.source) is not None:
        return [*table, *lines, *_failed_lines(tuned, database_text), *_range_lines(tuned, database_text)]
    return [
        *table,
        *lines,
        *_failed_lines(tuned, database_text),
        f"total     {total} for {count_text(calls, 'call')}, each problem as often as it occurs",
        f"next      tuner history --run {tuned.runs[0].run.id}{database_text}",
    ]


def _failed_lines(tuned: TunedCampaign, database_text: str) -> list[str]:
    """Returns why no candidate of a problem worked, for each such problem, with a command for each."""
    lines = []
    for run in tuned.runs:
        why = why_lines(run, database_text)
        if why:
            lines += [f"failed    run {run.run.id}: {why[0]}", f"          {why[1]}"]
    return lines


def _range_lines(tuned: TunedCampaign, database_text: str) -> list[str]:
    number = tuned.campaign.id
    row_range = tuned.campaign.settings.source
    doubt = ""
    if not tuned.reliability.is_reliable:
        doubt = ", by a line through the times, as these are unreliable"
    return [
        f"range     {row_range}: each m runs by these kernels, on parts of its rows{doubt}",
        f"export    tuner export --campaign {number} --format c -o DIR{database_text}",
        f"python    tuner.load_range({number})",
    ]


def campaign_document(tuned: TunedCampaign) -> Document:
    """Returns the JSON document of a campaign: one entry per problem, and totals."""
    problems = []
    for run, count in zip(tuned.runs, tuned.counts, strict=True):
        document = tune_document(run.run, run.counts, run.selected, run.seconds)
        problems.append({"name": _name_of(run), "count": count, **document})
    campaign = tuned.campaign
    return {
        "campaign": campaign.id,
        "status": campaign.status,
        "source": campaign.settings.source,
        "trials": tuned.trials,
        "columns": len(campaign.settings.columns),
        "total_s": tuned.total_s,
        "reliability": tuned.reliability.text,
        "seconds": campaign.seconds,
        "problems": problems,
    }


def _name_of(tuned: TunedRun) -> str:
    if tuned.run.campaign is None:
        return ""
    return tuned.run.campaign.name


def _campaign_row(tuned: TunedRun, count: int, total_s: float | None) -> Row:
    best = tuned.best
    problem = tuned.run.settings.problem
    start = (str(tuned.run.id), _name_of(tuned), problem.key, str(count), str(tuned.counts.proposed))
    if best is None or best.best_s is None:
        return (*start, "-", "-", "-", "-", _reason_without_time(tuned))
    share = "-" if total_s is None else f"{count * best.best_s / total_s:.0%}"
    speed = speed_text(gflop_per_s(problem, best.best_s)).removesuffix(" GFLOP/s")
    candidate = f"{best.strategy} {knobs_text(best.record.candidate.choices)}"
    return (*start, seconds_text(best.best_s), best.reliability.word, share, speed, candidate)


def _reason_without_time(tuned: TunedRun) -> str:
    if tuned.counts.proposed == 0:
        return "not tried"
    if tuned.has_worked:
        return "no time"
    return "no candidate worked"


def shown_campaign_document(tuned: TunedCampaign) -> Document:
    """Returns the JSON document of a stored campaign; "program" is the tuned program, null without one."""
    document = campaign_document(tuned)
    if tuned.campaign.result is None:
        return {**document, "program": None}
    return {**document, "program": stored_program_document(tuned.campaign.result)}
