"""Runs the tests that talk to processes, clocks and databases again and again on a busy machine.

    python -m benchmarks.stress --rounds 20 --output benchmarks/results/stress.json
    python -m benchmarks.stress --rounds 20 --output benchmarks/results/stress.json --resume

The file is written after each round; ``--resume`` keeps the rounds that it has and runs the missing ones.

In every round busy loops start and stop on each processor. In every second one, all processes of the tests
are also stopped together (SIGSTOP) and go on after a while, as on a virtual machine that loses its
processors. A test that fails in any round is a failure: the exit code is 1, and its name is in the results.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

from benchmarks.busy_loops import busy_loops
from benchmarks.results_file import add_report_options, emit, report
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.workers.processes import DEAD, state_of

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/runtime/workers",
    "tests/elsewhere/fleet",
    "tests/db/test_maintenance.py",
    "tests/db/test_database.py",
    "tests/db/test_opening.py",
    "tests/db/test_rows.py",
    "tests/elsewhere/bundle",
    "tests/runtime/cpu",
    "tests/runtime/test_timing.py",
    "tests/targets/cpu/test_callables.py",
    "tests/targets/cpu/test_blas.py",
    "tests/tuning/test_resume.py",
    "tests/tuning/test_rounds.py",
    "tests/tuning/test_session.py",
    "tests/cli/test_processes.py",
    "tests/cli/test_main.py",
)
VARIABLE = "TUNER_STRESS"  # which every process of a round inherits
STOPPED = "tT"  # states of proc_pid_stat(5): by a debugger, by a signal
RUNS_S, STANDS_S = (2.0, 5.0), (0.4, 1.2)  # between two stops, and for one
PYTEST = ("-m", "pytest", "-q", "-n", "4", "--dist", "worksteal", "-p", "no:cacheprovider")


def main() -> None:
    """Runs the rounds; exits with 1 where a test failed in any of them."""
    options = _options()
    settings = {"tests": list(options.tests), "loops": options.loops, "seed": options.seed}
    rows = finished_rounds(options.output, settings) if options.resume else []
    for number in range(len(rows), options.rounds):
        rows.append(_round(options, number))
        print(f"round {number}: {rows[-1]}", file=sys.stderr, flush=True)
        emit(report("stress", settings, rows, _summary(rows)), False, options.output)
    emit(report("stress", settings, rows, _summary(rows)), options.json, options.output)
    sys.exit(any(row["exit_code"] for row in rows))


def finished_rounds(output: Path | None, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rounds of an existing results file; none where there is no file.

    Exits for other settings.
    """
    if output is None or not output.exists():
        return []
    document = json.loads(output.read_text())
    if document["settings"] != settings:
        sys.exit(f"{output}: its rounds had other settings; give another --output")
    return list(document["rows"])


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "rounds": len(rows),
        "rounds_with_failures": sum(row["exit_code"] != 0 for row in rows),
        "tests": sum(row["tests"] for row in rows),
        "failures": sorted({name for row in rows for name in row["failures"]}),
    }


def _round(options: argparse.Namespace, number: int) -> dict[str, Any]:
    """Runs the tests once under the load of this round, and returns the results."""
    chance = random.Random(f"{options.seed} {number}")
    stops = number % 2 == 1
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, busy_loops(options.loops, chance):
        results, token = Path(folder) / "results.xml", uuid4().hex
        tests = subprocess.Popen(
            [sys.executable, *PYTEST, f"--junitxml={results}", *options.tests],
            cwd=ROOT,
            env={**os.environ, VARIABLE: token, "OPENBLAS_NUM_THREADS": "1"},
            stdout=sys.stderr,
            start_new_session=True,
        )
        with stopping(token, chance) if stops else contextlib.nullcontext():
            exit_code = tests.wait()
        found = outcomes(results) if results.exists() else (0, ())
    return {
        "round": number,
        "machine": describe_machine().name,
        "commit": _commit(),
        "load": "busy loops, stops" if stops else "busy loops",
        "tests": found[0],
        "failures": list(found[1]),
        "exit_code": exit_code,
        "seconds": round(time.monotonic() - began_s, 1),
    }


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip()


def outcomes(results: Path) -> tuple[int, tuple[str, ...]]:
    """Returns how many tests of a JUnit file were not skipped, and the names of the failed tests."""
    cases = ElementTree.parse(results).iter("testcase")  # noqa: S314 - pytest has just written it
    ran = [case for case in cases if case.find("skipped") is None]
    failed = [case for case in ran if case.find("failure") is not None or case.find("error") is not None]
    return len(ran), tuple(f"{case.get('classname')}::{case.get('name')}" for case in failed)


@contextlib.contextmanager
def stopping(token: str, chance: random.Random) -> Iterator[None]:
    """Stops and continues all processes of a round together, again and again, until the block ends."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(chance.uniform(*RUNS_S)):
            stopped = stop_all(token)
            over.wait(chance.uniform(*STANDS_S))
            go_on(stopped)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def stop_all(token: str) -> tuple[int, ...]:
    """Stops every process that inherited the token; returns the processes that were running before."""
    stopped = []
    for process in _processes_with(token):
        if state_of(process) not in (*STOPPED, *DEAD, ""):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                stopped.append(process)
    return tuple(stopped)


def go_on(processes: tuple[int, ...]) -> None:
    """Lets stopped processes go on."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def _processes_with(token: str) -> Iterator[int]:
    mark = f"{VARIABLE}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", default=TESTS, help="files and folders in place of the usual")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--loops", type=int, default=os.cpu_count() or 1, help="busy loops, at most at once")
    parser.add_argument("--seed", type=int, default=0, help="of when loops and stops begin and end")
    parser.add_argument("--resume", action="store_true", help="keep the rounds that --output has")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
