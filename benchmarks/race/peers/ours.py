"""tuner itself: a search with each budget, then an export as a C library."""

import datetime
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.race.peer import NO_RESULT, LoggedTrial, Peer, PeerKernel, PeerPlace, PeerResult, RaceMatmul
from benchmarks.race.timed_command import EndedCommand, LogWatch, run_for

ASIDE_S = 1.0  # of the race's budget, for start-up and end of the command, which --budget does not count
EXPORT_LIMIT_S = 120.0
FIRST = ("tune", "matmul", "16x16x16", "--threads", "1", "--trials", "1")
COLD = "--no-warm-start"
SETTINGS = (
    "tuner tune matmul MxNxK --dtype DTYPE --threads 1 --budget S --align 16, "
    f"with S {ASIDE_S:g} s less than the budget, interrupted at the budget; tuner export --format c"
)
TRIALS = (
    "SELECT finished, ranked_s, status = 'failed' FROM trial WHERE finished IS NOT NULL ORDER BY finished"
)


def entries(
    case: RaceMatmul, budgets_s: tuple[float, ...], place: PeerPlace, options: tuple[str, ...] = ()
) -> Iterator[PeerResult]:
    """Yields the best of a search with each budget; its wall time includes start-up.

    Before, an untimed command writes Python's byte code, as installing does.
    """
    database = ("--db", f"sqlite:///{place.folder}/first.db")
    run_for(
        (str(place.python), "-m", "tuner", *FIRST, *database),
        place.folder,
        place.core,
        EXPORT_LIMIT_S,
        LogWatch(),
    )
    for budget_s in budgets_s:
        folder = place.folder / f"{budget_s:g}s"
        folder.mkdir()
        yield _entry(case, budget_s, replace(place, folder=folder), options)


def _entry(case: RaceMatmul, budget_s: float, place: PeerPlace, options: tuple[str, ...]) -> PeerResult:
    tuner = (str(place.python), "-m", "tuner")
    database = ("--db", f"sqlite:///{place.folder}/race.db")
    problem = ("matmul", case.shape, "--dtype", case.dtype)
    limits = ("--threads", "1", "--budget", f"{budget_s - ASIDE_S:g}s", "--align", "16", "--json")
    started = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    words = (*tuner, "tune", *problem, *limits, *options, *database)
    ran = run_for(words, place.folder, place.core, budget_s, LogWatch(), stop=signal.SIGINT)
    trials = logged(place.folder / "race.db", started)
    if all(trial.own_s is None for trial in trials):
        reason = NO_RESULT if ran.status is None else ran.failure
        return PeerResult(budget_s, ran.wall_s, reason=reason, trials=trials)
    built = _library(place, (*tuner, "export", *problem), database)
    if built.status != 0:
        return PeerResult(budget_s, ran.wall_s, reason=f"export: {built.failure}", trials=trials)
    kernel = PeerKernel("exported", str(place.folder / "kernel.so"), f"tuner_matmul_{case.dtype}_nn")
    own_s = min(trial.own_s for trial in trials if trial.own_s is not None)
    return PeerResult(budget_s, ran.wall_s, kernel, "", built.wall_s, trials, own_s)


def _library(place: PeerPlace, export: tuple[str, ...], database: tuple[str, str]) -> EndedCommand:
    words = (*export, *database, "--format", "c", "-o", "exported")
    exported = run_for(words, place.folder, place.core, EXPORT_LIMIT_S, LogWatch())
    if exported.status != 0:
        return exported
    sources = ("exported/tuner_matmul.c", "exported/tuner_kernels.o")
    compiler = ("cc", "-O2", "-shared", "-fPIC", *sources, "-o", "kernel.so")
    linked = run_for(compiler, place.folder, place.core, EXPORT_LIMIT_S, LogWatch())
    return EndedCommand(linked.status, exported.wall_s + linked.wall_s, (), linked.output)


def logged(database: Path, started: datetime.datetime) -> tuple[LoggedTrial, ...]:
    """Returns the trials in a results database that have ended, with the seconds since ``started`` (UTC)."""
    if not database.exists():
        return ()
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection, connection:
        rows = connection.execute(TRIALS).fetchall()
    return tuple(
        LoggedTrial(
            (datetime.datetime.fromisoformat(finished) - started).total_seconds(), seconds, bool(is_failed)
        )
        for finished, seconds, is_failed in rows
    )


TUNER = Peer(
    name="tuner",
    title="tuner",
    package="mlir-tuner",
    requirements=(),
    dtypes=("f32", "bf16", "i8"),
    settings=SETTINGS,
    source="docs/getting-started/first-kernel.md",
    entries=entries,
)
COLD_TUNER = Peer(
    name="tuner-cold",
    title="tuner, no warm start",
    package="mlir-tuner",
    requirements=(),
    dtypes=("f32",),
    settings=f"{SETTINGS}; with {COLD}",
    source="docs/reference/command-line.md",
    entries=partial(entries, options=(COLD,)),
)
