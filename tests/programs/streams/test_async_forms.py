"""Random straight programs: both forms keep every dependency, and end everything that they begin."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.programs.lowering import device_programs as texts
from tuner.mlir import bindings
from tuner.mlir.effects import memory_effects as kernel_effects
from tuner.programs.streams import async_streams

pytestmark = pytest.mark.mlir


BEGIN, END = -1, -2
DEVICE = ("gpu.alloc", "gpu.memcpy", "gpu.memset", "gpu.launch_func", "gpu.dealloc")
Seen = frozenset[int]
NOTHING: Seen = frozenset()


@dataclass
class Order:
    """All pairs (earlier, later) of a function, BEGIN and END of a call included."""

    has_caller: bool
    pairs: set[tuple[int, int]] = field(default_factory=set)
    host: Seen = NOTHING
    streams: dict[Any, Seen] = field(default_factory=dict)
    events: dict[Any, Seen] = field(default_factory=dict)
    tokens: dict[Any, tuple[Any, Seen]] = field(default_factory=dict)  # token -> stream, what it stands for
    skipped: int = -1  # this one of the waits by calls is not done
    waits: int = 0  # by calls, so far

    def read(self, function: Any) -> "Order":
        if self.has_caller:  # the caller's stream is the first one
            argument = next(each for each in function.regions[0].blocks[0].arguments if _is_pointer(each))
            self.streams[argument] = frozenset({BEGIN})
        for op in function.regions[0].blocks[0].operations:
            self._take(op.operation)
        if self.has_caller:
            self.pairs |= {(u, END) for u in self.streams[argument] | self.host}
        else:
            self.pairs |= {(u, END) for u in self.host}
        return self

    def _take(self, op: Any) -> None:
        if op.name in DEVICE:
            self._device(op)
        elif op.name == "gpu.wait":
            self._wait(op)
        elif op.name == "builtin.unrealized_conversion_cast":
            self.tokens[op.results[0]] = (op.operands[0], NOTHING)
        elif op.name == "func.call":
            self._call(op.attributes["callee"].value, list(op.operands), op)
        elif "id" in op.attributes:
            number = op.attributes["id"].value
            self.pairs |= {(u, number) for u in self.host}
            self.host |= {number}

    def _device(self, op: Any) -> None:
        number = op.attributes["id"].value
        stream, _ = self.tokens[op.operands[0]]
        assert self.has_caller or stream in self.streams, "the stream was destroyed"
        seen = self.streams.get(stream, NOTHING) | self.host
        self.pairs |= {(u, number) for u in seen}
        self.streams[stream] = seen | {number}
        self.tokens[op.results[len(op.results) - 1]] = (stream, self.streams[stream])

    def _wait(self, op: Any) -> None:
        if op.results:
            seen = frozenset[int]().union(*(self.tokens[token][1] for token in op.operands))
            self.streams[op] = seen | self.host
            self.tokens[op.results[0]] = (op, self.streams[op])
            return
        for token in op.operands:
            stream, _ = self.tokens[token]
            self.host |= self.streams.pop(stream)  # gone: gpu-to-llvm destroys it

    def _call(self, name: str, operands: list[Any], op: Any) -> None:
        if name == "mgpuEventCreate":
            self.events[op.results[0]] = NOTHING
        elif name == "mgpuEventDestroy":
            del self.events[operands[0]]
        elif name == "mgpuEventRecord":
            self.events[operands[0]] = self.streams.get(operands[1], NOTHING) | self.host
        elif self._is_skipped():
            return
        elif name == "mgpuStreamWaitEvent":
            self.streams[operands[0]] = self.streams.get(operands[0], NOTHING) | self.events[operands[1]]
        elif name == "mgpuStreamSynchronize":
            self.host |= self.streams.get(operands[0], NOTHING)
        elif name == "mgpuEventSynchronize":
            self.host |= self.events[operands[0]]

    def _is_skipped(self) -> bool:
        self.waits += 1
        return self.waits - 1 == self.skipped


def _is_pointer(value: Any) -> bool:
    return str(value.type) == "!llvm.ptr"


HOST_BUFFERS = "ab"
SOURCES = {"inc": 1, "twice": 1, "add": 2}  # kernel -> buffers that it reads, the last one is written
WIDE = "wide"  # a buffer of 32, used by parts
PARTS = {f"part{offset}": offset for offset in (0, 8, 16)}  # of 16 elements
NO_ACTIONS = ("arith.constant", "func.return", "memref.subview", "memref.cast")


class Action(NamedTuple):
    text: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_host: bool = False


@st.composite
def programs(draw: st.DrawFn) -> tuple[Action, ...]:
    buffers = [f"d{number}" for number in range(draw(st.integers(1, 4)))]
    actions = [Action(texts.alloc(name), (), (name,)) for name in buffers]
    anywhere = st.sampled_from([*buffers, *HOST_BUFFERS])
    actions.append(Action("\n".join([f"%{WIDE} = gpu.alloc () : {texts.WIDE}", *view_lines()]), (), (WIDE,)))
    kinds = ["copy", "inc", "twice", "add", "inc", "load", "store", "spread", "gather", "inc_part"]
    for number in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(kinds))
        chosen = tuple(draw(st.lists(anywhere, min_size=3, max_size=3)))
        if kind in ("spread", "gather", "inc_part"):
            actions.append(part_action(kind, chosen[0], draw(st.sampled_from(sorted(PARTS)))))
        elif kind == "copy":
            actions.append(Action(texts.copy(chosen[0], chosen[1]), chosen[1:2], chosen[:1]))
        elif kind in SOURCES:
            names = chosen[:1] if kind == "inc" else chosen[: SOURCES[kind] + 1]
            actions.append(Action(texts.launch(kind, *names), names[: SOURCES[kind]], names[-1:]))
        else:
            actions.append(host_action(kind, draw(st.sampled_from(HOST_BUFFERS)), number))
    frees = [Action(texts.free(name), (), (name,)) for name in buffers]
    return (*actions, *frees, Action(f"gpu.dealloc %{WIDE} : {texts.WIDE}", (), (WIDE,)))


def view_lines() -> list[str]:
    return [line for name, offset in PARTS.items() for line in texts.part(name, WIDE, offset)]


def part_action(kind: str, buffer: str, part: str) -> Action:
    typed = {buffer: (buffer, texts.BUFFER), part: (part, texts.PART)}
    names = {"spread": (buffer, part), "gather": (part, buffer), "inc_part": (part,)}[kind]
    return Action(texts.launch_parts(kind, *(typed[name] for name in names)), names[:1], names[-1:])


def elements(names: tuple[str, ...]) -> set[tuple[str, int]]:
    parts = {name: (WIDE, offset, 16) for name, offset in PARTS.items()} | {WIDE: (WIDE, 0, 32)}
    found = [parts.get(name, (name, 0, 16)) for name in names]
    return {(root, index) for root, first, count in found for index in range(first, first + count)}


def host_action(kind: str, name: str, number: int) -> Action:
    if kind == "load":
        text = f"%v{number} = memref.load %{name}[%c0] : {texts.BUFFER}"
        return Action(text, (name,), (), is_host=True)
    return Action(f"memref.store %x, %{name}[%c0] : {texts.BUFFER}", (), (name,), is_host=True)


def conflicts(actions: tuple[Action, ...]) -> set[tuple[int, int]]:
    return {
        (u, v)
        for v, later in enumerate(actions)
        for u, earlier in enumerate(actions[:v])
        if elements(earlier.writes) & elements((*later.reads, *later.writes))
        or elements(earlier.reads) & elements(later.writes)
    }


def order_of(actions: tuple[Action, ...], form: str, limit: int) -> tuple[Order, int]:
    order, count, _ = orders_of(actions, form, limit)
    return order, count


def orders_of(
    actions: tuple[Action, ...], form: str, limit: int, *, is_mutated: bool = False
) -> tuple[Order, int, list[Order]]:
    """Returns the order, the number of streams, and the orders less each of the waits."""
    lines = (action.text for action in actions)
    text = texts.host_function(*lines, buffers=HOST_BUFFERS, others="%x: f32", kernels=texts.KERNELS_OF_PARTS)
    with texts.main_function(text) as (module, function):
        ops = [each.operation for each in function.regions[0].blocks[0].operations]
        kind = bindings.ir.IntegerType.get_signless(64)
        for number, op in enumerate(op for op in ops if op.name not in NO_ACTIONS):
            op.attributes["id"] = bindings.ir.IntegerAttr.get(kind, number)
        use = async_streams.use_streams if form == "streams" else async_streams.use_tokens
        count = use(function, kernel_effects.KernelEffects(module), limit) or 0
        assert module.operation.verify()
        order = Order(has_caller=form == "streams").read(function)
        waits = range(order.waits if is_mutated else 0)
        return order, count, [Order(form == "streams", skipped=wait).read(function) for wait in waits]


def required(actions: tuple[Action, ...]) -> set[tuple[int, int]]:
    device = {number for number, action in enumerate(actions) if not action.is_host}
    return conflicts(actions) | {(BEGIN, number) for number in device} | {(number, END) for number in device}


@costly(15, 40)
@given(programs(), st.sampled_from([1, 2, 99]))
def test_streams_keep_every_dependency_and_no_wait_can_be_left_out(
    actions: tuple[Action, ...], limit: int
) -> None:
    order, count, mutants = orders_of(actions, "streams", limit, is_mutated=True)
    assert required(actions) <= order.pairs
    assert count <= limit
    assert order.events == {}  # each is destroyed
    assert all(not required(actions) <= mutant.pairs for mutant in mutants)


@costly(15, 40)
@given(programs(), st.sampled_from([1, 2, 99]))
def test_tokens_keep_every_dependency(actions: tuple[Action, ...], limit: int) -> None:
    order, _ = order_of(actions, "tokens", limit)
    assert conflicts(actions) <= order.pairs
    assert {(number, END) for number in range(len(actions))} <= order.pairs
    assert order.streams == {}  # each is destroyed


@pytest.mark.slow
@costly(15, 30)
@given(programs())
def test_both_forms_let_the_same_work_overlap(actions: tuple[Action, ...]) -> None:
    streams, _ = order_of(actions, "streams", 99)
    tokens, _ = order_of(actions, "tokens", 99)
    work = {n for n, action in enumerate(actions) if "gpu.memcpy" in action.text or "launch" in action.text}

    def among(order: Order) -> set[tuple[int, int]]:
        return {pair for pair in order.pairs if work.issuperset(pair)}

    assert among(streams) == among(tokens)


@pytest.mark.parametrize("form", ["streams", "tokens"])
def test_independent_work_and_work_on_halves_of_a_buffer_are_not_ordered(form: str) -> None:
    actions = tuple(Action(texts.launch("inc", name), (name,), (name,)) for name in HOST_BUFFERS)
    assert (0, 1) not in order_of(actions, form, 99)[0].pairs
    low, middle, high = (part_action("inc_part", "a", name) for name in ("part0", "part8", "part16"))
    whole = Action("\n".join([f"%{WIDE} = gpu.alloc () : {texts.WIDE}", *view_lines()]), (), (WIDE,))
    order, _ = order_of((whole, low, high, middle), form, 99)
    assert order.pairs & {(1, 2), (1, 3), (2, 3)} == {(1, 3), (2, 3)}
