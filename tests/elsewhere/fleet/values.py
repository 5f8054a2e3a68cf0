"""Values of a fleet: work, outcomes, a node."""

import json
from typing import TYPE_CHECKING, Any

from tests.fakes import PROBLEM, FakeTarget
from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.tables import FleetNode
from tuner.elsewhere.fleet.work import COMPILE, FleetWork, Outcome, outcome_from_json

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection as Connection
else:
    Connection = Any  # without the extra fleet

COMPILER_BUILD = "tuner 1, fake 1.0"
FAILED = Outcome(Failure(Stage.COMPILE, "no"), 0.5)


def work(run: str, number: int = 0, stage: str = COMPILE, **changes: Any) -> FleetWork:
    plain: dict[str, Any] = {"compiler_build": COMPILER_BUILD, "machine": "fake", "threads": 1, "seed": 0}
    plain |= {"problem": PROBLEM, "target": TargetName("fake")}
    return FleetWork(run, number, stage, **(plain | changes))


def node(name: str, **changes: Any) -> FleetNode:
    plain: dict[str, Any] = {"host": "here", "process": 1, "target": "fake", "slots": 2}
    plain |= {"device": "here fake", "machine": FakeTarget().machine()}
    plain |= {"compiler_build": COMPILER_BUILD, "tuner_version": "1"}
    return FleetNode(name, **(plain | changes))


def outcomes(connection: Connection, run: str, numbers: list[int] | None = None) -> dict[Any, Outcome]:
    reports = tables.reports_of(connection, run, numbers)
    return {key: outcome_from_json(json.loads(report.text or "")) for key, report in reports.items()}


def under_way(connection: Connection, run: str) -> set[tuple[int, str]]:
    return set(queues.under_way(connection, run))


def defer(
    connection: Connection, asked: FleetWork, queue: str = "compile:a", priority: int = 0, alone: bool = False
) -> int:
    """Queues a piece of work."""
    return queues.defer(connection, queue, asked, priority, alone=alone)


def take_job(connection: Connection, worker: int | None = None) -> None:
    """Lets a node take the next job of any queue; without a number the node is one that is gone."""
    connection.execute("SELECT procrastinate_fetch_job_v2(NULL, %s)", (worker,))
