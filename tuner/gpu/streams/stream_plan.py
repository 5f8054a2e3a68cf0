"""Assigns the nodes of a dependency graph to the fewest streams, and computes the waits between streams.

The work of one stream is a chain of the partial order of dependences; the streams are a minimum chain cover.
The waits are the edges between streams that no other dependence implies.
"""

import enum
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

# Covers a partial order with the fewest chains: each chain is the work of one stream, in order.
#
# The minimum is n - m, where n is the number of elements and m the size of a maximum bipartite matching
# between elements and their successors: Dilworth's theorem by way of Koenig's (D. R. Fulkerson, "Note on
# Dilworth's decomposition theorem for partially ordered sets", Proc. AMS 7, 1956). Each pair of the matching
# is two neighbours on a chain.

Chain = tuple[int, ...]
BEGIN = -1  # the point of the first stream where everything starts


def chain_cover(
    before: tuple[frozenset[int], ...], preference: Callable[[int, int], int], limit: int
) -> tuple[Chain, ...]:
    """Covers a partial order with the fewest chains, each in ascending order, the longest chain first.

    ``before[v]``: all elements, less than v, that precede v. ``preference(u, v)``: larger the better v
    follows u; it selects among minimum covers. If more than ``limit`` chains are needed, the shortest chains
    are merged; neighbours on a merged chain need not be ordered.
    """
    matching = _Matching(before, preference)
    for element in range(len(before)):
        matching.augment(element)
    chains = matching.chains()
    while True:
        chains.sort(key=lambda chain: (-len(chain), chain))
        if len(chains) <= max(limit, 1):
            return tuple(chains)
        last = chains.pop()
        second = chains.pop()
        chains.append(tuple(sorted(last + second)))


class _Matching:
    """A bipartite matching of elements to their followers; maximum after ``augment`` of every element."""

    def __init__(self, before: tuple[frozenset[int], ...], preference: Callable[[int, int], int]) -> None:
        self._choices = [
            sorted(earlier, key=lambda u, v=v: (-preference(u, v), -u))  # type: ignore[misc] # bound per element
            for v, earlier in enumerate(before)
        ]
        self._follower: dict[int, int] = {}  # u -> v
        self._leader: dict[int, int] = {}  # v -> u
        pairs = []
        for v, choices in enumerate(self._choices):
            pairs += [(u, v) for u in choices]
        for u, v in sorted(pairs, key=lambda pair: (-preference(*pair), pair[1], -pair[0])):
            if u not in self._follower and v not in self._leader:
                self._follower[u], self._leader[v] = v, u

    def augment(self, element: int) -> None:
        """Matches ``element`` as a follower along an augmenting path, if a path exists (Kuhn's algorithm)."""
        if element in self._leader:
            return
        led_to: dict[int, int] = {}  # u -> the element that would follow u
        waiting = deque([element])
        while waiting:
            v = waiting.popleft()
            for u in self._choices[v]:
                if u in led_to:
                    continue
                led_to[u] = v
                if u not in self._follower:
                    self._flip(u, led_to)
                    return
                waiting.append(self._follower[u])

    def chains(self) -> list[Chain]:
        """Returns the chains of the matching; each starts at an element that follows no other element."""
        chains = []
        for first in [v for v in range(len(self._choices)) if v not in self._leader]:
            chain = [first]
            while chain[-1] in self._follower:
                chain.append(self._follower[chain[-1]])
            chains.append(tuple(chain))
        return chains

    def _flip(self, u: int, led_to: dict[int, int]) -> None:
        while True:
            v = led_to[u]
            freed = self._leader.get(v)
            self._follower[u], self._leader[v] = v, u
            if freed is None:
                return
            u = freed


# Assigns the nodes of a dependency graph to streams, and computes the waits that order the streams.
#
# Takes nodes with their direct dependences; returns a ``StreamPlan``: the stream of each node and the nodes
# that it waits for. Nodes and streams are integers here. The streams are a minimum chain cover of the graph
# (``chain_cover``). Work is issued in the order of its nodes. The nodes known to be done when a stream, or
# the host, reaches a node are a vector clock, stored as a set of nodes in the bits of an integer. The waits
# are the edges between streams of the transitive reduction of dependences, stream order and host order:
# omitting any of them breaks a dependence.


class NodeKind(enum.Enum):
    """What a node of the dependency graph does: device work, host work, allocation or deallocation."""

    WORK = "work"  # on the device: kernel, copy, fill, or a loop of these
    HOST = "host"  # on the host: done when issued
    ALLOCATION = "allocation"  # on the device, but takes no time: it needs no stream of its own
    # as ALLOCATION; inserted after any node where everything that it waits for is known to be done
    FREE = "free"


@dataclass(frozen=True)
class Node:
    """A node of the dependency graph: a kind of operation, and the nodes ``before`` that it depends on."""

    kind: NodeKind
    before: frozenset[int] = frozenset()  # earlier nodes, or BEGIN, that must be done first: direct conflicts
    is_kernel: bool = False


@dataclass(frozen=True)
class StreamStep:
    """A node of the graph, the stream that it is issued on, and the nodes (or BEGIN) that it waits for."""

    node: int
    slot: int | None  # number of the stream; None: the host
    # Nodes that must be done first. With a caller's stream, these are nodes of other streams, and the step
    # also follows its own stream. Without, these are all waits of the step: a new stream begins after them.
    waits: tuple[int, ...]


@dataclass(frozen=True)
class StreamPlan:
    """How the host issues a block's work on streams: steps in order, then last waits and deallocations."""

    slots: int  # number of streams, at least one; the first is the caller's, if the caller has a stream
    steps: tuple[StreamStep, ...]
    last_waits: tuple[int, ...]  # nodes that the caller's stream waits for at the end
    last_frees: tuple[int, ...]  # after the last waits
    # Waits at the end of an iteration, if streams continue from one iteration to the next: (stream other than
    # the first, awaited node). None: the streams other than the first begin and end with the loop.
    carried_waits: tuple[tuple[int, int], ...] | None = None


def plan_streams(
    nodes: tuple[Node, ...],
    *,
    has_caller: bool,
    limit: int,
    carried: frozenset[tuple[int, int]] | None = None,
) -> StreamPlan:
    """Assigns nodes, in program order, to the fewest streams that keep independent work concurrent.

    Returns the steps in the order of issue. ``has_caller``: all work follows what was on the caller's stream,
    and precedes what is enqueued there later. Otherwise the host starts and ends everything, and
    ``last_waits`` are only for the last deallocations. ``carried``: loop-carried dependences; if given,
    streams continue from iteration to iteration.
    """
    joined = frozenset(u for u, v in carried or () if v == BEGIN)
    planner = _Planner(nodes, _slots(nodes, limit, joined), has_caller=has_caller, carried=carried)
    for index, node in enumerate(nodes):
        if node.kind is not NodeKind.FREE:
            planner.issue(index)
    return planner.plan()


def _slots(nodes: tuple[Node, ...], limit: int, joined: frozenset[int]) -> dict[int, int]:
    """Returns the index of the stream, below ``limit``, of each node of kind WORK and ALLOCATION.

    ``joined``: indices of the nodes that the host waits for as an iteration starts. Stream 0 has the most of
    them; of streams with equally many, the one whose last node comes last.
    """
    work = [index for index, node in enumerate(nodes) if node.kind is NodeKind.WORK]
    seen = _closure(nodes)
    index_of = {number: index for index, number in enumerate(work)}
    before = tuple(frozenset(index_of[u] for u in _numbers(seen[v]) if u in index_of) for v in work)

    def preference(u: int, v: int) -> int:
        # direct dependences, and kernels after kernels, so that copies go to other streams
        first = nodes[work[u]]
        second = nodes[work[v]]
        return 2 * (work[u] in second.before) + (first.is_kernel and second.is_kernel)

    chains = chain_cover(before, preference, limit)
    ranked = sorted(
        chains, key=lambda chain: (-sum(work[element] in joined for element in chain), -chain[-1])
    )
    slots = {}
    for slot, elements in enumerate(ranked):
        for element in elements:
            slots[work[element]] = slot
    for index, node in enumerate(nodes):
        if node.kind is NodeKind.ALLOCATION:
            user = next((v for v in work if index in nodes[v].before), None)
            slots[index] = 0 if user is None else slots[user]
    return slots


def _closure(nodes: tuple[Node, ...]) -> list[int]:
    seen: list[int] = []
    host = 0
    for index, node in enumerate(nodes):
        mask = host
        for u in node.before - {BEGIN}:
            mask |= seen[u] | 1 << u
        seen.append(mask)
        if node.kind is NodeKind.HOST:
            host |= mask | 1 << index
    return seen


def _numbers(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class _Planner:
    """Issues the nodes in order, with a vector clock per node, in which bit ``len(nodes)`` is BEGIN."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        slots: dict[int, int],
        *,
        has_caller: bool,
        carried: frozenset[tuple[int, int]] | None,
    ) -> None:
        self._nodes = nodes
        self._slots = slots
        self._has_caller = has_caller
        self._carried = carried
        self._starts_anew = has_caller and carried is None  # all streams begin and end in this block
        self._begin = 1 << len(nodes)
        self._seen: dict[int, int] = {BEGIN: 0}  # node -> all nodes that are done when it begins
        self._last: dict[int, int] = {0: BEGIN} if has_caller else {}  # stream -> its last node
        self._host = 0  # nodes that the host knows to be done
        self._steps: list[StreamStep] = []
        self._states: list[dict[int, int]] = [self._state()]  # before each step: stream -> its clock

    def issue(self, number: int) -> None:
        node = self._nodes[number]
        slot = self._slots.get(number)
        follows = None if slot is None else self._last.get(slot)
        # nodes that are done before this one without a wait
        base = self._host if follows is None else self._host | self._with(follows)
        wanted = set(node.before)
        if self._starts_anew and slot is not None:
            wanted.add(BEGIN)
        waits = self._necessary(wanted, base)
        # without a caller's stream, a step that waits begins a new stream, which follows nothing of the old
        # one
        if waits and follows is not None and not self._has_caller:
            base = self._host
            waits = self._necessary(wanted | self._kept_by_limit(self._slots[number], wanted), base)
        self._steps.append(StreamStep(number, slot, waits))
        self._seen[number] = base | self._union(waits)
        if slot is None:
            self._host |= self._with(number)
        else:
            self._last[slot] = number
        self._states.append(self._state())

    def plan(self) -> StreamPlan:
        """Returns the plan: deallocations where they need no wait, and the last waits of the first stream."""
        count = 1 + max(self._slots.values(), default=0)
        placed, left = self._insert_frees()
        wanted = {u for u in self._slots if any(u in self._nodes[f].before for f in left)}
        steps = self._with_frees(placed)
        if self._carried is None:
            ends = self._state() if self._has_caller else {0: self._host}
            last = self._last_waits(0, set(self._slots) if self._starts_anew else wanted, ends)
            return StreamPlan(count, steps, last, tuple(left))
        # in the streams' order of first use: a stream that waits for an earlier stream in the next iteration
        # anyway does not wait for the same work now
        ends = self._state()
        slots = dict.fromkeys([*(step.slot for step in self._steps if step.slot is not None), 0])
        waits = {slot: self._last_waits(slot, set() if slot else wanted, ends) for slot in slots}
        others = []
        for slot in range(1, count):
            others += [(slot, u) for u in waits[slot]]
        return StreamPlan(count, steps, waits[0], tuple(left), tuple(others))

    def _last_waits(self, slot: int, wanted: set[int], ends: dict[int, int]) -> tuple[int, ...]:
        """Returns the waits at a stream's end.

        For the nodes ``wanted``, and for what the next iteration depends on. ``ends``: per stream, the nodes
        known to be done at its end; the waits are added there.
        """
        lacking = {
            u
            for u, v in self._carried or ()
            if self._slots.get(v, 0) == slot and not self._bit(u) & self._carried_to(v, ends)
        }
        waits = self._necessary(wanted | lacking, ends[slot])
        ends[slot] |= self._union(waits)
        return waits

    def _carried_to(self, number: int, ends: dict[int, int]) -> int:
        """Returns, as bits, the nodes of the previous iteration that are done when node ``number`` begins.

        These are known at the end of the iteration to the node's stream, or to the streams of nodes before
        it.
        """
        earlier = [u for u in _numbers(self._seen[number] & ~self._begin) if u in self._slots]
        known = 0
        for slot in {self._slots.get(u, 0) for u in (number, *earlier)}:
            known |= ends[slot]
        return known

    def _kept_by_limit(self, slot: int, wanted: set[int]) -> set[int]:
        """Returns the last work of a stream unless ``wanted`` nodes follow it anyway.

        Only the limit of streams orders this work before the next work on the stream.
        """
        steps = [step.node for step in self._steps if step.slot == slot]
        works = [node for node in steps if self._nodes[node].kind is NodeKind.WORK]
        return {u for u in works[-1:] if not self._bit(u) & self._union(wanted)}

    def _necessary(self, wanted: Iterable[int], base: int) -> tuple[int, ...]:
        """Returns the nodes of ``wanted`` that neither ``base`` nor another of them implies.

        A transitive reduction.
        """
        missing = [u for u in wanted if not self._bit(u) & base]
        return tuple(
            sorted(u for u in missing if not any(self._bit(u) & self._seen[w] for w in missing if w != u))
        )

    def _insert_frees(self) -> tuple[dict[int, list[StreamStep]], list[int]]:
        placed: dict[int, list[StreamStep]] = {}
        left: list[int] = []
        for index, node in enumerate(self._nodes):
            if node.kind is not NodeKind.FREE:
                continue
            point = self._point_of_free(index, self._union(node.before))
            if point is None:
                left.append(index)
            else:
                placed.setdefault(point[0], []).append(StreamStep(index, point[1], ()))
        return placed, left

    def _point_of_free(self, number: int, needed: int) -> tuple[int, int] | None:
        """Returns (number of steps before, stream) of the first point at which the nodes ``needed`` are done.

        ``needed``: nodes, as bits; ``number``: the node that frees. A point after the last step of a stream
        other than the first does not count: the end of the block would have to wait for it. None if there is
        no such point.
        """
        first = sum(step.node < number for step in self._steps)
        ends = {step.slot: count for count, step in enumerate(self._steps)}
        for count in range(first, len(self._states)):
            for slot in sorted(self._states[count]):
                goes_on = slot == 0 or ends[slot] >= count or self._carried is not None
                if goes_on and not needed & ~self._states[count][slot]:
                    return count, slot
        return None

    def _with_frees(self, placed: dict[int, list[StreamStep]]) -> tuple[StreamStep, ...]:
        steps = list(placed.get(0, []))
        for count, step in enumerate(self._steps, start=1):
            steps += [step, *placed.get(count, [])]
        return tuple(steps)

    def _state(self) -> dict[int, int]:
        return {slot: self._host | self._with(last) for slot, last in self._last.items()}

    def _union(self, nodes: Iterable[int]) -> int:
        mask = 0
        for u in nodes:
            mask |= self._with(u)
        return mask

    def _with(self, u: int) -> int:
        return self._seen[u] | self._bit(u)

    def _bit(self, u: int) -> int:
        if u == BEGIN:
            return self._begin
        return 1 << u
