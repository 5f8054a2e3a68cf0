"""Decides which stream does what, and which waits order the streams: no more than the dependencies need.

Everything here is numbers. Work is issued in the order of its nodes; what a stream, or the host, has seen
when it comes to a node is a set of nodes, kept as the bits of an integer. A wait is left out where the order
of a stream, the host's order or another wait implies it, so each that stays is necessary.
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tuner.mlir.passes.chain_cover import chain_cover

BEGIN = -1  # the point of the first stream where everything starts


class Kind(enum.Enum):
    """Who does a node, and what it costs."""

    WORK = "work"  # a device's: kernel, copy, fill, or a loop of them
    HOST = "host"  # done when it is issued
    ALLOCATION = "allocation"  # a device's, but takes no time: it needs no stream of its own
    FREE = "free"  # likewise; done wherever a stream has seen all that it waits for


@dataclass(frozen=True)
class Node:
    """One thing to do."""

    kind: Kind
    before: frozenset[int] = frozenset()  # earlier nodes, or BEGIN, that must be done: direct conflicts
    is_kernel: bool = False


@dataclass(frozen=True)
class Step:
    """A node with its place."""

    node: int
    slot: int | None  # number of the stream; None: the host
    # Nodes that it waits for first. With a caller's stream they are of other streams, and its own goes on.
    # Without, they are all that it waits for: it begins anew behind them.
    waits: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Steps in the order of issue, and how everything ends."""

    slots: int  # streams, at least one; the first is the caller's, if there is a caller's
    steps: tuple[Step, ...]
    last_waits: tuple[int, ...]  # nodes that the caller's stream waits for at the end
    last_frees: tuple[int, ...]  # done behind those


def plan_streams(nodes: tuple[Node, ...], *, has_caller: bool, limit: int) -> Plan:
    """Plans the fewest streams up to a limit.

    With a caller's stream, all work follows what was on it, and precedes what comes on it afterwards.
    Without, the host starts and ends everything: ``last_waits`` are then for the last frees alone.
    """
    planner = _Planner(nodes, _slots(nodes, limit), has_caller=has_caller)
    for number, node in enumerate(nodes):
        if node.kind is not Kind.FREE:
            planner.issue(number)
    return planner.plan()


def _slots(nodes: tuple[Node, ...], limit: int) -> dict[int, int]:
    """Returns the stream of all work and allocations; the first one ends last, where others may join it."""
    work = [number for number, node in enumerate(nodes) if node.kind is Kind.WORK]
    seen = _closure(nodes)
    place = {number: index for index, number in enumerate(work)}
    before = tuple(frozenset(place[u] for u in _numbers(seen[v]) if u in place) for v in work)
    chains = chain_cover(before, lambda u, v: _liking(nodes, work[u], work[v]), limit)
    ranked = sorted(chains, key=lambda chain: -chain[-1])
    slots = {work[index]: slot for slot, chain in enumerate(ranked) for index in chain}
    for number, node in enumerate(nodes):
        if node.kind is Kind.ALLOCATION:
            user = next((v for v in work if number in nodes[v].before), None)
            slots[number] = 0 if user is None else slots[user]
    return slots


def _liking(nodes: tuple[Node, ...], u: int, v: int) -> int:
    """Prefers what directly hands on, kernels to kernels: then the copies fall on other streams."""
    return 2 * (u in nodes[v].before) + (nodes[u].is_kernel and nodes[v].is_kernel)


def _closure(nodes: tuple[Node, ...]) -> list[int]:
    """Returns all that precedes each node, whatever the streams: by conflicts and by the host's order."""
    seen: list[int] = []
    host = 0
    for number, node in enumerate(nodes):
        mask = host
        for u in node.before - {BEGIN}:
            mask |= seen[u] | 1 << u
        seen.append(mask)
        if node.kind is Kind.HOST:
            host |= mask | 1 << number
    return seen


def _numbers(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class _Planner:
    """Issues node after node and knows what each stream has seen; bit ``len(nodes)`` is the begin."""

    def __init__(self, nodes: tuple[Node, ...], slots: dict[int, int], *, has_caller: bool) -> None:
        self._nodes = nodes
        self._slots = slots
        self._has_caller = has_caller
        self._begin = 1 << len(nodes)
        self._seen: dict[int, int] = {BEGIN: 0}
        self._last: dict[int, int] = {0: BEGIN} if has_caller else {}  # of each stream
        self._host = 0  # what the host has seen
        self._steps: list[Step] = []
        self._states: list[dict[int, int]] = [self._state()]  # what each stream had seen before each step

    def issue(self, number: int) -> None:
        """Adds the step of a node that is no free."""
        node = self._nodes[number]
        slot = self._slots.get(number)
        follows = None if slot is None else self._last.get(slot)
        base = self._host if follows is None else self._host | self._with(follows)
        wanted = set(node.before)
        if self._has_caller and slot is not None:
            wanted.add(BEGIN)
        waits = self._necessary(wanted, base)
        if waits and follows is not None and not self._has_caller:
            base = self._host
            waits = self._necessary(wanted | self._kept_by_limit(self._slots[number], wanted), base)
        self._steps.append(Step(number, slot, waits))
        self._note(number, slot, base | self._union(waits))
        self._states.append(self._state())

    def plan(self) -> Plan:
        """Ends: puts the frees where they cost no wait, and joins what the first stream has not seen."""
        count = 1 + max(self._slots.values(), default=0)
        placed, left = self._place_frees()
        base = self._host | (self._with(self._last[0]) if self._has_caller else 0)
        wanted = {u for u in self._slots if self._has_caller or any(u in self._nodes[f].before for f in left)}
        return Plan(count, self._woven(placed), self._necessary(wanted, base), tuple(left))

    def _kept_by_limit(self, slot: int, wanted: set[int]) -> set[int]:
        """Returns the work before on the stream where only the limit of streams has put it there."""
        works = [step.node for step in self._steps if step.slot == slot and self._is_work(step.node)]
        return {u for u in works[-1:] if not self._bit(u) & self._union(wanted)}

    def _is_work(self, number: int) -> bool:
        return self._nodes[number].kind is Kind.WORK

    def _necessary(self, wanted: Iterable[int], base: int) -> tuple[int, ...]:
        """Returns what is wanted, but neither in the base nor seen by another one that is wanted."""
        missing = [u for u in wanted if not self._bit(u) & base]
        return tuple(
            sorted(u for u in missing if not any(self._bit(u) & self._seen[w] for w in missing if w != u))
        )

    def _note(self, number: int, slot: int | None, seen: int) -> None:
        self._seen[number] = seen
        if slot is None:
            self._host |= seen | self._bit(number)
        else:
            self._last[slot] = number

    def _place_frees(self) -> tuple[dict[int, list[Step]], list[int]]:
        """Returns frees by the number of steps that come before them, and those that have to come last."""
        placed: dict[int, list[Step]] = {}
        left: list[int] = []
        for number, node in enumerate(self._nodes):
            if node.kind is not Kind.FREE:
                continue
            place = self._place_of_free(number, self._union(node.before))
            if place is None:
                left.append(number)
            else:
                placed.setdefault(place[0], []).append(Step(number, place[1], ()))
        return placed, left

    def _place_of_free(self, number: int, needed: int) -> tuple[int, int] | None:
        """Returns (steps before, stream) of the first place that has seen enough.

        A stream other than the first must go on behind it: else the end would have to wait for the free.
        """
        first = sum(step.node < number for step in self._steps)
        ends = {step.slot: count for count, step in enumerate(self._steps)}
        for count in range(first, len(self._states)):
            for slot in sorted(self._states[count]):
                goes_on = slot == 0 or ends[slot] >= count
                if goes_on and not needed & ~self._states[count][slot]:
                    return count, slot
        return None

    def _woven(self, placed: dict[int, list[Step]]) -> tuple[Step, ...]:
        woven = list(placed.get(0, []))
        for count, step in enumerate(self._steps, start=1):
            woven += [step, *placed.get(count, [])]
        return tuple(woven)

    def _state(self) -> dict[int, int]:
        """Returns what the streams in use have seen."""
        return {slot: self._host | self._with(last) for slot, last in self._last.items()}

    def _union(self, nodes: Iterable[int]) -> int:
        mask = 0
        for u in nodes:
            mask |= self._with(u)
        return mask

    def _with(self, u: int) -> int:
        return self._seen[u] | self._bit(u)

    def _bit(self, u: int) -> int:
        return self._begin if u == BEGIN else 1 << u
