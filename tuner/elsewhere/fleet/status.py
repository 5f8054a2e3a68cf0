"""The present state of a fleet: its nodes, devices and queues, and why a job waits.

``fleet_status`` reads all of it for ``tuner fleet status``. ``why_waiting`` reads only why the jobs of one
run wait.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.tables import FleetSettings, SeenNode
from tuner.elsewhere.fleet.work import COMPILE, FleetWork, measure_queue

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.queues import Waiting
    from tuner.elsewhere.fleet.server import Connection


IDLE_WINDOW_S: Final = 60.0  # or since the node joined
BEATS_MISSED: Final = 2  # after which a node counts as silent


@dataclass(frozen=True)
class DeviceStatus:
    """A device on which a node measures: its machine and node, its idle share, and its present work."""

    device: str
    machine: str
    node: str
    idle_share: float  # of the last minute, or since its node joined
    doing: FleetWork | None


@dataclass(frozen=True)
class QueueStatus:
    """The jobs of one queue: how many wait and are done now, of which runs, and why they wait."""

    stage: str  # "compile" or "measure"
    compiler_build: str  # of the run whose job comes first: see ``compiler_build_of``
    device: str  # "" for jobs that need none; the machine's name where no node serves the queue
    waits: int  # number of jobs
    doing: int  # number of jobs that nodes do now
    runs: tuple[str, ...]  # uuids of runs whose jobs wait, that of the next job first
    why: str  # why a job waits; "" where none waits


@dataclass(frozen=True)
class FleetStatus:
    """The state of a fleet at one moment: its nodes, devices and queues, and the runs that have jobs."""

    lease_s: float
    nodes: tuple[SeenNode, ...]
    devices: tuple[DeviceStatus, ...]
    queues: tuple[QueueStatus, ...]
    run_ids: tuple[tuple[str, int], ...]  # of the runs that have jobs: uuid, number in the history

    def run_text(self, uuid: str) -> str:
        """Returns "run N" for a run (uuid) in the results database, else "run " and part of the uuid."""
        return f"run {dict(self.run_ids).get(uuid, uuid[:8])}"

    def state_of(self, seen: SeenNode) -> str:
        """Returns "works", "drains" (it was asked to end) or "lost" (no heartbeat for a lease)."""
        if seen.is_lost(self.lease_s):
            return "lost"
        if seen.drains:
            return "drains"
        return "works"


def fleet_status(connection: "Connection", lease_s: float) -> FleetStatus:
    """Returns a fleet's state, read from its database.

    A node is lost ``lease_s`` seconds after its last heartbeat.
    """
    nodes = tables.stored_nodes(connection)
    waiting = {queue.queue: queue for queue in queues.waiting(connection)}
    busy_s = tables.busy_seconds(connection, IDLE_WINDOW_S)
    devices = tuple(_device(seen, waiting, busy_s) for seen in nodes if seen.node.device)
    listed = tuple(_queue(queue, nodes, lease_s) for queue in waiting.values())
    run_ids = tables.run_ids(connection, queues.runs(connection))
    return FleetStatus(lease_s, nodes, devices, listed, run_ids)


def why_waiting(connection: "Connection", run: str, lease_s: float) -> str:
    """Returns why jobs of a run (uuid) wait, a reason per queue, joined by "; "; "" if none waits.

    A node is lost ``lease_s`` seconds after its last heartbeat.
    """
    nodes = tables.stored_nodes(connection)
    waiting = queues.waiting(connection)
    return "; ".join(_why(queue, nodes, lease_s) for queue in waiting if run in queue.runs)


def _device(seen: SeenNode, waiting: "dict[str, Waiting]", busy_s: dict[str, float]) -> DeviceStatus:
    node = seen.node
    queue = waiting.get(measure_queue(node.machine.name, node.device))
    doing_s = 0.0 if queue is None else queue.doing_s
    window_s = max(min(IDLE_WINDOW_S, seen.age_s), 1e-3)
    idle_share = 1.0 - min(1.0, (busy_s.get(node.name, 0.0) + doing_s) / window_s)
    return DeviceStatus(
        node.device, node.machine.name, node.name, idle_share, None if queue is None else queue.doing
    )


def _queue(waiting: "Waiting", nodes: tuple[SeenNode, ...], lease_s: float) -> QueueStatus:
    work = waiting.example
    is_compile = work.stage == COMPILE
    serving = _serving(waiting.queue, nodes)
    device = ""
    if not is_compile:
        device = serving[0].node.device if serving else work.machine
    return QueueStatus(
        stage=COMPILE if is_compile else "measure",
        compiler_build=work.compiler_build,
        device=device,
        waits=waiting.todo,
        doing=waiting.doing_count,
        runs=waiting.runs,
        why=_why(waiting, nodes, lease_s) if waiting.todo else "",
    )


def _serving(queue: str, nodes: tuple[SeenNode, ...]) -> list[SeenNode]:
    return [seen for seen in nodes if queue in (service.queue for service in seen.node.services)]


def _why(waiting: "Waiting", nodes: tuple[SeenNode, ...], lease_s: float) -> str:
    alive = [seen for seen in _serving(waiting.queue, nodes) if not seen.is_lost(lease_s)]
    silent = [seen for seen in alive if seen.silent_s > BEATS_MISSED * FleetSettings(lease_s).beat_s]
    if not alive:
        return _nobody(waiting.example, nodes, lease_s)
    if all(seen.drains for seen in alive):
        return f"{_names(alive)}: asked to end after its current work"
    if len(silent) == len(alive):
        left_s = lease_s - min(seen.silent_s for seen in silent)
        return f"{_names(silent)}: silent; its work is given to another in {left_s:.0f} s"
    at_once = sum(seen.node.slots for seen in alive) if waiting.example.stage == COMPILE else 1
    if waiting.doing_count >= at_once:
        return f"{_names(alive)}: busy with {waiting.doing_count} of {at_once} at once"
    return "a node is about to take it"


def _nobody(work: FleetWork, nodes: tuple[SeenNode, ...], lease_s: float) -> str:
    here = [seen.node for seen in nodes if not seen.is_lost(lease_s)]
    alive = [node for node in here if node.target == work.target.text]
    if work.stage == COMPILE:
        builds = "; ".join(sorted({node.compiler_build for node in alive if node.slots})) or "none"
        return f"no node compiles {work.target.text} as {work.compiler_build}; found {builds}"
    devices = sorted({f"{node.device} of {node.machine.name}" for node in alive if node.device})
    return f"no node measures on the job's device of {work.machine}; found {'; '.join(devices) or 'none'}"


def _names(nodes: list[SeenNode]) -> str:
    return ", ".join(seen.node.name for seen in nodes)
