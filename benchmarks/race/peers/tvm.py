"""TVM's MetaSchedule: evolutionary search with XGBoost over schedules of TensorIR."""

import json
import shutil
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

SCRIPT = Path(__file__).parents[1] / "served" / "tvm_matmul.py"
RECORDS, WORKLOADS = "database_tuning_record.json", "database_workload.json"
FAILED_S = 1e6  # what it records for a failure is longer
BUILD_LIMIT_S = 300.0
DEFAULT_ROUND, SHORT_ROUND = "64", "8"  # trials
LONG_S = 200.0  # a budget


def entries(case: RaceMatmul, budgets_s: tuple[float, ...], place: PeerPlace) -> Iterator[PeerResult]:
    """Yields the best that one search had after each budget."""
    records = place.folder / "tuned" / RECORDS
    script = (str(place.python), str(SCRIPT))
    problem = (*case.sizes, case.dtype)
    ran = run_for(
        (*script, "tune", *problem, place.processor, "tuned", trials_in_round(max(budgets_s))),
        place.folder,
        place.core,
        max(budgets_s),
        LogWatch(lambda: len(logged(records))),
    )
    trials = tuple(
        LoggedTrial(elapsed_s, own_s, own_s is None)
        for elapsed_s, own_s in zip(ran.seen_s, logged(records), strict=False)
    )

    def rebuild(
        until: tuple[LoggedTrial, ...], _best: LoggedTrial, folder: Path
    ) -> tuple[EndedCommand, PeerKernel]:
        copy_first(records.parent, len(until), folder)
        words = (*script, "build", *problem, place.processor, str(folder))
        built = run_for(words, folder, place.core, BUILD_LIMIT_S, LogWatch())
        return built, PeerKernel("tvm", str(folder / "best.so"), "__tvm_ffi_main")

    yield from results_of_search(ran, trials, budgets_s, place.folder, rebuild)


def trials_in_round(budget_s: float) -> str:
    """Returns its default, or fewer where the first round would not end within the budget.

    A round begins with a process that parses TVM's intrinsics for 19 s; a build takes about a second.
    """
    return DEFAULT_ROUND if budget_s >= LONG_S else SHORT_ROUND


def logged(records: Path) -> tuple[float | None, ...]:
    """Returns TVM's own time (None: failed) of each record."""
    if not records.exists():
        return ()
    lines = records.read_text().split("\n")[:-1]  # the last one may not be complete
    return tuple(_seconds(json.loads(line)[1][1]) for line in lines)


def _seconds(runs_s: list[float]) -> float | None:
    if not runs_s or min(runs_s) >= FAILED_S:
        return None
    return sum(runs_s) / len(runs_s)


def copy_first(database: Path, records: int, folder: Path) -> None:
    """Copies a database with its first records only."""
    shutil.copy(database / WORKLOADS, folder)
    lines = (database / RECORDS).read_text().splitlines(keepends=True)
    (folder / RECORDS).write_text("".join(lines[:records]))


TVM = Peer(
    name="tvm",
    title="TVM",
    package="apache-tvm",
    # with the newest apache-tvm-ffi it crashes when it makes a task
    requirements=(
        "apache-tvm==0.27.0.post1",
        "apache-tvm-ffi==0.1.14.post1",
        *("xgboost-cpu", "psutil", "cloudpickle", "tornado", "numpy"),
    ),
    dtypes=("f32", "i8"),
    settings=(
        "MetaSchedule: tune_tir with its defaults (post-order-apply, evolutionary, xgb), target llvm of the "
        "processor with num-cores=1, num_tuning_cores=1, LocalBuilder(max_workers=1, timeout_sec=120), "
        "num_trials_per_iter=8 (64, its default, for 200 s or more); killed at the budget; the best again by "
        "compile_tir"
    ),
    source="https://tvm.apache.org/docs/deep_dive/tensor_ir/tutorials/meta_schedule.html",
    entries=entries,
)
