"""The gain of times on other machines: ``python -m benchmarks.search.transfer FOLDER [--json]``.

FOLDER has recordings of search spaces. Those with equal strategies and knobs are one space on several
machines. One machine at a time is left out and searched: from nothing, and as ``tuner tune --warm-start``
begins with the recordings of the others. P is the score of ``search_replay``, over ``--evaluations``.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.replay_run import replay
from benchmarks.search.replay_space import ReplaySpace
from tuner.core.candidate import REPLAY
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.requests import TIMED_SAMPLER, RunRequest
from tuner.core.runs import RunSettings
from tuner.db.store import Store
from tuner.space.recorded.reading import read_recorded
from tuner.targets.registry import real_backends
from tuner.targets.replay import replay_settings
from tuner.tuning.earlier_results import planned, rows_of_first

ANY_PROBLEM = Matmul(4096, 4096, 4096)  # of a recording that names none: it is only compared with itself
STARTS = ("with", "without")


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    try:
        groups = _groups({file: ReplaySpace.read(file) for file in sorted(options.folder.glob("*.json*"))})
    except UsageError as error:
        sys.exit(f"transfer: {error}")
    rows = []
    for left_out, others in groups:
        rows.append(_row(left_out, others, options))
        print(_line(rows[-1]), file=sys.stderr, flush=True)
    if not rows:
        sys.exit(f"transfer: {options.folder}: found no space that two files have, allowed 1 or more")
    settings = {name: getattr(options, name) for name in ("sampler", "evaluations", "seeds")}
    summary = {f"mean_p_{name}": statistics.mean(row[name]["p"] for row in rows) for name in STARTS}
    emit(report("transfer", settings, rows, summary), options.json, options.output)


def _groups(spaces: dict[Path, ReplaySpace]) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yields each file with the others of its space, where there are others."""
    knobs = {
        file: tuple((each.strategy, each.names) for each in space.feasible.spaces)
        for file, space in spaces.items()
    }
    for file in spaces:
        others = tuple(other for other in spaces if other != file and knobs[other] == knobs[file])
        if others:
            yield file, others


def _row(file: Path, others: tuple[Path, ...], options: argparse.Namespace) -> dict[str, Any]:
    space = ReplaySpace.read(file)
    row = {"space": space.name, "rows": space.feasible.rows, "from": [other.name for other in others]}
    for name, warm_files in zip(STARTS, (others, ()), strict=True):
        settings, first = _begun(file, warm_files, options.sampler)
        scores = [
            space.score(
                replay(space, options.sampler, seed, options.evaluations, first, prior=settings.prior).found_s
            )
            for seed in range(options.seeds)
        ]
        error = statistics.stdev(scores) / len(scores) ** 0.5
        row[name] = {"p": statistics.mean(scores), "p_standard_error": error, "scores": scores}
    return row


def _begun(file: Path, warm_files: tuple[Path, ...], sampler: str) -> tuple[RunSettings, tuple[int, ...]]:
    """Returns settings and first rows of a run on a recording that begins with others."""
    problem = read_recorded(file).problem or ANY_PROBLEM
    request = RunRequest(problem, f"{REPLAY}:{file}", sampler=sampler, warm_files=warm_files)
    settings = replay_settings(request, workers=1)
    target = real_backends().target_of_run(settings)
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/results.db") as store:
        settings, plan = planned(settings, target.machine(settings.target), target, store)
    return settings, rows_of_first(settings, plan)


def _line(row: dict[str, Any]) -> str:
    scores = ", ".join(
        f"{name} {row[name]['p']:.3f} +- {row[name]['p_standard_error']:.3f}" for name in STARTS
    )
    return f"{row['space']} from {' '.join(row['from'])}: P {scores}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sampler", default=TIMED_SAMPLER)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10, help="searches of each, seeds 0, 1, ...")
    add_report_options(parser)
    options = parser.parse_args()
    for name, least in (("evaluations", 1), ("seeds", 2)):
        if getattr(options, name) < least:
            parser.error(f"--{name}: found {getattr(options, name)}, allowed {least} or more")
    return options


if __name__ == "__main__":
    main()
