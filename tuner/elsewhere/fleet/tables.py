"""The tables and settings that drivers and nodes share, by plain SQL: a node needs no SQLAlchemy.

``FleetSettings`` is what all agree on, a ``FleetNode`` what a node reports of itself, a ``SeenNode`` what the
database knows of it; an ``Execution`` is one attempt at a piece of work.
"""

import datetime
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.serialization import decode, encode
from tuner.elsewhere.fleet.work import (
    FleetWork,
    Key,
    Outcome,
    Service,
    compile_queue,
    inflate,
    measure_queue,
    require_hash,
    to_json,
)

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection


LEASE_S: Final = 30.0  # a node without a heartbeat for so long loses its work
BEATS: Final = 3  # heartbeats within a lease
LEAST_LEASE_S: Final = 1.0
NAME: Final = "lease_s"
# of code, uncompressed; for CPUs some 100 kB, 10 MB where loops are unrolled
BLOB_LIMIT_BYTES: Final = 64 << 20
REPORT_LIMIT_BYTES: Final = 4 << 20  # of an outcome; final times of 20 candidates are some 100 kB


@dataclass(frozen=True)
class FleetSettings:
    """Settings that all drivers and nodes of a fleet share.

    A node is lost ``lease_s`` seconds after its last heartbeat: other nodes get its jobs. Raises UsageError
    for fewer than LEAST_LEASE_S seconds.
    """

    lease_s: float = LEASE_S

    def __post_init__(self) -> None:
        if not self.lease_s >= LEAST_LEASE_S:
            raise UsageError(f"lease: found {self.lease_s:g} s, allowed {LEAST_LEASE_S:g} s or more")

    @property
    def beat_s(self) -> float:
        return self.lease_s / BEATS


def write_settings(connection: "Connection", settings: FleetSettings) -> None:
    """Stores the settings of a fleet; running nodes and drivers keep the settings that they have read."""
    connection.execute(
        "INSERT INTO fleet_setting (name, value) VALUES (%s, %s) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (NAME, repr(settings.lease_s)),
    )


def read_settings(connection: "Connection") -> FleetSettings:
    """Returns the stored settings of a fleet. Raises UsageError for a database without a fleet."""
    import psycopg

    try:
        row = connection.execute("SELECT value FROM fleet_setting WHERE name = %s", (NAME,)).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    if row is None:
        raise UsageError("this database has no fleet", "tuner fleet up")
    return FleetSettings(float(str(row[0])))


@dataclass(frozen=True)
class NodeReport:
    """A node's report on a piece of work: an outcome as JSON, which is not checked yet."""

    text: str | None  # JSON; None: longer than REPORT_LIMIT_BYTES
    node: str


@dataclass(frozen=True)
class FleetNode:
    """A node: a process that compiles or measures for tuning runs of other processes."""

    name: str
    host: str
    process: int
    target: str
    slots: int  # candidates compiled at once; 0: it compiles nothing
    device: str  # that it alone measures on; "": it measures nothing
    machine: Machine
    compiler_build: str  # compiler_build_of(compiler)
    tuner_version: str

    @property
    def services(self) -> tuple[Service, ...]:
        """Returns the job queues that the node serves, each with how many jobs it does at once."""
        services: tuple[Service, ...] = ()
        if self.slots:
            services += (Service(compile_queue(self.compiler_build), self.slots),)
        if self.device:
            services += (Service(measure_queue(self.machine.name, self.device), 1),)
        return services


@dataclass(frozen=True)
class QueueLoad:
    """The load that a node's process, without its children, puts on its machine."""

    cpu_share: float  # of one processor
    wakeups_per_s: float


@dataclass(frozen=True)
class SeenNode:
    """A node as stored in the fleet's database, with its age and the time since its last heartbeat."""

    node: FleetNode
    age_s: float  # since it joined
    silent_s: float  # since its last heartbeat
    drains: bool
    load: QueueLoad | None = None  # None: no heartbeat since it joined

    def is_lost(self, lease_s: float) -> bool:
        """Returns whether the last heartbeat is ``lease_s`` seconds ago or more: other nodes get its jobs."""
        return self.silent_s >= lease_s


@dataclass(frozen=True)
class Interval:
    """The begin and end of an activity, by a node's clock."""

    began: datetime.datetime
    ended: datetime.datetime


@dataclass(frozen=True)
class Execution:
    """One attempt at a piece of work: on which node and device, and when it was worked on and timed."""

    node: str
    device: str
    whole: Interval
    timed: Interval | None = None  # while nothing else ran on the device


# Compiled code, by the hash of its bytes.


def store_blob(connection: "Connection", sha256: str, blob: bytes) -> None:
    """Stores bytes under their SHA-256, unless bytes are stored there already.

    For nodes, whose role in the database may not change stored bytes.
    """
    connection.execute(
        "INSERT INTO fleet_blob (sha256, body, stored) VALUES (%s, %s, now()) ON CONFLICT DO NOTHING",
        (sha256, zlib.compress(blob)),
    )


def replace_blob(connection: "Connection", sha256: str, blob: bytes) -> None:
    """Stores bytes under their SHA-256, in place of stored ones.

    For drivers, which do not trust what a node stored.
    """
    connection.execute(
        "INSERT INTO fleet_blob (sha256, body, stored) VALUES (%s, %s, now()) "
        "ON CONFLICT (sha256) DO UPDATE SET body = excluded.body, stored = excluded.stored",
        (sha256, zlib.compress(blob)),
    )


def delete_blob(connection: "Connection", sha256: str) -> None:
    """Deletes the bytes stored under a hash."""
    connection.execute("DELETE FROM fleet_blob WHERE sha256 = %s", (sha256,))


def blob_of(connection: "Connection", sha256: str) -> bytes | None:
    """Returns the bytes stored under a hash; None: there are none.

    Raises UsageError for bytes of another hash, damaged ones, and for more than BLOB_LIMIT_BYTES.
    """
    row = connection.execute(
        "SELECT CASE WHEN octet_length(body) <= %s THEN body END FROM fleet_blob WHERE sha256 = %s",
        (BLOB_LIMIT_BYTES, sha256),
    ).fetchone()
    if row is None:
        return None
    try:
        blob = inflate(bytes(row[0] or b""), BLOB_LIMIT_BYTES)
    except ValueError as error:
        raise UsageError(f"fleet: blob {sha256[:12]}: {error}") from error
    return require_hash(sha256, blob)


# Outcomes of work, and the notification that there is one.


def store_outcome(connection: "Connection", key: Key, outcome: Outcome, node: str) -> None:
    """Stores the outcome of a piece of work, unless it has one; notifies the driver of the run.

    ``key``: (run uuid, trial number, stage); ``node``: name of the node that reports.
    """
    connection.execute(
        "INSERT INTO fleet_outcome (run, number, stage, body, node, told) VALUES (%s, %s, %s, %s, %s, now()) "
        "ON CONFLICT DO NOTHING",
        (*key, json.dumps(to_json(outcome)), node),
    )
    notify_driver(connection, key[0])


def notify_driver(connection: "Connection", run: str) -> None:
    """Wakes the process that drives a run (uuid), to look for new outcomes or a cancellation."""
    connection.execute("SELECT pg_notify(%s, '')", (channel_of(run),))


def channel_of(run: str) -> str:
    """Returns the PostgreSQL notification channel of a run (uuid), on which its driver listens."""
    return f"fleet_{run}"


def has_outcome(connection: "Connection", key: Key) -> bool:
    """Returns whether a piece of work, (run uuid, trial number, stage), has a stored outcome."""
    row = connection.execute(
        "SELECT 1 FROM fleet_outcome WHERE run = %s AND number = %s AND stage = %s", key
    ).fetchone()
    return row is not None


def reports_of(
    connection: "Connection", run: str, numbers: list[int] | None = None
) -> dict[tuple[int, str], NodeReport]:
    """Returns the nodes' reports on a run (uuid): (trial number, stage) -> report.

    ``numbers``: only reports on trials with these numbers; None: reports on all of the run's work.
    """
    rows = connection.execute(
        "SELECT number, stage, CASE WHEN octet_length(body::text) <= %s THEN body::text END, node "
        "FROM fleet_outcome WHERE run = %s AND (%s::bigint[] IS NULL OR number = ANY(%s))",
        (REPORT_LIMIT_BYTES, run, numbers, numbers),
    )
    return {(number, stage): NodeReport(text, node) for number, stage, text, node in rows}


def delete_outcome(connection: "Connection", key: Key) -> None:
    """Deletes the outcome of a piece of work; ``key`` is (run uuid, trial number, stage)."""
    connection.execute("DELETE FROM fleet_outcome WHERE run = %s AND number = %s AND stage = %s", key)


def delete_outcomes_outside_of_trials(connection: "Connection", run: str) -> None:
    """Deletes the outcomes of a run's work that belongs to no trial, such as a baseline."""
    connection.execute("DELETE FROM fleet_outcome WHERE run = %s AND number < 0", (run,))


# When and where work was done.


def store_execution(connection: "Connection", work: FleetWork, done: Execution) -> None:
    """Stores when, by which node and on which device a piece of work was done; once per attempt."""
    timed = done.timed
    connection.execute(
        "INSERT INTO fleet_work (run, number, stage, node, device, began, ended, timed_from, timed_until) "
        "SELECT %(run)s, %(number)s, %(stage)s, %(node)s, %(device)s, %(began)s, %(ended)s, "
        "%(timed_from)s::timestamptz, %(timed_until)s::timestamptz "
        "WHERE NOT EXISTS (SELECT 1 FROM fleet_work WHERE run = %(run)s AND number = %(number)s "
        "AND stage = %(stage)s AND node = %(node)s AND began = %(began)s)",
        {
            "run": work.run,
            "number": work.number,
            "stage": work.stage,
            "node": done.node,
            "device": done.device,
            "began": done.whole.began,
            "ended": done.whole.ended,
            "timed_from": None if timed is None else timed.began,
            "timed_until": None if timed is None else timed.ended,
        },
    )


def run_ids(connection: "Connection", uuids: list[str]) -> tuple[tuple[str, int], ...]:
    """Returns (uuid, id in the results database) of runs, by id; runs that are not there are left out."""
    rows = connection.execute("SELECT uuid, id FROM run WHERE uuid = ANY(%s) ORDER BY id", (uuids,))
    return tuple((uuid, number) for uuid, number in rows)


def busy_seconds(connection: "Connection", window_s: float) -> dict[str, float]:
    """Returns, by node, how many of the last ``window_s`` seconds ended work used its device."""
    rows = connection.execute(
        "SELECT node, sum(extract(epoch FROM ended - greatest(began, since)))::float8 FROM fleet_work, "
        "LATERAL (SELECT now() - make_interval(secs => %s) AS since) AS recent "
        "WHERE device <> '' AND ended > since GROUP BY node",
        (window_s,),
    )
    return {str(node): float(busy_s) for node, busy_s in rows}


# Nodes: a row each, from its start to its end, with its last heartbeat.


def store_node(connection: "Connection", node: FleetNode) -> None:
    """Stores a node that begins to work, in place of an earlier node of the same name."""
    connection.execute(
        "INSERT INTO fleet_node (name, host, process, target, seats, device, machine, fingerprint, "
        "tuner_version, started, seen, drains) VALUES (%(name)s, %(host)s, %(process)s, %(target)s, "
        "%(slots)s, %(device)s, %(machine)s, %(compiler_build)s, %(tuner_version)s, now(), now(), false) "
        "ON CONFLICT (name) DO UPDATE SET host = excluded.host, process = excluded.process, "
        "target = excluded.target, seats = excluded.seats, "
        "device = excluded.device, machine = excluded.machine, fingerprint = excluded.fingerprint, "
        "tuner_version = excluded.tuner_version, started = excluded.started, seen = excluded.seen, "
        "drains = excluded.drains, cpu_share = NULL, wakeups_per_s = NULL",
        {**encode(node), "machine": json.dumps(encode(node.machine))},
    )


def store_heartbeat(connection: "Connection", name: str, load: QueueLoad) -> bool:
    """Stores a node's heartbeat and load.

    Returns whether the node is to end: asked to, or not stored any more.
    """
    row = connection.execute(
        "UPDATE fleet_node SET seen = now(), cpu_share = %s, wakeups_per_s = %s WHERE name = %s "
        "RETURNING drains",
        (load.cpu_share, load.wakeups_per_s, name),
    ).fetchone()
    return row is None or bool(row[0])


def delete_node(connection: "Connection", name: str, process: int) -> None:
    """Deletes a node that has ended, unless another process than ``process`` has taken its name."""
    connection.execute("DELETE FROM fleet_node WHERE name = %s AND process = %s", (name, process))


def drain(connection: "Connection", name: str) -> bool:
    """Asks a node to end after its current work; returns False if there is no node of this name."""
    return connection.execute("UPDATE fleet_node SET drains = true WHERE name = %s", (name,)).rowcount > 0


def stored_nodes(connection: "Connection") -> tuple[SeenNode, ...]:
    """Returns all nodes that the fleet's database stores, by name, lost nodes included."""
    rows = connection.execute(
        "SELECT name, host, process, target, seats, device, machine, fingerprint, tuner_version, "
        "extract(epoch FROM now() - started)::float8, extract(epoch FROM now() - seen)::float8, drains, "
        "cpu_share, wakeups_per_s FROM fleet_node ORDER BY name"
    )
    return tuple(map(_seen, rows))


def _seen(row: tuple[Any, ...]) -> SeenNode:
    name, host, process, target, slots, device, machine, compiler_build, version, *seen = row
    age_s, silent_s, drains, cpu_share, wakeups_per_s = seen
    machine_description = decode(Machine, machine, f"node {name}: machine")
    node = FleetNode(name, host, process, target, slots, device, machine_description, compiler_build, version)
    load = None if cpu_share is None else QueueLoad(cpu_share, wakeups_per_s)
    return SeenNode(node, age_s, silent_s, drains, load)
