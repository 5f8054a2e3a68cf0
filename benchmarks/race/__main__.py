"""Races whole tuners: the same matmuls, the same wall time, one thread on one core, one neutral timer.

    python -m benchmarks.race --install
    python -m benchmarks.race --output race.json               # 10 and 60 s, 40 minutes
    python -m benchmarks.race --quick --output race.json       # 10 s for each tuner, 15 minutes in all
    python -m benchmarks.race --budgets 10 60 300              # two hours

Each tuner works in an environment of its own under ``build/race`` and has its budget from the start of
its process; what has no budget of time is stopped when it is over. ``TUNER_CPU=x86-64-v3`` before the
command races as a processor that this one contains: each peer is told so, libraries by their variables.
Then all kernels of a case are called by one C function on the same arrays, 0 and 16 bytes past a boundary
of 64 bytes, interleaved in rounds of drawn order. Each is compared with float64 before, in a forked
child. bf16 and i8 have the smallest budget only. A peer that is missing, crashes, is wrong or has no
kernel in time is a row with the reason. Nothing else should run on the machine.
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from benchmarks.limited_child import Stopped, in_child
from benchmarks.limited_libraries import limit_libraries
from benchmarks.race.contest import OFFSETS, RacingKernel, build_calls, contest
from benchmarks.race.environments import FOLDER, PeerEnvironment, environment_of, install
from benchmarks.race.measured_peak import peak_flop_per_s
from benchmarks.race.peer import PeerPlace, PeerResult, RaceMatmul
from benchmarks.race.peers import PEERS
from benchmarks.race.rows import Row, key_of, row_of, summary_of
from benchmarks.race.standings import without_folders
from benchmarks.results_file import add_report_options, emit, report, seconds_option
from tuner.core.errors import TunerError
from tuner.core.problem_text import parse_shape
from tuner.runtime.cpu.host import own_limit

SHAPES = ("512x512x512", "333x1777x901", "96x8192x256", "64x64x64")
DTYPES = ("f32", "bf16", "i8")
FULL_DTYPE = "f32"  # the others run with the smallest budget only
BUDGETS_S = (10.0, 60.0)
QUICK_S = (10.0,)
ROUNDS = 31  # the quartiles of 4 q - 1 ratios enclose their median with a known confidence
PEAK_LIMIT_S = 120.0
ROUNDED = ("inductor",)  # give C in the type of A and B
UNREADABLE = (ArithmeticError, LookupError, OSError, TypeError, ValueError)  # of a log in another form


def main() -> int:
    """Runs the race; returns the exit code."""
    options = _arguments()
    if options.install:
        return _install(options.peers)
    environments = {name: environment_of(PEERS[name]) for name in options.peers}
    for name, environment in environments.items():
        _say(f"{PEERS[name].title}: {environment.reason or environment.version}")
    others = os.sched_getaffinity(0) - {options.core}
    if others:
        os.sched_setaffinity(0, others)
    limit_libraries()
    FOLDER.mkdir(parents=True, exist_ok=True)
    calls = build_calls(FOLDER)
    cases = [RaceMatmul(*parse_shape(shape), dtype) for dtype in options.dtypes for shape in options.shapes]
    rows: list[Row] = []
    for number, case in enumerate(cases):
        started_s = time.monotonic()
        rows += _case_rows(case, environments, calls, options)
        seconds = time.monotonic() - started_s
        _say(f"{case.shape} {case.dtype}: {seconds:.0f} s, {len(cases) - 1 - number} matmuls to go")
        document = report("race", _settings(options, environments), rows, summary_of(rows))
        emit(document, options.json and number == len(cases) - 1, options.output)
    return 0


def _processor() -> str:
    """Returns LLVM's name of the processor that the race is limited to, "" for the one here."""
    limit = own_limit()
    return "" if limit is None else limit.name


def _install(names: list[str]) -> int:
    """Makes the environments one after another; one that fails is named with its reason."""
    for name in names:
        _say(f"{PEERS[name].title}: installing")
        reason = install(PEERS[name])
        _say(f"{PEERS[name].title}: {reason or environment_of(PEERS[name]).version}")
    return 0


def _case_rows(
    case: RaceMatmul, environments: dict[str, PeerEnvironment], calls: Path, options: argparse.Namespace
) -> list[Row]:
    """Runs all peers on a matmul, then times their kernels; returns a row for each peer and budget."""
    peak = in_child(peak_flop_per_s, case.dtype, options.core, limit_s=PEAK_LIMIT_S)
    entries: list[tuple[str, PeerResult]] = []
    for name, environment in environments.items():
        if case.dtype in PEERS[name].dtypes:
            entries += [(name, entry) for entry in entries_of(name, case, environment, options)]
    runners = [
        RacingKernel(key_of(name, entry), entry.kernel, environments[name].python, name in ROUNDED)
        for name, entry in entries
        if entry.kernel is not None
    ]
    timings = contest(case, runners, calls, options.core, options.rounds)
    peak_flop = None if isinstance(peak, Stopped) else peak
    return [row_of(case, name, entry, timings, peak_flop) for name, entry in entries]


def entries_of(
    name: str, case: RaceMatmul, environment: PeerEnvironment, options: argparse.Namespace
) -> list[PeerResult]:
    """Runs a peer on a matmul, or says why it is skipped."""
    if environment.reason:
        return [PeerResult(None, 0.0, reason=environment.reason)]
    folder = FOLDER / "runs" / f"{case.shape}-{case.dtype}" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = []
    budgets_s = options.budgets if case.dtype == FULL_DTYPE else options.budgets[:1]
    place = PeerPlace(environment.python, folder, options.core, _processor())
    try:
        for entry in PEERS[name].entries(case, budgets_s, place):
            _say(f"  {key_of(name, entry)}: {entry.wall_s:.1f} s, {len(entry.trials)} trials {entry.reason}")
            found.append(entry)
    except UNREADABLE as error:
        _say(f"  {name}: {error!r}")
        found.append(PeerResult(None, 0.0, reason=f"its results cannot be read: {error!r}"))
    return found


def _settings(options: argparse.Namespace, environments: dict[str, PeerEnvironment]) -> Row:
    peers = {
        name: {
            "title": PEERS[name].title,
            "package": PEERS[name].package,
            "version": environment.version,
            "skipped": without_folders(environment.reason),
            "settings": PEERS[name].settings,
            "source": PEERS[name].source,
        }
        for name, environment in environments.items()
    }
    names = ("shapes", "dtypes", "budgets", "rounds")
    return {
        **{name: getattr(options, name) for name in names},
        "offsets": OFFSETS,
        "processor": _processor(),
        "peers": peers,
    }


def _shape(text: str) -> str:
    try:
        return "x".join(map(str, parse_shape(text)))
    except TunerError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--install", action="store_true", help="make the peers' environments, and end")
    parser.add_argument("--quick", action="store_true", help="a budget of 10 s")
    parser.add_argument(
        "--budgets", nargs="+", type=seconds_option, metavar="S", help="seconds of wall time; default: 10 60"
    )
    parser.add_argument("--shapes", nargs="+", type=_shape, default=SHAPES, metavar="MxNxK")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, choices=range(3, 1000), metavar="N")
    cores = sorted(os.sched_getaffinity(0))
    parser.add_argument("--core", type=int, default=cores[-1], choices=cores, help="default: the last one")
    add_report_options(parser)
    options = parser.parse_args()
    if options.budgets is None:
        options.budgets = QUICK_S if options.quick else BUDGETS_S
    options.budgets = tuple(sorted(options.budgets))
    return options


if __name__ == "__main__":
    sys.exit(main())
