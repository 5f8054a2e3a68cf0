"""The functions of the Python API that tune: a problem or many, begun or resumed.

They check their arguments, open the database, and call ``tuner.tuning``; results are values of
``tuner.tuning.tuned_run``.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.analysis.row_ranges import RowRange
from tuner.core.errors import UsageError
from tuner.core.problem import NamedProblem, Problem, distinct_problems
from tuner.core.requests import RunRequest
from tuner.core.serialization import parse_seconds
from tuner.core.typed_arguments import typed_arguments
from tuner.results.database import open_known, open_or_create
from tuner.results.database_name import database_text, naming_database
from tuner.results.output.campaign_progress import campaign_progress
from tuner.results.output.progress import progress as run_progress
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.targets import registry
from tuner.tuning.campaign import begin_campaign, campaign_settings, require_on_cpu, resume_campaign
from tuner.tuning.events import (
    CampaignObserver,
    Event,
    Interruption,
    Observer,
    RunStarted,
    both_observers,
    ignore,
    ignore_campaign,
)
from tuner.tuning.request import RunLimit, run_settings
from tuner.tuning.run import begin
from tuner.tuning.run import resume as resume_run
from tuner.tuning.tuned_run import TunedCampaign, TunedRun

if TYPE_CHECKING:
    from tuner.db.store import Store

# Fields of RunRequest that are parameters of ``tune`` and ``tune_many`` as well
SAME_NAMED = (
    *("target", "chip", "threads", "reopen", "space", "sampler", "seed", "trials", "workers", "fresh"),
    "baseline",
)


@typed_arguments
def tune(
    problem: Problem,
    target: str = "auto",
    trials: int | None = None,
    budget: float | str | None = None,
    *,
    chip: str = "",
    threads: int = 1,
    strategy: Path | str | tuple[Path | str, ...] = (),
    library: Path | str | tuple[Path | str, ...] = (),
    reopen: bool = False,
    space: Path | str | None = None,
    sampler: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    fresh: bool = False,
    warm_start: bool | Path | str | tuple[Path | str, ...] = True,
    seeds: Path | str | tuple[Path | str, ...] = (),
    baseline: str = "",
    db: str | Path | None = None,
    observe: Observer | None = None,
    progress: bool = False,
) -> TunedRun:
    """Tunes a problem and returns the run, whose ``best`` is the selected trial.

    The search ends after ``trials`` or ``budget``, whichever is reached first, or where nothing is left to
    try. The fastest trials are then timed again, interleaved, and the best trial is selected. Every trial is
    stored in the results database. A strategy whose constraints allow no configuration is left out. Where the
    strategy or the search space is your own, a warning at the end says so; with ``progress``, a note at the
    start says so in any case.

    Args:
        problem: what to compute, as returned by ``tuner.Matmul``, ``tuner.BatchMatmul``,
            ``tuner.GroupedMatmul``.
        target: "auto" (the first that gives times here), "cpu", "cpu:znver3" (another processor: timed
            where this one offers all that it has, else verified), "cuda", "cuda:sm_90",
            "simulator", "replay:FILE".
        trials: number of candidates; 100 where neither ``trials`` nor ``budget`` is given.
        budget: seconds, or a text such as "60s", "5m" or "1h"; the final re-measurement is included.
        chip: chip to generate code for, such as "sm_90", for a GPU target that names no chip.
        threads: threads of a CPU kernel, 1 or more.
        strategy: names of strategies, or paths of ``.mlir`` and ``.mlir.j2`` scripts, one or several; all
            strategies of the search space where none is given.
        library: paths of ``.mlir`` scripts, one or several, whose sequences the scripts of ``strategy`` use,
            as files of mlir-opt's ``--transform-preload-library``.
        reopen: whether to open the knobs of a script again whose values it selects, as those of exported
            scripts do, so that all their options are searched.
        space: path of a search-space file; None: the shipped ``search_space.yaml``.
        sampler: search method, such as "tpe" or "exhaustive"; None: one that suits the target.
        seed: seed of the sampler and of the random inputs, 0 or more.
        workers: candidates compiled at once; None: the number of cores, at most 4.
        fresh: compile and time again what the database has already; warm-start points come only from files
            that ``warm_start`` names.
        warm_start: whether to begin with the best candidates of the nearest problems in the database; or
            paths of recorded spaces (T4) to take warm-start points from as well.
        seeds: paths of files of configurations to try before all others, one or several; of JSON lines, such
            as ``{"strategy": "matmul_cpu_packed", "knobs": {"tile_m": 8, ...}}``, or of the files of scripts:
            ``{"script": "best.mlir"}``.
        baseline: library that a CPU's kernels are compared with, such as "openblas", "mkl" or "onednn" (the
            guide on tuning lists all), or "best", the fastest installed one that can multiply the type; "":
            OpenBLAS; for bf16, f16 and i8 oneDNN, or OpenBLAS on f32 where it is not installed; for quantized
            weights "best", and none where none is installed.
        db: path or URL of the results database; None: ``TUNER_DB`` of the environment, else the file in the
            user's data directory.
        observe: called with each event of the run (``tuner.tuning.events``).
        progress: whether to print progress on stderr.

    Returns:
        The run with its trials' counts; ``best`` is None where no candidate has a time.

    Raises:
        UsageError: an argument or a file is wrong.
        KeyboardInterrupt: the run was interrupted; its trials are stored, and ``resume`` goes on with the
            run.

    Example:
        >>> import tuner
        >>> run = tuner.tune(tuner.Matmul(64, 64, 64), target="cpu", trials=4)
        >>> run.counts.proposed
        4
        >>> print(f"best: {run.best.time_s * 1e6:.1f} us, {run.best.knobs}")
        best: ... us, {...}
    """
    began_s = time.monotonic()
    request = RunRequest(
        problem,
        **_request_fields(locals()),
        warm_start=warm_start is not False,
        warm_files=() if isinstance(warm_start, bool) else _several(warm_start),
        seeds=_several(seeds),
    )
    settings = run_settings(request, registry.real_backends())  # before a database is opened, which makes one
    return _session(open_or_create, db, partial(begin, settings, began_s=began_s), observe, progress)


@typed_arguments
def resume(
    run: int,
    db: str | Path | None = None,
    observe: Observer | None = None,
    *,
    retime: bool = False,
    trials: int | None = None,
    budget: float | str | None = None,
    progress: bool = False,
) -> TunedRun:
    """Continues an unfinished run by its stored settings, extends a finished one, or re-measures its best.

    Args:
        run: number of the run, as in ``TunedRun.run.id``.
        db: path or URL of the results database; None: as for ``tune``.
        observe: called with each event of the run.
        retime: re-measure the best trials of a finished run; of all timing rounds the quietest counts.
        trials: new limit of candidates, those tried before included. Where ``trials`` or ``budget`` is
            given, None for the other means no such limit; where both are None, the stored limits hold.
        budget: new limit of time, the time spent before included, in seconds or as "5m".
        progress: whether to print progress on stderr.

    Returns:
        The run. A finished run without ``retime``, ``trials`` or ``budget`` is returned unchanged.

    Raises:
        UsageError: there is no such run or database, a limit is below what was tried already, the machine,
            the compiler, the search space or a strategy is another one now, or the run was measured from a
            bundle, was pruned, or belongs to a campaign that is not finished.
        KeyboardInterrupt: the run was interrupted again; its trials are stored.

    Example:
        >>> import tuner
        >>> run = tuner.resume(1, trials=6)
        >>> run.counts.proposed
        6
    """
    limit = RunLimit.of(trials, _seconds(budget))
    work = partial(resume_run, run, retime=retime, limit=limit)
    return _session(open_known, db, work, observe, progress)


def _session(
    opened: "Callable[[str | Path | None], Store]",
    db: str | Path | None,
    work: Callable[..., TunedRun],
    observe: Observer | None,
    progress: bool,
) -> TunedRun:
    notes: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, RunStarted) and event.notes:
            is_own = any(strategy.path is not None for strategy in event.settings.strategies)
            # the shipped search space and scripts need not suit every size
            if is_own or event.settings.space_yaml != load_space_file(default_space_file()).text:
                notes.extend(event.notes)
        if observe is not None:
            observe(event)

    printed = run_progress() if progress else contextlib.nullcontext(ignore)
    try:
        with naming_database(db), opened(db) as store, printed as show:
            both = both_observers(watch, show)
            tuned = work(registry.real_backends(), store, Interruption(), both)
    finally:
        for note in () if progress else notes:  # ``progress`` has printed them
            warnings.warn(note, stacklevel=4)  # 4: the caller of ``tune``, which ``typed_arguments`` wraps
    if tuned.is_interrupted:
        raise KeyboardInterrupt(
            f"run {tuned.run.id} is stored; go on with: tuner tune --resume {tuned.run.id}{database_text(db)}"
        )
    return tuned


@typed_arguments
def tune_many(
    problems: Sequence[Problem] | RowRange,
    target: str = "auto",
    trials: int | None = None,
    budget: float | str | None = None,
    *,
    count: Mapping[Problem, int] | None = None,
    names: Mapping[Problem, str] | None = None,
    chip: str = "",
    threads: int = 1,
    strategy: Path | str | tuple[Path | str, ...] = (),
    library: Path | str | tuple[Path | str, ...] = (),
    reopen: bool = False,
    space: Path | str | None = None,
    sampler: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    fresh: bool = False,
    baseline: str = "",
    db: str | Path | None = None,
    observe: CampaignObserver | None = None,
    progress: bool = False,
) -> TunedCampaign:
    """Tunes many problems under one budget; returns the campaign, with a run and a best trial per problem.

    Every problem gets a few trials; then each trial goes where it promises to save most time. Configurations
    of one problem are tried on the others, in the order of a cost model that is corrected by the times so
    far. At the end the fastest trials of each problem are timed again, interleaved.

    Args:
        problems: what to compute, as returned by ``tuner.Matmul`` or ``tuner.BatchMatmul``; a problem that
            occurs twice counts twice. Or a ``tuner.RowRange``: ``load_range`` then gives a function for each
            number of rows.
        target: as for ``tune``, except "replay:FILE".
        trials: number of candidates of all problems together; 8 per problem where neither ``trials`` nor
            ``budget`` is given.
        budget: time of all problems together, in seconds or as "5m".
        count: how often a problem occurs in what is tuned; for a problem that is left out, how often it is
            in ``problems``.
        names: what a problem is called, such as the name of a layer.
        chip: as for ``tune``, as are the arguments up to ``db``.
        threads: threads of a CPU kernel.
        strategy: names of strategies, or paths of scripts.
        library: paths of ``.mlir`` scripts whose sequences the scripts of ``strategy`` use.
        reopen: whether to search over the options of knobs whose value a script selects.
        space: path of a search-space file.
        sampler: search method for what is tried beyond the common configurations.
        seed: seed of the order of trials, the samplers and the random inputs.
        workers: candidates compiled at once.
        fresh: compile and time again what the database has already.
        baseline: library that a CPU's kernels are compared with.
        db: path or URL of the results database; None: as for ``tune``.
        observe: called with each event of the campaign (``tuner.tuning.events``).
        progress: whether to print progress on stderr.

    Returns:
        The campaign; ``best`` has the best trial of each problem, None where no candidate has a time, and
        ``total_s`` the sum of the best times, each times its count.

    Raises:
        UsageError: an argument or a file is wrong, or a problem cannot be tuned.
        KeyboardInterrupt: the campaign was interrupted; its trials are stored, and ``resume_many`` goes on.

    Example:
        >>> import tuner
        >>> layers = [tuner.Matmul(32, 64, 64), tuner.Matmul(1, 64, 64)]
        >>> campaign = tuner.tune_many(layers, target="cpu", trials=4, count={layers[0]: 12})
        >>> campaign.trials, campaign.counts
        (4, (12, 1))
        >>> [best.run == run.run.id for best, run in zip(campaign.best, campaign.runs)]
        [True, True]
    """
    began_s = time.monotonic()
    fields = _request_fields(locals())
    counts = dict(count or {})
    called = dict(names or {})
    source = ""
    if isinstance(problems, RowRange):
        source = problems.text
        require_on_cpu(source, target)
        tuned = problems.tuned_problems
        counts = {named.problem: named.count for named in tuned} | counts
        called = {named.problem: named.name for named in tuned} | called
        problems = [named.problem for named in tuned]
    for problem in (*counts, *called):
        if problem not in problems:
            raise UsageError(f"count and names: found {problem!r}, allowed one of the problems")
    distinct = distinct_problems(tuple(NamedProblem(each, called.get(each, "")) for each in problems))
    given = tuple(
        NamedProblem(each.problem, each.name, counts.get(each.problem, each.count)) for each in distinct
    )
    request_of = partial(RunRequest, **fields, warm_start=False)
    settings, members = campaign_settings(given, request_of, registry.real_backends(), source)
    work = partial(begin_campaign, settings, members, began_s=began_s)
    return _campaign_session(open_or_create, db, work, observe, progress)


@typed_arguments
def resume_many(
    campaign: int,
    db: str | Path | None = None,
    observe: CampaignObserver | None = None,
    *,
    trials: int | None = None,
    budget: float | str | None = None,
    progress: bool = False,
) -> TunedCampaign:
    """Continues an unfinished campaign of ``tune_many`` by its stored settings, or extends a finished one.

    Args:
        campaign: number of the campaign, as in ``TunedCampaign.campaign.id``.
        db: path or URL of the results database; None: as for ``tune``.
        observe: called with each event of the campaign.
        trials: new limit of candidates of all problems, those tried before included. Where ``trials`` or
            ``budget`` is given, None for the other means no such limit; where both are None, the stored
            limits hold.
        budget: new limit of time, the time spent before included, in seconds or as "5m".
        progress: whether to print progress on stderr.

    Returns:
        The campaign. A finished campaign without ``trials`` or ``budget`` is returned unchanged.

    Raises:
        UsageError: there is no such campaign or database, a limit is below what was tried already, one of its
            runs was extended alone, or the machine, the compiler, the search space or a strategy is another
            one now.
        KeyboardInterrupt: the campaign was interrupted again; its trials are stored.

    Example:
        >>> import tuner
        >>> campaign = tuner.tune_many([tuner.Matmul(32, 64, 64)], target="cpu", trials=2)
        >>> tuner.resume_many(campaign.campaign.id, trials=4).trials
        4
    """
    limit = RunLimit.of(trials, _seconds(budget))
    work = partial(resume_campaign, campaign, limit=limit)
    return _campaign_session(open_known, db, work, observe, progress)


def _campaign_session(
    opened: "Callable[[str | Path | None], Store]",
    db: str | Path | None,
    work: Callable[..., TunedCampaign],
    observe: CampaignObserver | None,
    progress: bool,
) -> TunedCampaign:
    printed = campaign_progress() if progress else contextlib.nullcontext(ignore_campaign)
    with naming_database(db), opened(db) as store, printed as show:
        both = both_observers(show, observe or ignore_campaign)
        tuned = work(registry.real_backends(), store, Interruption(), both)
    if tuned.is_interrupted:
        number = tuned.campaign.id
        named = database_text(db)
        raise KeyboardInterrupt(
            f"campaign {number} is stored; go on with: tuner tune --resume campaign:{number}{named}"
        )
    return tuned


def _request_fields(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of RunRequest for the arguments of ``tune`` or ``tune_many``, by their names."""
    return {
        **{name: arguments[name] for name in SAME_NAMED},
        "strategies": _several(arguments["strategy"]),
        "libraries": _several(arguments["library"]),
        "budget_s": _seconds(arguments["budget"]),
    }


def _seconds(budget: float | str | None) -> float | None:
    if isinstance(budget, str):
        return parse_seconds(budget)
    return budget


def _several(options: Any) -> Any:
    if isinstance(options, Path | str):
        return (options,)
    return options
