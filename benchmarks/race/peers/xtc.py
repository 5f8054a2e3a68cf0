"""XTC: MLIR schedules from a strategy's tile sizes, searched with a random forest."""

import csv
import signal
from collections.abc import Iterator
from pathlib import Path

from benchmarks.race.peer import (
    LoggedTrial,
    Peer,
    PeerKernel,
    PeerPlace,
    PeerResult,
    RaceMatmul,
    results_of_search,
)
from benchmarks.race.timed_command import EndedCommand, LogWatch, run_for

ENDLESS = "100000"  # trials: it has no budget of time
BATCH = "5"  # trials between two predictions
BUILD_LIMIT_S = 300.0
SAMPLE, TIME = "X", "time"  # columns of its CSV


def entries(case: RaceMatmul, budgets_s: tuple[float, ...], place: PeerPlace) -> Iterator[PeerResult]:
    """Yields the best that one search had after each budget."""
    if place.processor:
        yield PeerResult(None, 0.0, reason="loop-explore has code for the processor here alone")
        return
    log = place.folder / "results.csv"
    openmp = str(_openmp(place))
    variables = {"LD_LIBRARY_PATH": openmp, "LIBRARY_PATH": openmp}
    problem = ("--operator", "matmul", "--dims", *case.sizes)
    schedule = ("--backends", "mlir", "--strategy", "tile_goto", "--threads", "1", "--jobs", "1")
    explore = (place.program("loop-explore"), *problem, *schedule)
    search = ("--search", "iterative", "--batch", BATCH, "--validate", "--seed", "0", "--trials", ENDLESS)
    ran = run_for(
        (*explore, *search, "--output", log.name),
        place.folder,
        place.core,
        max(budgets_s),
        LogWatch(lambda: len(logged(log))),
        variables,
        signal.SIGINT,
    )
    trials = tuple(
        LoggedTrial(elapsed_s, own_s, own_s is None, chosen)
        for elapsed_s, (own_s, chosen) in zip(ran.seen_s, logged(log), strict=False)
    )

    def rebuild(
        _until: tuple[LoggedTrial, ...], best: LoggedTrial, folder: Path
    ) -> tuple[EndedCommand, PeerKernel]:
        saved = ("--save-temps", "--save-temps-dir", ".", "--explore-dir", ".", "--output", "one.csv")
        words = (*explore, "--test", *best.chosen, *saved)
        built = run_for(words, folder, place.core, BUILD_LIMIT_S, LogWatch(), variables)
        return built, PeerKernel("bare", str(folder / "payload_matmul_mlir_0000.so"), "matmul")

    yield from results_of_search(ran, trials, budgets_s, place.folder, rebuild)


def logged(log: Path) -> tuple[tuple[float | None, tuple[str, ...]], ...]:
    """Returns XTC's own time (None: failed) and the sample of each trial in its CSV."""
    if not log.exists():
        return ()
    lines = log.read_text().split("\n")[:-1]  # the last one may not be complete
    rows = csv.DictReader(lines)
    return tuple((_seconds(row[TIME]), tuple(row[SAMPLE].strip("[]").split("; "))) for row in rows)


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None


def _openmp(place: PeerPlace) -> Path:
    """Returns a folder with LLVM's OpenMP runtime by the names that XTC looks for."""
    folder = place.folder / "openmp"
    folder.mkdir()
    for name in ("libomp.so", "libiomp5.so"):
        (folder / name).symlink_to(place.python.parents[1] / "lib" / "libiomp5.so")
    return folder


XTC = Peer(
    name="xtc",
    title="XTC",
    package="xtc-tools",
    # LLVM's OpenMP runtime, which XTC looks for when it starts, is Debian's libomp5, or in this wheel
    requirements=("xtc-tools[mlir]==0.3.2", "intel-openmp"),
    dtypes=("f32",),
    settings=(
        "loop-explore --operator matmul --backends mlir --strategy tile_goto --search iterative --batch 5 "
        "--validate --threads 1 --jobs 1 --seed 0, interrupted at the budget; the best again by --test"
    ),
    source="https://github.com/xtc-tools/xtc/blob/main/docs/tutorials/cli_tools.md",
    entries=entries,
)
