"""The functions of the Python API on results: queries of the database, and use of its kernels."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuner.core.candidate import AUTO, TargetName
from tuner.core.errors import UsageError, unknown_value
from tuner.core.problem import Problem
from tuner.core.trials import StoredTrial
from tuner.core.typed_arguments import typed_arguments
from tuner.results.best_trials import NotTunedError, best_here, best_known, best_stock
from tuner.results.database import open_existing, open_known, open_or_empty
from tuner.results.database_name import naming_database
from tuner.results.exported_trial import FORMS, exported, exported_files
from tuner.results.output.files import write_atomically
from tuner.results.past_runs import Trials, past_runs, past_trials
from tuner.results.portfolio import CampaignPortfolio, measured_portfolio
from tuner.results.queries import run_query, trial_query
from tuner.results.tuned_range import tuned_range
from tuner.targets import registry
from tuner.targets.range_kernel import RangeKernel
from tuner.tuning.events import Interruption
from tuner.tuning.tuned_run import TunedCampaign, TunedRun
from tuner.tuning.untuned import shipped_kernel


@typed_arguments
def history(*, db: str | Path | None = None, **conditions: Any) -> Trials:
    """Returns past trials that have an outcome, the earliest first unless ``sort`` says otherwise.

    Args:
        db: path or URL of the results database; None: as for ``tune``.
        conditions: fields of ``TaskQuery`` and ``TrialQuery`` (``tuner.core.queries``); a trial has to meet
            all. Of the problem: ``op`` ("matmul", "batch_matmul"), ``shape`` ("64x64x64", (64, 64, 64)),
            ``dtype`` (a name or a numpy type), ``math`` (as of ``Matmul``), ``layout``, ``epilogue``,
            ``output``. Of the machine: ``target``, ``machine``, ``threads``. Of the trial: ``strategy``,
            ``status`` ("measured", "verified", "failed"), ``run``, ``since`` (a datetime, UTC where it has no
            zone, or a text such as "2026-01-31"), ``best`` (only the best trial per problem, target, threads
            and machine), ``limit``, ``sort`` ("created", "median", "number"; "-" in front reverses). Of
            trials by "created" a limit leaves the latest.

    Returns:
        A tuple of trials, with ``rows()`` and ``to_frame()`` for tables.

    Raises:
        UsageError: an unknown condition, value or run, or a named database that does not exist.

    Example:
        >>> import tuner
        >>> best = tuner.history(op="matmul", shape="64x64x64", best=True)
        >>> [trial.record.problem.key for trial in best]
        ['matmul 64x64x64 f32 nn none']
    """
    query = trial_query(**conditions)
    with naming_database(db), open_known(db) as store:
        return past_trials(store, query)


@typed_arguments
def runs(*, db: str | Path | None = None, **conditions: Any) -> tuple[TunedRun, ...]:
    """Returns past runs with their selected results, the latest first.

    Args:
        db: path or URL of the results database; None: as for ``tune``.
        conditions: fields of ``TaskQuery`` and ``RunQuery`` (``tuner.core.queries``); a run has to meet all.
            Of problem and machine: as for ``history``. Of the run: ``status`` ("running", "done",
            "interrupted"), ``since``, ``limit``.

    Returns:
        A tuple of runs, each with its counts and its best trial.

    Raises:
        UsageError: an unknown condition or value, or a named database that does not exist.

    Example:
        >>> import tuner
        >>> [run.run.id for run in tuner.runs(status="done", shape="64x64x64")][-1]
        1
    """
    query = run_query(**conditions)
    with naming_database(db), open_known(db) as store:
        return past_runs(store, query)


@typed_arguments
def export(
    what: Problem | StoredTrial | int,
    file: Path | str | None = None,
    format: str = "script",  # noqa: A002 - as on the command line
    *,
    db: str | Path | None = None,
    threads: int | None = None,
    target: str = "auto",
    machine: str | None = None,
    stock: bool = False,
) -> bytes:
    """Returns the script of a trial or of a problem's best trial, its payload, or its GPU code.

    Args:
        what: a problem (its best trial is exported), a trial, or the number of a trial.
        file: path to write the bytes to; next to a script ``best.mlir`` its payload and its provenance are
            written, ``best.source.mlir`` and ``best.provenance.json``. None: nothing is written.
        format: "script" (the transform script with a header), "provenance" (what the header says, as JSON),
            "source" (the payload), "payload" (the payload after the script), "ptx", "cubin".
        db: path or URL of the results database; None: as for ``tune``.
        threads: for a problem: threads of the kernel; None: any.
        target: for a problem: as for ``tune``; "auto" is the first target that gives times here and has a
            trial, with ``machine`` any target.
        machine: for a problem: name of the machine that measured; None: this machine.
        stock: export the best script that stock ``mlir-opt`` runs, without tuner's transform ops.

    Returns:
        The content in the chosen format.

    Raises:
        UsageError: an unknown format, nothing measured for the problem, no such trial or database, a trial
            that has no content in this format, or a file that cannot be written.

    Example:
        >>> import tuner
        >>> script = tuner.export(tuner.Matmul(64, 64, 64), "best.mlir", target="cpu")
        >>> script.decode().partition(" on ")[0]
        '// matmul 64x64x64 f32 nn none'
    """
    if format not in FORMS:
        raise unknown_value("format", format, FORMS)
    backends = registry.real_backends()
    output = None if file is None else Path(file)
    with naming_database(db), open_known(db) as store:
        if isinstance(what, Problem):
            trial = best_known(store, backends, what, target, threads, machine).best
        else:
            trial = store.trial(what.id if isinstance(what, StoredTrial) else what)
        trial = best_stock(store, trial).trial if stock else trial
        content = exported(backends, store, trial, format, output)
        files = {} if output is None else {output: content}
        if output is not None and format == "script":
            files = exported_files(backends, store, trial, output)
    for path, body in files.items():
        write_atomically(path, body)
    return content


@typed_arguments
def load_best(
    problem: Problem, db: str | Path | None = None, threads: int | None = None, target: str = "auto"
) -> Callable[..., Any]:
    """Returns the best known kernel of a problem on this machine as a Python function.

    That is the fastest that was tuned here; for a problem that was not, on a CPU, the first choice of the
    results that tuner ships for this class of processor, compiled now and not timed.

    Args:
        problem: the problem that was tuned.
        db: path or URL of the results database; None: as for ``tune``.
        threads: threads of the kernel; None: any, or 1 where nothing was tuned here.
        target: as for ``tune``; "auto" is the first target that gives times here and has a trial.

    Returns:
        ``kernel(a, b, *extra, out=None)``, which returns C. It takes C-contiguous numpy arrays of the
        problem's shapes and dtypes (``Problem.a_shape``, ``b_shape``, ``c_shape``; ``extra`` are those of the
        epilogue, such as a bias of shape (n,)). A kernel of a GPU also takes arrays in device memory (DLPack,
        ``__cuda_array_interface__``) and ``stream``. For arrays in device memory ``out`` has to be given, in
        device memory too, and the call does not wait for the work.

    Raises:
        UsageError: nothing was measured for the problem on this machine, and no results are shipped for it;
            the target does not work here; a database named by ``db`` does not exist.

    Example:
        >>> import numpy as np
        >>> import tuner
        >>> kernel = tuner.load_best(tuner.Matmul(64, 64, 64), target="cpu")
        >>> a, b = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
        >>> float(kernel(a, b)[0, 0])
        64.0
    """
    backends = registry.real_backends()
    try:
        with naming_database(db), open_or_empty(db) as store:
            best = best_here(store, backends, problem, target, threads).best
            return backends.target(best.record.target).load(problem, best, store.code(best.id))
    except NotTunedError:
        if target == AUTO or TargetName.parse(target).is_on_cpu:
            kernel = shipped_kernel(problem, backends.machine(), threads or 1)
            if kernel is not None:
                return kernel
        raise


@typed_arguments
def load_range(campaign: TunedCampaign | int, *, db: str | Path | None = None) -> RangeKernel:
    """Returns a matmul for each number of rows of a range that ``tune_many`` tuned, as a Python function.

    Args:
        campaign: number of a campaign of a ``tuner.RowRange``, or the campaign.
        db: path or URL of the results database; None: as for ``tune``.

    Returns:
        ``kernel(a, b, *extra, out=None)``, which returns C, as that of ``load_best`` does, for each m of the
        range; nothing is compiled at a call. ``kernel.cover.calls(m)`` says which kernels compute m rows.

    Raises:
        UsageError: no such campaign or database, or a campaign that did not tune a range, has no time, or was
            measured on another machine.

    Example:
        >>> import numpy as np
        >>> import tuner
        >>> rows = tuner.RowRange(tuner.Matmul(24, 64, 32))
        >>> kernel = tuner.load_range(tuner.tune_many(rows, target="cpu", trials=9))
        >>> kernel(np.ones((7, 32), np.float32), np.ones((32, 64), np.float32)).shape
        (7, 64)
    """
    number = campaign if isinstance(campaign, int) else campaign.campaign.id
    backends = registry.real_backends()
    with naming_database(db), open_existing(db) as store:
        tuned = tuned_range(number, store)
        machine = tuned.runs[0].machine
        if not backends.machine().is_named(machine.name):
            raise UsageError(f"campaign {number}: was measured on {machine.name!r}, not on this machine")
        target = backends.target(tuned.trials[0].record.target)
        kernels = []
        for trial in tuned.trials:
            problem = replace(trial.record.problem, align="any")  # of a part of the rows
            kernels.append(target.load(problem, trial, store.code(trial.id)))
    return RangeKernel(tuned.row_range, tuned.cover, kernels)


@typed_arguments
def portfolio(
    campaign: TunedCampaign | int, configs: int, *, db: str | Path | None = None, stock: bool = False
) -> CampaignPortfolio:
    """Returns the configurations that serve the problems of a campaign with the least loss of speed.

    A time that a chosen configuration lacks on a problem is measured first, and stored as a trial.

    Args:
        campaign: number of a campaign, or the campaign.
        configs: number of configurations to choose, 1 or more.
        db: path or URL of the results database; None: as for ``tune``.
        stock: choose only configurations whose scripts stock ``mlir-opt`` runs.

    Returns:
        The configurations, and by ``regret`` what each problem loses with them.

    Raises:
        UsageError: no such campaign or database; a campaign without a time, or with fewer configurations;
            times are missing, and the campaign is not finished, or is of another machine or compiler.
        KeyboardInterrupt: interrupted while times were measured; those measured are stored.

    Example:
        >>> import tuner
        >>> layers = [tuner.Matmul(8, 32, 16), tuner.Matmul(32, 32, 16)]
        >>> campaign = tuner.tune_many(layers, target="cpu", trials=4)
        >>> chosen = tuner.portfolio(campaign, configs=2)
        >>> len(chosen.columns), chosen.regret().worst <= 1
        (2, True)
    """
    number = campaign if isinstance(campaign, int) else campaign.campaign.id
    with naming_database(db), open_existing(db) as store:
        backends = registry.real_backends()
        interruption = Interruption()
        return measured_portfolio(number, configs, backends, store, interruption, is_stock=stock)
