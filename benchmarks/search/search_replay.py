"""How fast searches find the best: replays of spaces whose every time is known.

    python -m benchmarks.search.search_replay FILE... --sampler tpe random --evaluations 200 --seeds 20 --json

FILE is a recording: T4 or a Kernel Tuner cache, compressed or not. ``--synthetic N`` adds N made-up spaces.
``--kernel-tuner`` runs its searches on the same spaces, where the package is installed. P is the score of
Willemsen et al., 2024 (doi 10.1016/j.future.2024.05.021): 0 is random search, 1 is the optimum at once.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.kernel_tuner import PREFIX, SEARCHES, is_installed, replay_kernel_tuner, write_cache
from benchmarks.search.replay_run import ReplayedSearch, replay
from benchmarks.search.replay_space import ReplaySpace
from benchmarks.search.synthetic_space import synthetic_space
from tuner.core.errors import UsageError
from tuner.search.samplers import SAMPLERS, require_sampler

STEPS = (25, 50, 100, 200)  # evaluations after which the share of the optimum is reported
REGRET_STEPS = (16, 64, 256)  # evaluations after which the regret is reported
UNSEEDED = ("exhaustive",)

Search = Callable[[int], ReplayedSearch]  # of a seed


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    try:
        for name in options.sampler:
            require_sampler(name)
        spaces = [ReplaySpace.read(file) for file in options.files]
    except UsageError as error:
        sys.exit(f"search_replay: {error}")
    spaces += [synthetic_space(seed) for seed in range(options.synthetic)]
    rows = []
    for space in spaces:
        for row in _replayed(space, options):
            print(_line(row), file=sys.stderr, flush=True)
            rows.append(row)
    settings = {
        "files": [file.name for file in options.files],
        "synthetic": options.synthetic,
        "evaluations": options.evaluations,
        "seeds": options.seeds,
    }
    emit(report("search_replay", settings, rows, _summary(rows)), options.json, options.output)


def _replayed(space: ReplaySpace, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields a row per search."""
    for name in options.sampler:
        search = partial(replay, space, name, evaluations=options.evaluations)
        yield _row(space, name, options, search)
    if not options.kernel_tuner:
        return
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        write_cache(space, cache)
        for name in options.kernel_tuner:
            search = partial(replay_kernel_tuner, space, cache, name, evaluations=options.evaluations)
            yield _row(space, PREFIX + name, options, search)


def _row(space: ReplaySpace, name: str, options: argparse.Namespace, search: Search) -> dict[str, Any]:
    done = [search(seed) for seed in range(options.seeds)]
    scores = [space.score(one.found_s) for one in done]
    asks = sum(one.asks for one in done)
    optimum = float(space.ordered_s[0])
    shares = {
        str(step): statistics.median(optimum / float(one.found_s[step - 1]) for one in done)
        for step in STEPS
        if step <= min(len(one.found_s) for one in done)
    }
    regret = {
        str(step): statistics.mean(float(one.found_s[step - 1]) / optimum - 1 for one in done)
        for step in REGRET_STEPS
        if step <= min(len(one.found_s) for one in done)
    }
    return {
        "space": space.name,
        "rows": space.feasible.rows,
        "search": name,
        "p": statistics.mean(scores),
        "p_standard_error": statistics.stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else None,
        "share_of_optimum": shares,
        "regret": regret,
        "asks_per_evaluation": asks / sum(one.evaluations for one in done),
        "ms_per_ask": 1e3 * sum(one.ask_s for one in done) / asks,
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the mean score of each search over the spaces, the best first."""
    names = dict.fromkeys(row["search"] for row in rows)
    means = {name: float(np.mean([row["p"] for row in rows if row["search"] == name])) for name in names}
    return {"mean_p": dict(sorted(means.items(), key=lambda one: -one[1]))}


def _line(row: dict[str, Any]) -> str:
    error = "" if row["p_standard_error"] is None else f" +- {row['p_standard_error']:.3f}"
    shares = " ".join(f"{share:.3f} @{step}" for step, share in row["share_of_optimum"].items())
    return (
        f"{row['space']:16s} {row['search']:36s} P {row['p']:+.3f}{error}  {shares}  "
        f"{row['asks_per_evaluation']:.2f} asks/evaluation  {row['ms_per_ask']:.1f} ms/ask"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ours = [name for name in SAMPLERS if name not in UNSEEDED]
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument(
        "--sampler", nargs="*", default=ours, metavar="NAME", help=f"default: {' '.join(ours)}"
    )
    parser.add_argument("--kernel-tuner", nargs="*", metavar="NAME", help="its searches; without names: all")
    parser.add_argument("--synthetic", type=int, default=0, metavar="N", help="made-up spaces to add")
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=20, help="searches of each, seeds 0, 1, ...")
    add_report_options(parser)
    options = parser.parse_args()
    if not options.files and not options.synthetic:
        parser.error("found no space, allowed files and --synthetic N")
    for name in ("evaluations", "seeds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: found {getattr(options, name)}, allowed 1 or more")
    options.kernel_tuner = _searches(parser, options.kernel_tuner)
    return options


def _searches(parser: argparse.ArgumentParser, names: list[str] | None) -> tuple[str, ...]:
    """Returns Kernel Tuner's searches to run: by default all where it is installed."""
    for name in names or ():
        if name not in SEARCHES:
            parser.error(f"--kernel-tuner: found {name!r}, allowed {', '.join(SEARCHES)}")
    if names is not None and not is_installed():
        parser.error("--kernel-tuner: the package kernel_tuner is missing")
    return tuple(names or SEARCHES) if is_installed() else ()


if __name__ == "__main__":
    main()
