"""Collects the content of a report from a database, and writes it as one self-contained HTML page.

``gathered`` reads a ``Report`` from the database; ``page_html`` renders the templates with it; ``report`` is
the function of the Python API.
"""

import base64
import contextlib
import datetime
import functools
import hashlib
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import jinja2

from tuner.core.errors import UsageError
from tuner.core.queries import BestGroup, TrialQuery
from tuner.core.records import PassSeconds
from tuner.core.runs import Run
from tuner.core.serialization import count_text, interval_text, printable_lines, seconds_text, utc_text
from tuner.core.trials import StoredTrial
from tuner.core.typed_arguments import typed_arguments
from tuner.db.store import Store
from tuner.results.best_trials import any_group, best_results
from tuner.results.campaign_matrix import campaign_matrix
from tuner.results.database import open_known
from tuner.results.database_name import database_text, naming_database
from tuner.results.explanations import pass_seconds
from tuner.results.output.files import write_atomically
from tuner.results.output.formatting import gflop_per_s, initial_configurations_text, knobs_text, speed_text
from tuner.results.output.run_result import counts_text, idle_text
from tuner.results.output.templates import template_environment
from tuner.results.report import RUNS_SHOWN
from tuner.results.report.campaign_section import campaign_section_of, choice_rows, share_text
from tuner.results.report.content import (
    BestKnown,
    Report,
    ReportedCampaign,
    ReportedRun,
    number,
    reliability_of,
)
from tuner.results.report.headline_card import card_of, doubt_text, pass_rows
from tuner.results.report.program_section import program_section_of
from tuner.results.report.run_plots import importance_bars, knob_rows, strategy_rows
from tuner.results.report.run_section import section_of, stage_bars
from tuner.targets import registry
from tuner.targets.backends import Backends
from tuner.version import __version__

# The filters that templates may apply to values.
FILTERS = (
    *(count_text, initial_configurations_text, interval_text, knobs_text, seconds_text, speed_text),
    *(
        utc_text,
        gflop_per_s,
        reliability_of,
        card_of,
        doubt_text,
        counts_text,
        idle_text,
        pass_rows,
        stage_bars,
    ),
    *(importance_bars, knob_rows, strategy_rows, choice_rows, share_text),
)
Passes = Callable[[StoredTrial], tuple[PassSeconds, ...]]  # pass timings of compiling a trial again


def page_html(report: Report) -> str:
    """Returns a report as one self-contained HTML page. Texts from the database are escaped."""
    templates = _templates()
    style = _source(templates, "style.css")
    script = _source(templates, "script.js")
    page = templates.get_template("page.html").render(
        report=report,
        many=None if report.campaign is None else campaign_section_of(report.campaign),
        programs=[section for section in map(program_section_of, report.campaigns) if section is not None],
        sections=[section_of(run, len(report.runs)) for run in report.runs],
        shown={run.run.id for run in report.runs},
        style=style,
        script=script,
        policy=f"default-src 'none'; style-src '{_sha256(style)}'; script-src '{_sha256(script)}'",
    )
    return printable_lines(page)


@functools.cache
def _templates() -> jinja2.Environment:
    return template_environment(
        __package__,
        {function.__name__: function for function in FILTERS},
        is_html=True,
        finalize=lambda value: number(value) if isinstance(value, float) else value,
    )


def _source(templates: jinja2.Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def _sha256(text: str) -> str:
    # a source expression of a content security policy
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def no_pass_timings(_trial: StoredTrial) -> tuple[PassSeconds, ...]:
    """Returns () for any trial: the report then compiles nothing and shows no compiler passes."""
    return ()


def timed_passes(backends: Backends, store: Store) -> Passes:
    """Returns a function from a trial to the seconds of its compiler passes.

    Where the database has none of this compiler and machine, the function compiles the script and stores
    them. It returns () for a failed trial, also one that failed after compilation, for one without a script,
    and where compiling fails.
    """

    def passes(trial: StoredTrial) -> tuple[PassSeconds, ...]:
        with contextlib.suppress(UsageError):
            return pass_seconds(backends, store, trial)
        return ()

    return passes


def gathered(
    store: Store,
    run: int | None = None,
    limit: int = RUNS_SHOWN,
    passes: Passes = no_pass_timings,
    campaign: ReportedCampaign | None = None,
) -> Report:
    """Returns the report of the latest ``limit`` runs, and of each problem's best result in the database.

    ``run``: show only this run, and the best result of its problem; ``campaign``: show its first ``limit``
    runs, and the best results of their problems. ``passes``: gives pass timings of best trials. Raises
    UsageError for a limit below 1 or an unknown run.
    """
    if limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    if campaign is not None:
        chosen = campaign.campaign.runs[:limit]
        total = len(campaign.campaign.runs)
    elif run is not None:
        chosen = (store.run(run),)
        total = 1
    else:
        chosen = store.runs(limit)
        total = store.info().runs
    runs = tuple(
        ReportedRun(
            chosen_run,
            store.counts(chosen_run.id),
            store.trials(TrialQuery(run=chosen_run.id, sort="number")),
        )
        for chosen_run in chosen
    )
    left_out = total - len(runs)
    is_wanted: Callable[[BestGroup], bool] = any_group  # replays included
    if run is not None or campaign is not None:
        is_wanted = frozenset(map(_group_of, chosen)).__contains__
    results = best_results(store, TrialQuery(), is_wanted).values()
    best = tuple(
        BestKnown(result.selected, result.run, passes(result.best))
        for result in sorted(results, key=attrgetter("run.created", "run.id"), reverse=True)
    )
    numbers = dict.fromkeys(
        reported.run.campaign.campaign for reported in runs if reported.run.campaign is not None
    )
    campaigns = tuple(map(store.campaign, numbers))
    now = datetime.datetime.now(datetime.UTC)
    return Report(best, runs, left_out, __version__, now, campaign=campaign, campaigns=campaigns)


@typed_arguments
def report(
    file: Path | str | None = None,
    *,
    db: str | Path | None = None,
    run: int | None = None,
    campaign: int | None = None,
    limit: int = RUNS_SHOWN,
    compile_time: bool = False,
) -> str:
    """Returns a self-contained HTML page: the latest runs and best trials, or one run or campaign.

    Args:
        file: path to write the page to; None: only returned.
        db: path or URL of the results database; None: as for ``tune``.
        run: number of the one run to show; None: the latest runs.
        campaign: number of the campaign to show, many problems tuned under one budget; None: no campaign.
        limit: number of runs to show at most, 1 or more.
        compile_time: whether to show the compiler's passes, too: best trials without stored times of these
            are compiled again.

    Returns:
        The HTML text.

    Raises:
        UsageError: a limit below 1, ``run`` and ``campaign`` both given, a run, a campaign or a database
            named by ``db`` that does not exist, a database that cannot be opened, or a file that cannot be
            written.

    Example:
        >>> import tuner
        >>> page = tuner.report("report.html", run=1)
        >>> "64x64x64" in page
        True
    """
    if run is not None and campaign is not None:
        raise UsageError("report: run and campaign cannot be combined")
    with naming_database(db), open_known(db) as store:
        passes = timed_passes(registry.real_backends(), store) if compile_time else no_pass_timings
        if campaign is None:
            of_campaign = None
        else:
            of_campaign = reported_campaign(store, registry.real_backends(), campaign)
        content = gathered(store, run, limit, passes, of_campaign)
    page = page_html(replace(content, database_text=database_text(db)))
    if file is not None:
        write_atomically(Path(file), page.encode())
    return page


def reported_campaign(store: Store, backends: Backends, campaign: int) -> ReportedCampaign:
    """Returns a campaign with its matrix of times. Raises UsageError for an unknown campaign."""
    return ReportedCampaign(store.campaign(campaign), campaign_matrix(campaign, backends, store).times)


def _group_of(run: Run) -> BestGroup:
    settings = run.settings
    return BestGroup(settings.problem.key, settings.target.text, settings.threads, run.machine.name)
