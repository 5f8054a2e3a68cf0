"""A fault-injection test: busy loops start and stop during runs, and no printed ratio may mislead.

    python -m benchmarks.busy_loops --json --output benchmarks/results/busy_loops.json

Begin on a quiet machine: all ratios are compared with that of the first run, which must be reliable. A run
passes if its ratio is within 10 % of the first one, or if the result is marked unreliable.
"""

import argparse
import itertools
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Semaphore
from typing import Any

import tuner
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.matmul import Matmul
from tuner.core.problem_text import parse_shape

TOLERANCE = 0.1  # relative, of the ratio
STRETCH_S = (0.1, 2.0)  # shortest and longest time for which a loop runs or is stopped
QUIET_TRIES = 3  # for a reliable run to compare with


def main() -> None:
    """Runs the test; exits with 1 where a ratio misled."""
    options = _arguments()
    quiet_ratio = options.quiet_ratio or _quiet_ratio(options)
    print(f"quiet: {quiet_ratio:.3f}", file=sys.stderr, flush=True)
    rows = []
    for number in range(options.runs):
        with busy_loops(options.loops, random.Random(number)):
            rows.append(_run(options, number))
        rows[-1]["passes"] = _passes(rows[-1], quiet_ratio)
        print(f"run {number}: {rows[-1]}", file=sys.stderr, flush=True)
    passed = sum(row["passes"] for row in rows)
    summary = {
        "quiet_ratio": quiet_ratio,
        "passed": passed,
        "unreliable": sum(bool(row["unreliable"]) for row in rows),
    }
    print(f"{passed} of {len(rows)} passed", file=sys.stderr)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("busy_loops", settings, rows, summary), options.json, options.output)
    sys.exit(passed != len(rows))


def _quiet_ratio(options: argparse.Namespace) -> float:
    for number in range(QUIET_TRIES):
        row = _run(options, number)
        if not row["unreliable"] and row["ratio"] is not None:
            return float(row["ratio"])
        print(f"not quiet: {row['unreliable']}", file=sys.stderr, flush=True)
    raise SystemExit(f"{QUIET_TRIES} runs without a busy loop were unreliable: begin on a quiet machine")


def _run(options: argparse.Namespace, number: int) -> dict[str, Any]:
    """Tunes without a warm start; returns what was printed of the result."""
    problem = Matmul(*parse_shape(options.shape))
    with tempfile.TemporaryDirectory() as folder:
        tuned = tuner.tune(
            problem,
            target="cpu",
            threads=options.threads,
            trials=options.trials,
            seed=options.seed,
            db=f"{folder}/drill.db",
        )
    run, selected = tuned.run, tuned.selected
    if selected is None or run.baseline is None:
        raise SystemExit(f"{problem.key}: no candidate or no baseline was timed")
    ratio = run.baseline.measurement.median_s / selected.measurement.median_s
    return {
        "number": number,
        "ratio": None if run.reliability.unreliable else ratio,  # as it is printed
        "unreliable": run.reliability.unreliable or None,
        "ratio_not_told": ratio if run.reliability.unreliable else None,
        "noise": run.noise,
        "median_s": selected.measurement.median_s,
        "baseline": run.baseline.name,
    }


def _passes(row: dict[str, Any], quiet_ratio: float) -> bool:
    return row["ratio"] is None or abs(row["ratio"] / quiet_ratio - 1) <= TOLERANCE


@contextmanager
def spinning(count: int, *, is_bound: bool = False) -> Iterator[tuple[BaseProcess, ...]]:
    """Starts processes that are busy until the end of the block.

    Bound processes run on one processor each, round-robin: two on one would leave another free for the timed
    work.
    """
    spawning = multiprocessing.get_context("spawn")
    started = spawning.Semaphore(0)
    arguments = (os.getpid(), started)
    loops = tuple(spawning.Process(target=spin, args=arguments, daemon=True) for _ in range(count))
    usable = sorted(os.sched_getaffinity(0))
    for loop, processor in zip(loops, itertools.cycle(usable), strict=False):
        loop.start()
        if is_bound:
            os.sched_setaffinity(loop.pid or 0, {processor})
    try:
        for _ in loops:
            started.acquire()
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.join()


@contextmanager
def busy_loops(count: int, chance: random.Random) -> Iterator[None]:
    """Starts processes with busy loops that start and stop at random."""
    over = threading.Event()
    with spinning(count) as loops:
        switches = [
            threading.Thread(target=_switch, args=(loop.pid, random.Random(chance.random()), over))
            for loop in loops
        ]
        for switch in switches:
            switch.start()
        try:
            yield
        finally:
            over.set()
            for switch in switches:
                switch.join()


def spin(parent: int, started: Semaphore) -> None:
    """Loops until the parent process has ended, in whatever way; releases ``started`` first."""
    os.setsid()  # Linux shares processors out to sessions: all loops of one session would get one share
    started.release()
    while os.getppid() == parent:
        for _ in range(10**6):
            pass


def _switch(process: int, chance: random.Random, over: threading.Event) -> None:
    """Stops and continues a loop, alternately, until the test is over."""
    while not over.is_set():
        for what in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(process, what)
            over.wait(chance.uniform(*STRETCH_S))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", default="512x512x512")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--loops", type=int, default=os.cpu_count() or 1, help="at once, at most")
    parser.add_argument("--quiet-ratio", type=float, help="of a run on this machine when it was quiet")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
