"""How much a node slows down what is timed on its machine, and how much its process loads the machine."""

import contextlib
import os
import resource
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from tuner.analysis.slowdown import InterleavedSession, PairedSlowdown, paired_slowdown
from tuner.core.errors import TunerError, UsageError
from tuner.elsewhere.fleet.tables import FleetNode, QueueLoad
from tuner.runtime.cpu.host import processors
from tuner.runtime.timing_lock import TimingLock

if TYPE_CHECKING:
    import numpy as np

    from tuner.elsewhere.fleet.status import FleetStatus


ALLOWED: Final = 0.003  # share by which times with a running node may be longer
SLICE_S: Final = 1.0  # of work without a pause
SLICES_OF_LEASE: Final = 4  # at least: a node, stopped for two per round, must not count as lost
ELEMENTS: Final = 1 << 15  # of f32: three arrays fit into the second level of cache
PROCESSES: Final = Path("/proc")
CONDITIONS: Final = ("stopped", "stopped again", "alongside")


@dataclass(frozen=True)
class NoiseCheck:
    """How much longer single-threaded work takes on a machine while a node's process runs there."""

    node: str
    rounds: int
    longer: PairedSlowdown  # with the node running, compared with the node stopped

    @property
    def is_quiet(self) -> bool:
        """Returns whether the 99 % interval ends at ALLOWED or below; False may also mean inconclusive."""
        return self.longer.interval[1] <= ALLOWED

    @property
    def exceeds_limit(self) -> bool:
        """Returns whether the 99 % interval is wholly above ALLOWED, and above the noise."""
        return self.longer.interval[0] > max(ALLOWED, self.longer.noise)


def nodes_to_check(status: "FleetStatus", host: str) -> tuple[FleetNode, ...]:
    """Returns the nodes on ``host`` that measure on a device, whose disturbance can be checked.

    Raises UsageError if there is none, if one has work, or if one has no process on this machine.
    """
    seen = [node for node in status.nodes if node.node.device and not node.is_lost(status.lease_s)]
    here = tuple(node.node for node in seen if node.node.host == host)
    if not here:
        hosts = ", ".join(sorted({node.node.host for node in seen})) or "none"
        raise UsageError(f"check: no node measures on {host}; nodes measure on {hosts}")
    names = {node.name for node in here}
    busy = [device.device for device in status.devices if device.node in names and device.doing is not None]
    if busy:
        raise UsageError(
            f"check: found work on {', '.join(busy)}; check without work on the devices of {host}"
        )
    for node in here:
        if not _is_node(node.process):
            raise UsageError(f"check: process {node.process} of node {node.name} is not on this machine")
    return here


def check_noise(
    node: FleetNode, rounds: int, lease_s: float, rng: "np.random.Generator", slice_s: float = SLICE_S
) -> NoiseCheck:
    """Times equal work while a node's process is stopped and while it runs; returns the slowdown.

    Each round times the work twice with the process stopped and once with it running, in an order drawn by
    ``rng``, for ``slice_s`` seconds each, at most a quarter of the lease. Raises TunerError if the node ends
    meanwhile.
    """
    import numpy as np

    slice_s = min(slice_s, lease_s / SLICES_OF_LEASE)
    left, right = (rng.random(ELEMENTS, dtype=np.float32) for _ in range(2))
    product = np.empty_like(left)
    times_s: dict[str, list[float]] = {condition: [] for condition in CONDITIONS}
    with TimingLock("cpu", f"process {os.getpid()}, check of {node.name}").held(), _alone_on_processor():
        for _ in range(rounds):
            for index in rng.permutation(len(CONDITIONS)):
                condition = CONDITIONS[index]
                with _stopped(node.process) if condition != "alongside" else contextlib.nullcontext():
                    call_s = _call_s(lambda: np.multiply(left, right, out=product), slice_s)
                    times_s[condition].append(call_s)
    then, again, now = (tuple(times_s[condition]) for condition in CONDITIONS)
    return NoiseCheck(node.name, rounds, paired_slowdown((InterleavedSession(then, again, now),)))


def _call_s(work: Callable[[], object], slice_s: float) -> float:
    times_s = []
    until_s = time.perf_counter() + slice_s
    before_s = time.perf_counter()
    while before_s < until_s:
        work()
        after_s = time.perf_counter()
        times_s.append(after_s - before_s)
        before_s = after_s
    return statistics.fmean(times_s)


@contextlib.contextmanager
def _alone_on_processor() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors(1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def _stopped(process: int) -> Iterator[None]:
    _send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        _send(process, signal.SIGCONT)


def _send(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError as error:
        raise TunerError(f"check: the node's process {process} ended during the check") from error


def _is_node(process: int) -> bool:
    with contextlib.suppress(OSError):
        arguments = (PROCESSES / str(process) / "cmdline").read_bytes().split(b"\0")
        os.kill(process, 0)
        return b"fleet" in arguments and b"worker" in arguments
    return False


@dataclass(frozen=True)
class _Reading:
    moment_s: float
    cpu_s: float
    wakeups: int  # voluntary context switches: one for each wait


@final
class QueueMeter:
    """Measures how much this process loads the machine, without its child processes."""

    def __init__(self) -> None:
        self._last = _read()

    def load(self) -> QueueLoad:
        """Returns the load since the previous call, or since the meter was made."""
        before = self._last
        self._last = _read()
        passed_s = max(self._last.moment_s - before.moment_s, 1e-9)
        return QueueLoad(
            (self._last.cpu_s - before.cpu_s) / passed_s, (self._last.wakeups - before.wakeups) / passed_s
        )


def keep_off_timed_processors() -> None:
    """Restricts this thread to processors on which no single-threaded kernel is timed.

    Threads and processes that it starts later inherit this. Does nothing where no other processor is left.
    """
    allowed = os.sched_getaffinity(0)
    left = allowed - set(processors(1))
    if left:
        os.sched_setaffinity(0, left)


def _read() -> _Reading:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return _Reading(time.monotonic(), used.ru_utime + used.ru_stime, used.ru_nvcsw)
