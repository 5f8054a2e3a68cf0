"""The state of a fleet as tables for people, and as a JSON document."""

from string import ascii_uppercase
from typing import Any

from tuner.core.dataclass_json import encode
from tuner.fleet.noise_check import ALLOWED, NoiseCheck
from tuner.fleet.status import DeviceStatus, FleetStatus, QueueStatus
from tuner.fleet.tables import SeenNode
from tuner.fleet.work import COMPILE, FleetWork
from tuner.output.fitted_table import table_lines
from tuner.output.formatting import count_text, wrapped

NODES = ("node", "state", "target", "compiles", "measures on", "seen", "job queue", "compiler")
DEVICES = ("device", "class of machine", "idle", "now")
QUEUES = ("stage", "of", "now", "wait", "runs", "why they wait")
SPARED = ("job queue", "seen", "target")  # columns of NODES that a narrow terminal loses first


def status_text(status: FleetStatus, columns: int | None = None, database_text: str = "") -> str:
    """Returns the tables of a fleet's nodes, devices and job queues, for a terminal ``columns`` wide.

    ``columns`` None: any width. Letters stand for compiler builds, which are listed below. ``database_text``
    is the ``--db`` option for the printed command, with a leading space; "" for the default database.
    """
    compiler_builds = sorted(
        {seen.node.compiler_build for seen in status.nodes} | {each.compiler_build for each in status.queues}
    )
    letters = {compiler_build: _letters(place) for place, compiler_build in enumerate(compiler_builds)}
    nodes = [(*_node(each, status), letters[each.node.compiler_build]) for each in status.nodes]
    devices = [_device(each, status) for each in status.devices]
    waiting = [_queue(each, status, letters) for each in status.queues]
    no_node = f"no node; start one with: tuner fleet worker --compile 4 --measure{database_text}"
    parts = (
        table_lines(NODES, nodes, columns, SPARED) if nodes else [no_node],
        table_lines(DEVICES, devices, columns) if devices else ["no device"],
        table_lines(QUEUES, waiting, columns) if waiting else ["no job"],
        wrapped(f"compiler {letter}: {compiler_build}" for compiler_build, letter in letters.items()),
    )
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _letters(place: int) -> str:
    """Returns the name of the compiler build with index ``place``: A, B, ..., Z, AA, AB, ..."""
    first = "" if place < len(ascii_uppercase) else _letters(place // len(ascii_uppercase) - 1)
    return first + ascii_uppercase[place % len(ascii_uppercase)]


def check_line(check: NoiseCheck) -> str:
    """Returns the result of a noise check as one line: whether the node disturbs, and by how much."""
    low, high = check.longer.interval
    finding = "does not disturb" if check.is_quiet else "disturbs" if check.exceeds_limit else "unclear"
    return (
        f"{check.node}: {finding}: times next to it {check.longer.median:+.2%} (99 % interval {low:+.2%} .. "
        f"{high:+.2%}), allowed {ALLOWED:.1%}; without it twice: {check.longer.noise:.2%} apart; "
        f"{count_text(check.rounds, 'round')}"
    )


def status_document(status: FleetStatus) -> dict[str, Any]:
    """Returns the JSON document of ``tuner fleet status --json``, which has the state of each node."""
    document: dict[str, Any] = encode(status)
    for fields, seen in zip(document["nodes"], status.nodes, strict=True):
        fields["state"] = status.state_of(seen)
    return document


def _node(seen: SeenNode, status: FleetStatus) -> tuple[str, ...]:
    node = seen.node
    return (
        node.name,
        status.state_of(seen),
        node.target,
        f"{node.slots} at once" if node.slots else "-",
        node.device or "-",
        f"{seen.silent_s:.0f} s ago",
        "-" if seen.load is None else f"{seen.load.cpu_share:.1%}, {seen.load.wakeups_per_s:.0f}/s",
    )


def _device(device: DeviceStatus, status: FleetStatus) -> tuple[str, ...]:
    now = "waits for work" if device.doing is None else _work(device.doing, status)
    return (device.device, device.machine, f"{device.idle_share:.0%}", now)


def _work(work: FleetWork, status: FleetStatus) -> str:
    return f"{work.words} of {status.run_text(work.run)}"


def _queue(queue: QueueStatus, status: FleetStatus, letters: dict[str, str]) -> tuple[str, ...]:
    of = f"compiler {letters[queue.compiler_build]}" if queue.stage == COMPILE else queue.device
    runs = ", ".join(map(status.run_text, queue.runs)) or "-"
    return (queue.stage, of, str(queue.done_now), str(queue.waits), runs, queue.why or "-")
