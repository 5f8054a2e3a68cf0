"""How long a device waits for work during a search: a real run, two nodes that compile, one that measures."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tuner.elsewhere.fleet.local_fleet import local_fleet
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.work import EVALUATE

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection

LIMIT_S: Final = 600


def idle_rows(target: str, shapes: tuple[str, ...], trials: int) -> Iterator[dict[str, Any]]:
    """Yields for each matmul the shares of the search in which its device was idle, and in which it timed."""
    with local_fleet(target, lambda line: print(line, file=sys.stderr)) as nodes:
        for shape in shapes:
            load = os.getloadavg()[0]
            _tune(nodes.url, shape, target, trials)
            with session(nodes.url) as connection:
                found = device_of_last_run(connection)
            yield {"measured": "device", "shape": shape, "trials": trials, **found, "load": load}


def _tune(url: str, shape: str, target: str, trials: int) -> None:
    text = ("tune", "matmul", shape, "--target", target, "--trials", str(trials), "--fleet", "--db", url)
    command = [sys.executable, "-m", "tuner", *text, "--json"]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=True)


def device_of_last_run(connection: "Connection") -> dict[str, Any]:
    """Returns shares of the time from the first trial's measurement to the end of the last trial's."""
    row = connection.execute(
        "WITH trials AS (SELECT extract(epoch FROM began)::float8 AS began, "
        "extract(epoch FROM ended)::float8 AS ended, "
        "coalesce(extract(epoch FROM timed_until - timed_from), 0)::float8 AS timed, "
        "extract(epoch FROM began - lag(ended) OVER (ORDER BY began))::float8 AS gap "
        "FROM fleet_work WHERE stage = %s AND run = (SELECT run FROM fleet_work ORDER BY id DESC LIMIT 1)) "
        "SELECT max(ended) - min(began), sum(ended - began), sum(timed), count(*), "
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY gap), max(gap) FROM trials",
        (EVALUATE,),
    ).fetchone()
    assert row is not None
    search_s, busy_s, timed_s, evaluated, median_gap_s, longest_gap_s = row
    return {
        "evaluated": evaluated,
        "idle_share": round(1 - busy_s / search_s, 4),
        "timed_share": round(timed_s / search_s, 4),
        "median_gap_ms": round(1e3 * median_gap_s, 1),
        "longest_gap_ms": round(1e3 * longest_gap_s, 1),
        "trials_per_s": round(evaluated / search_s, 2),
    }
