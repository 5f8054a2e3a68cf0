"""How much longer work takes while an idle measuring node runs than while that node is stopped."""

import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tuner.elsewhere.fleet.commands.status import read_fleet_status
from tuner.elsewhere.fleet.local_fleet import local_fleet
from tuner.elsewhere.fleet.noise_check import ALLOWED, NoiseCheck, check_noise, nodes_to_check


def noise_rows(target: str, rounds: int, slice_s: float) -> Iterator[dict[str, Any]]:
    """Yields the results of ``tuner fleet status --check`` for the measuring node of a local fleet."""
    with local_fleet(target, lambda line: print(line, file=sys.stderr)) as nodes:
        status = read_fleet_status(nodes.url)
        for node in nodes_to_check(status, socket.gethostname()):
            load = os.getloadavg()[0]
            found = check_noise(node, rounds, status.lease_s, np.random.default_rng(0), slice_s)
            yield row_of(found) | {"load": load}


def row_of(found: NoiseCheck) -> dict[str, Any]:
    """Returns in percent how much longer work takes while the node runs, with a 99 % interval."""
    longer = found.longer
    return {
        "measured": "noise",
        "rounds": found.rounds,
        "longer_percent": round(100 * longer.median, 3),
        "interval_percent": [round(100 * each, 3) for each in longer.interval],
        "noise_percent": round(100 * longer.noise, 3),
        "allowed_percent": round(100 * ALLOWED, 3),
        "is_quiet": found.is_quiet,
    }
