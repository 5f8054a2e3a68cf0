"""A node: a process that takes work from the job queues of a fleet and reports the outcomes.

``run_node`` runs until it is asked to end: a ``NodeProcess`` takes jobs, its ``NodeChildren`` do them.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, TunerError, UsageError
from tuner.core.interfaces import Artifact
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.node_children import Done, NodeChildren, began
from tuner.elsewhere.fleet.noise_check import QueueMeter, keep_off_timed_processors
from tuner.elsewhere.fleet.queues import sweep
from tuner.elsewhere.fleet.server import AGAIN_S, ReconnectingSession, plain_errors, session
from tuner.elsewhere.fleet.tables import FleetSettings, read_settings
from tuner.elsewhere.fleet.work import (
    COMPILE,
    Compiled,
    FleetWork,
    Outcome,
    compiler_build_of,
    hash_of,
    packed,
)
from tuner.targets.target import Target
from tuner.version import __version__

if TYPE_CHECKING:
    from tuner.elsewhere.fleet.server import Connection

MIB: Final = 1 << 20
REPORT_EVERY_S: Final = 60.0  # between two messages that the database is away
KEEP_FREE_BYTES: Final = 64 * MIB  # in the folder for temporary files, where child processes write code


@dataclass(frozen=True)
class NodeRequest:
    """The options of a node, which compiles, measures on a device, or both.

    Raises UsageError for a negative number of slots, and if the node neither compiles nor measures.
    """

    target: TargetName
    name: str = ""  # "": host and process
    slots: int = 0  # candidates compiled at once
    has_device: bool = False  # measures
    device: str = ""  # that it measures on; "": the host's
    keep_free_bytes: int = KEEP_FREE_BYTES

    def __post_init__(self) -> None:
        if self.slots < 0:
            raise UsageError(f"compile: found {self.slots}, allowed 1 or more candidates at once")
        if not self.slots and not self.has_device:
            raise UsageError("worker: nothing to do", "--compile N, --measure or both")


def node_of(request: NodeRequest, target: Target) -> tables.FleetNode:
    """Returns the description of this process as a node, which it stores in the fleet's database."""
    host = socket.gethostname()
    return tables.FleetNode(
        name=request.name or f"{host}-{os.getpid()}",
        host=host,
        process=os.getpid(),
        target=request.target.text,
        slots=request.slots,
        device=(request.device or f"{host} {request.target.kind}") if request.has_device else "",
        machine=target.machine(request.target),
        compiler_build=compiler_build_of(target.compiler(request.target)),
        tuner_version=__version__,
    )


def run_node(url: str, request: NodeRequest, target: Target, say: Callable[[str], None]) -> bool:
    """Works as a node of the fleet at ``url`` until SIGTERM, Ctrl-C or a request to end.

    ``say`` gets lines of progress. Returns False if a problem of this machine, such as a full disk, ended it
    early. Raises UsageError for a database without a fleet; TunerError if the disk is too full to begin.
    """
    require_disk_space(request.keep_free_bytes)
    for name in ("procrastinate", "psycopg"):  # this process prints their errors itself, in one line each
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with session(url) as connection:
        settings = read_settings(connection)
        node = node_of(request, target)
        tables.store_node(connection, node)
    return asyncio.run(NodeProcess(url, node, target, request, settings, say).run())


@final
class NodeProcess:
    """A node at work: takes jobs from the fleet's queues, sends heartbeats, reports outcomes."""

    def __init__(
        self,
        url: str,
        node: tables.FleetNode,
        target: Target,
        request: NodeRequest,
        settings: FleetSettings,
        say: Callable[[str], None],
    ) -> None:
        self._url = url
        self._node = node
        self._request = request
        self._settings = settings
        self._say = say
        self._children = NodeChildren(target, request.slots)
        self._ending = asyncio.Event()
        self._database = ReconnectingSession(url, self._ending)
        self._trouble = ""  # why the node ends early
        self._reported_s = -REPORT_EVERY_S  # when it last printed that it waits
        # compiler builds for which it was printed that this node has another
        self._reported = {node.compiler_build}

    async def run(self) -> bool:
        """Does jobs of the node's queues until SIGTERM, Ctrl-C or a request to end; finishes begun jobs.

        While the database server is away, waits for it. Returns False if a problem of this machine, such as a
        full disk, ended the node early.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ending.set)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        keep_off_timed_processors()
        loop.set_exception_handler(self._report_unheard)
        node = self._node
        self._say(f"{node.name}: works for {node.target} on {node.machine.name}, {node.compiler_build}")
        beating = asyncio.create_task(self._beat())
        try:
            while not self._ending.is_set():
                await self._serve()
        finally:
            beating.cancel()
            self._children.close()
            with contextlib.suppress(TunerError):
                await self._database.ask(tables.delete_node, node.name, node.process)
            self._database.close()
        self._say(f"{node.name}: ended: {self._trouble}" if self._trouble else f"{node.name}: ended")
        return not self._trouble

    def _interrupt(self) -> None:
        """Ends the node after its current work; the next Ctrl-C ends that work as well."""
        self._ending.set()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _report_unheard(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Prints an error of the job queue that no task awaits, such as that another node has got a job."""
        error = context.get("exception")
        cause = error if error is None or error.__cause__ is None else error.__cause__
        line = str(cause or context["message"]).strip().partition("\n")[0]
        self._say(f"{self._node.name}: {line}")

    async def _serve(self) -> None:
        try:
            await queues.serve(self._url, self._node.services, self._do, self._settings.beat_s, self._ending)
        except OSError as error:
            if time.monotonic() - self._reported_s > REPORT_EVERY_S:
                self._reported_s = time.monotonic()
                self._say(f"{self._node.name}: waits for the database: {error}")
            await asyncio.sleep(AGAIN_S)

    async def _do(self, work: FleetWork) -> None:
        """Does a piece of work unless it has an outcome.

        An error returns the job to its queue for another node.
        """
        try:
            if not await self._database.ask(tables.has_outcome, work.key):
                blobs = tuple([await self._database.ask(_required_blob, blob) for blob in work.blobs])
                try:
                    self._require_fit(work)
                    await self._work(work, blobs)
                except (TunerError, OSError) as error:  # this node cannot do it
                    self._trouble = str(error)
                    self._ending.set()
                    raise
        except Exception as error:  # the job queue does not print it
            self._say(f"{self._node.name}: gives {work.text} back: {error}")
            raise

    async def _work(self, work: FleetWork, blobs: tuple[bytes, ...]) -> None:
        until_now = began()
        order = self._children.submit(work, blobs)
        try:
            done = await asyncio.shield(asyncio.wrap_future(order.done))
        except asyncio.CancelledError:  # the run was cancelled
            self._children.drop(order)
            raise
        if isinstance(done.reply.value, Failure):
            # else the failure may be this node's, not the candidate's
            require_disk_space(self._request.keep_free_bytes)
        device = "" if work.stage == COMPILE else self._node.device
        execution = tables.Execution(self._node.name, device, until_now(), done.timed)
        await self._database.ask(_settled, work, done, execution)

    def _require_fit(self, work: FleetWork) -> None:
        node = self._node
        fits = work.compiler_build == node.compiler_build and (
            work.stage == COMPILE or work.machine == node.machine.name
        )
        if not fits or work.target.text != node.target:
            raise TunerError(
                f"work: found {work.target.text} by {work.compiler_build} on {work.machine}, "
                f"allowed {node.target} by {node.compiler_build} on {node.machine.name}"
            )
        require_disk_space(self._request.keep_free_bytes)

    async def _beat(self) -> None:
        """Sends heartbeats with the load of this process; returns jobs of lost nodes to their queues."""
        meter = QueueMeter()
        while True:
            with self._telling_of_trouble():
                await self._report_foreign_work()
            await asyncio.sleep(self._settings.beat_s)
            with self._telling_of_trouble():
                if await self._database.ask(_beaten, self._node.name, self._settings.lease_s, meter.load()):
                    self._ending.set()

    @contextlib.contextmanager
    def _telling_of_trouble(self) -> Iterator[None]:
        try:
            with plain_errors():
                yield
        except TunerError as error:
            self._say(f"{self._node.name}: heartbeat: {error}")

    async def _report_foreign_work(self) -> None:
        """Prints, once for each other compiler build, why this node gets none of the jobs for its target."""
        node = self._node
        for compiler_build, count in await self._database.ask(
            queues.compiler_builds, TargetName.parse(node.target)
        ):
            if compiler_build not in self._reported:
                self._reported.add(compiler_build)
                theirs, own = _differing(compiler_build, node.compiler_build)
                self._say(f"{node.name}: {count} jobs wait for {theirs}; this node has {own}")


def require_disk_space(least_bytes: int) -> None:
    """Raises TunerError if the folder of temporary files has less than ``least_bytes`` free."""
    folder = tempfile.gettempdir()
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < least_bytes:
        raise TunerError(
            f"{folder}: found {free_bytes // MIB} MiB free, allowed {least_bytes // MIB} or more"
        )


def _differing(compiler_build: str, other: str) -> tuple[str, str]:
    """Returns two texts on the difference of two compiler builds: the words of each that the other lacks.

    All words of a build if the other has each of them.
    """
    ours = compiler_build.split()
    theirs = other.split()
    left = " ".join(part for part in ours if part not in theirs)
    right = " ".join(part for part in theirs if part not in ours)
    return left or compiler_build, right or other


def _required_blob(connection: "Connection", sha256: str) -> bytes:
    blob = tables.blob_of(connection, sha256)
    if blob is None:
        raise TunerError(f"fleet: blob {sha256[:12]}, which the run stored, is missing")
    return blob


def _settled(connection: "Connection", work: FleetWork, done: Done, execution: tables.Execution) -> None:
    with connection.pipeline(), connection.transaction():  # one round trip to the server
        value = done.reply.value
        stored_value = _stored(connection, value) if isinstance(value, Artifact) else value
        outcome = Outcome(stored_value, done.reply.seconds, done.reply.verdict, done.reply.stage_s)
        tables.store_execution(connection, work, execution)
        tables.store_outcome(connection, work.key, outcome, execution.node)


def _stored(connection: "Connection", artifact: Artifact) -> Compiled | Failure:
    blob = packed(artifact)
    if len(blob) > tables.BLOB_LIMIT_BYTES:
        return Failure(
            Stage.COMPILE, f"found {len(blob)} bytes of code, a fleet allows {tables.BLOB_LIMIT_BYTES}"
        )
    tables.store_blob(connection, hash_of(blob), blob)
    return Compiled(hash_of(blob), artifact.sha256, artifact.refusal is not None)


def _beaten(connection: "Connection", name: str, lease_s: float, load: tables.QueueLoad) -> bool:
    sweep(connection, lease_s)
    return tables.store_heartbeat(connection, name, load)
