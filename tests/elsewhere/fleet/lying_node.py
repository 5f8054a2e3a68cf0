"""A node that lies: ``python -m tests.elsewhere.fleet.lying_node URL TARGET [NUMBER]``.

About each piece of work it lies once, in one of several ways, and is honest when it is asked again. With a
number it lies about the measurement of this trial only, and always.
"""

import json
import sys
import zlib
from collections.abc import Callable
from typing import Any, Final

from tests.elsewhere.fleet.values import Connection
from tuner.core.interfaces import Artifact
from tuner.elsewhere.fleet import node, tables
from tuner.elsewhere.fleet.commands.fleet import _measurement_of
from tuner.elsewhere.fleet.node_children import Done
from tuner.elsewhere.fleet.work import COMPILE, EVALUATE, FleetWork, Key, Outcome, hash_of, packed, to_json
from tuner.targets.registry import real_backends

Body = dict[str, Any]


def at_once(time_s: float) -> Callable[[Body], None]:
    def lie(body: Body) -> None:
        found = body["value"].get("measurement") or body["value"]
        if "samples_s" in found:
            found |= {"samples_s": [time_s] * 5, "median_s": time_s, "interval_s": [time_s, time_s]}

    return lie


def inside(part: str, **fields: object) -> Callable[[Body], None]:
    """Returns a lie about some numbers of the verdict or of the measurement."""

    def lie(body: Body) -> None:
        parts = {"verdict": body.get("verdict"), "measurement": body["value"]}
        (parts[part] or {}).update(fields)

    return lie


LIES: Final = (
    at_once(0.0),
    at_once(1e-30),
    at_once(1e-9),  # above what the processor can multiply and add
    inside("verdict", elements=-7),
    inside("measurement", interval_s=[1.0, 2.0]),
    lambda body: body.update(value={"surprise": 1}),
)
BLOBS: Final = (
    lambda: zlib.compress(bytes(tables.BLOB_LIMIT_BYTES + 1)),  # a bomb of 64 kB
    lambda: zlib.compress(b"false"),
    lambda: b"no zlib",
)
INSERT_BLOB: Final = (
    "INSERT INTO fleet_blob (sha256, body, stored) VALUES (%s, %s, now()) ON CONFLICT DO NOTHING"
)
INSERT_OUTCOME: Final = (
    "INSERT INTO fleet_outcome (run, number, stage, body, node, told) VALUES (%s, %s, %s, %s, %s, now()) "
    "ON CONFLICT DO NOTHING"
)


class Liar:
    """What a node does in place of telling its results."""

    def __init__(self, only: int | None) -> None:
        self._only = only
        self._lied: set[Key] = set()
        self._settled = node._settled  # noqa: SLF001 - what a node stores

    def settled(
        self, connection: Connection, work: FleetWork, done: Done, execution: tables.Execution
    ) -> None:
        """Puts a false blob where that of an artifact belongs."""
        is_code = isinstance(done.reply.value, Artifact) and self._only is None and work.key not in self._lied
        if is_code and work.number >= 0:
            self._lied.add(work.key)
            assert isinstance(done.reply.value, Artifact)
            false = BLOBS[work.number % len(BLOBS)]()
            connection.execute(INSERT_BLOB, (hash_of(packed(done.reply.value)), false))
        self._settled(connection, work, done, execution)

    def tell(self, connection: Connection, key: Key, outcome: Outcome, name: str) -> None:
        body = to_json(outcome)
        _, number, stage = key
        if self._only is not None:
            is_lie = (number, stage) == (self._only, EVALUATE)
        else:
            is_lie = stage != COMPILE and key not in self._lied
        if is_lie:
            LIES[number % len(LIES) if number >= 0 else 0](body)
            self._lied.add(key)
        connection.execute(INSERT_OUTCOME, (*key, json.dumps(body), name))
        tables.notify_driver(connection, key[0])


if __name__ == "__main__":
    url, target, *only = sys.argv[1 : sys.argv.index("--")]  # what follows is the command that it replaces
    liar = Liar(int(only[0]) if only else None)
    node._settled, tables.store_outcome = liar.settled, liar.tell  # type: ignore[assignment] # noqa: SLF001
    source, wanted = _measurement_of(target, real_backends())
    request = node.NodeRequest(wanted, name="liar", slots=1, has_device=True)
    sys.exit(0 if node.run_node(url, request, source, lambda line: print(line)) else 1)  # noqa: T201
