"""A fleet of machines: simulated with up to 1,000 nodes, and its job queue on a real local server.

    python -m benchmarks.fleet --simulate --output benchmarks/results/fleet_simulated.json
    python -m benchmarks.fleet --real --output benchmarks/results/fleet_real.json
    python -m benchmarks.fleet --idle --output benchmarks/results/fleet_idle.json
    python -m benchmarks.fleet --noise --output benchmarks/results/fleet_noise.json

``--real`` starts PostgreSQL and nodes whose work is to sleep: jobs per second, gaps between measurements,
processor time of an idle node. ``--idle`` tunes matmuls on a local fleet, two nodes that compile and one that
measures, and reports how long the device waited for work. ``--noise`` times the same work while a node runs
and while that node is stopped, on a machine that is quiet otherwise.

``--recording FILE`` (T4 or a Kernel Tuner cache) is the space on which the cost of staleness is measured:
trials until a kernel reaches 95 % of the optimum's speed, where proposals are made before earlier outcomes
are known.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.fleet.device_idle import idle_rows
from benchmarks.fleet.measured_queue import measured_rows
from benchmarks.fleet.node_noise import noise_rows
from benchmarks.fleet.simulated_rows import simulated_rows
from benchmarks.fleet.soonest import soonest_rows
from benchmarks.fleet.staleness import staleness_rows
from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.replay_space import ReplaySpace
from tuner.core.errors import UsageError
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.local_fleet import NoServerError, server
from tuner.elsewhere.fleet.noise_check import SLICE_S
from tuner.elsewhere.fleet.tables import FleetSettings
from tuner.search.samplers import require_sampler

SHIPPED = Path(__file__).parents[2] / "tuner" / "space" / "recorded" / "matmul_48x64x40.t4.json.gz"


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    kind = _real if options.real else _idle if options.idle else _noise if options.noise else _simulated
    emit(kind(options), options.json, options.output)


def _simulated(options: argparse.Namespace) -> dict[str, Any]:
    try:
        require_sampler(options.sampler)
        space = ReplaySpace.read(options.recording)
    except UsageError as error:
        sys.exit(f"fleet: {error}")
    rows = [_reported(row) for row in simulated_rows()]
    staleness = [
        _reported(row) for row in staleness_rows(space, options.sampler, options.evaluations, options.seeds)
    ]
    settings = {
        "recording": options.recording.name,
        "sampler": options.sampler,
        "evaluations": options.evaluations,
        "seeds": options.seeds,
    }
    summary = {"soonest": soonest_rows(rows, staleness)}
    return report("fleet_simulated", settings, rows, summary) | {"staleness": staleness}


def _real(options: argparse.Namespace) -> dict[str, Any]:
    try:
        with server() as url:
            install(url, FleetSettings())
            rows = [
                _reported(row)
                for row in measured_rows(url, options.jobs, options.measurements, options.idle_s)
            ]
    except NoServerError as error:
        sys.exit(f"fleet: {error}")
    settings = {"jobs": options.jobs, "measurements": options.measurements, "idle_s": options.idle_s}
    return report("fleet_real", settings, rows, {})


def _idle(options: argparse.Namespace) -> dict[str, Any]:
    try:
        rows = [_reported(row) for row in idle_rows("cpu", options.shapes, options.trials)]
    except NoServerError as error:
        sys.exit(f"fleet: {error}")
    return report("fleet_idle", {"target": "cpu", "compiling": 2, "measuring": 1}, rows, {})


def _noise(options: argparse.Namespace) -> dict[str, Any]:
    try:
        rows = [_reported(row) for row in noise_rows("cpu", options.rounds, options.slice_s)]
    except NoServerError as error:
        sys.exit(f"fleet: {error}")
    settings = {"target": "cpu", "rounds": options.rounds, "slice_s": options.slice_s}
    return report("fleet_noise", settings, rows, {})


def _reported(row: dict[str, Any]) -> dict[str, Any]:
    """Prints a row of the results and returns it."""
    print(", ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr, flush=True)
    return row


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--simulate", action="store_true", help="discrete events: idle share, database, staleness"
    )
    what.add_argument("--real", action="store_true", help="PostgreSQL and sleeping nodes on this machine")
    what.add_argument("--idle", action="store_true", help="how long a device here waits during searches")
    what.add_argument("--noise", action="store_true", help="what a node here costs the work beside it")
    parser.add_argument("--shapes", nargs="+", default=("256x256x256", "512x512x512"), metavar="MxNxK")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--measurements", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=40, help="of three slices, with --noise")
    parser.add_argument("--slice-s", type=float, default=SLICE_S, help="of work, with --noise")
    parser.add_argument("--idle-s", type=float, default=5.0)
    parser.add_argument("--recording", type=Path, default=SHIPPED, metavar="FILE")
    parser.add_argument("--sampler", default="tpe")
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=10)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
