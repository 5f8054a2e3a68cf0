"""Programs on device memory become asynchronous, on streams of the caller or by tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.models.lowering import device_programs as texts
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.run import mgpu
from tuner.gpu.streams import async_ops, async_streams, async_tokens, stream_calls
from tuner.mlir import bindings
from tuner.mlir.effects import accesses as buffer_accesses
from tuner.mlir.effects import memory_effects as kernel_effects

pytestmark = pytest.mark.mlir
# text, number of streams
PROGRAMS = {
    "two_chains": (texts.TWO_CHAINS, 2),
    "loop_with_host": (texts.LOOP_WITH_HOST, 3),
    "branch": (texts.BRANCH, 4),
}
BEGIN, END = -1, -2
DEVICE = ("gpu.alloc", "gpu.memcpy", "gpu.memset", "gpu.launch_func", "gpu.dealloc")
Seen = frozenset[int]
NOTHING: Seen = frozenset()


def test_every_kind_of_work_gets_tokens_and_keeps_the_rest() -> None:
    with texts.main_function(texts.host_function(text_beside(__file__, "EVERY_KIND"))) as (module, function):
        works = [op for op in buffer_accesses.inside(function) if buffer_accesses.is_device_work(op)]
        kinds = [op.name for op in works]
        with works[0].location, bindings.ir.InsertionPoint(works[0]):
            token = async_ops.wait_async([])
        for op in works:
            op.attributes["note"] = bindings.ir.UnitAttr.get()
            token = async_ops.make_async(op, token)
            end = op
        with end.location, bindings.ir.InsertionPoint(end):
            async_ops.wait_on_host([token])
        for op in reversed(works):
            op.erase()
        assert module.operation.verify()
        lines = [line.strip() for line in texts.host_text(module).splitlines() if "gpu." in line][1:]
    assert [line.split(" async")[0].split(" = ")[-1] for line in lines[1:-1]] == kinds
    tokens = [line.split(" = ")[0].split(", ")[-1] for line in lines[:-1]]
    assert lines[0].endswith("gpu.wait async")
    assert all(f" async [{token}] " in line for token, line in zip(tokens[:-1], lines[1:-1], strict=True))
    assert all("{note}" in line for line in lines[1:-1])
    assert "dynamic_shared_memory_size %c64_i32 args(%memref" in lines[4]
    assert lines[-1] == f"gpu.wait [{tokens[-1]}]"


def test_the_host_waits_for_each_piece_of_tokens_and_one_that_control_flow_hands_on_is_refused() -> None:
    with texts.main_function(texts.LOOP_WITH_HOST) as (module, function):
        before = texts.host_text(module)
        async_ops.wait_for_each(function)
        assert module.operation.verify()
        lines = [line.strip() for line in texts.host_text(module).splitlines() if "gpu." in line][1:]
        async_ops.drop_tokens(function)
        assert module.operation.verify()
        assert texts.host_text(module) == before
    assert len(lines) == 3 * 13
    for begin, work, end in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        token = begin.removesuffix(" = gpu.wait async")
        assert f" async [{token}] " in work
        assert end == f"gpu.wait [{work.split(' = ')[0].split(', ')[-1]}]"
    message = (
        r"^arith\.select at .*: found a token of gpu\.wait, allowed for gpu operations in the same block$"
    )
    refused = pytest.raises(CandidateError, match=message)
    with parsed(text_beside(__file__, "CHOSEN")) as module, refused as failure:
        async_ops.drop_tokens(module.body.operations[0].operation)
    assert failure.value.stage is Stage.COMPILE


def test_functions_of_the_runtime_are_declared_once_and_called() -> None:
    with texts.main_function(texts.host_function(others="%n2: index {tuner.note}")) as (module, function):
        calls = stream_calls.StreamCalls(function, 2)
        block = function.regions[0].blocks[0]
        with function.location, bindings.ir.InsertionPoint(block.operations[len(block.operations) - 1]):
            for stream in (0, 1):
                event = calls.record(stream)
                calls.wait(1 - stream, event)
                calls.synchronize_event(event)
                calls.destroy(event)
                calls.synchronize_stream(stream)
        assert module.operation.verify()
        text = str(module)
    assert len(calls.tokens) == 2
    assert "%arg2: index {tuner.note}, %arg3: !llvm.ptr, %arg4: !llvm.ptr) {" in text
    for name in stream_calls.SIGNATURES:
        assert text.count(f"func.func private @{name}(") == 1
        assert text.count(f"call @{name}(") == 2
        result, *arguments = mgpu.SIGNATURES[name]  # the runtime has them as they are declared
        assert (len(arguments), result is not None) == stream_calls.SIGNATURES[name]
    assert "call @mgpuStreamWaitEvent(%arg4, " in text


def streams_of(text: str, limit: int = 8) -> tuple[str, int]:
    with texts.main_function(text) as (module, function):
        count = async_streams.use_streams(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return texts.host_text(module), count


@pytest.mark.parametrize("name", PROGRAMS)
def test_ir_of_streams_and_of_tokens(name: str, golden: Callable[[str, str], None]) -> None:
    text, streams = PROGRAMS[name]
    changed, count = streams_of(text)
    golden(f"async_streams_{name}.mlir", changed)
    assert count == streams
    golden(f"async_tokens_{name}.mlir", tokens_of(text))


def test_a_limit_holds_for_bodies_too_and_one_stream_or_no_work_needs_no_events() -> None:
    of_host = texts.host_function(*texts.store("a"))
    for text in (texts.TWO_CHAINS, of_host):
        changed, count = streams_of(text, limit=1)
        assert count == 1
        assert "mgpu" not in changed
    assert streams_of(of_host)[1] == 1  # the caller's alone
    assert streams_of(texts.BRANCH, limit=2)[1] == 2
    assert streams_of(texts.LOOP_WITH_HOST, limit=1)[1] == 1
    assert tokens_of(texts.TWO_CHAINS, limit=1).count("gpu.wait") == 2  # its begin and its end
    with texts.main_function(of_host) as (module, _):
        assert tokens_of(of_host) == texts.host_text(module)


def test_the_host_waits_for_all_of_a_stream_only_when_nothing_came_behind() -> None:
    last = streams_of(texts.host_function(texts.launch("inc", "a"), *texts.store("a")))[0]
    assert "@mgpuStreamSynchronize" in last
    assert "mgpuEvent" not in last
    works = texts.launch("twice", "a", "b"), texts.copy("c", "b")
    text = texts.host_function(*works, *texts.store("a"), buffers="abc")
    behind = streams_of(text)[0]
    assert "@mgpuEventSynchronize" in behind
    assert "mgpuStreamSynchronize" not in behind
    lines = [line.strip() for line in tokens_of(text).splitlines()]
    waits = [line for line in lines if "gpu.wait" in line]
    launched, copied = (line.split(" = ")[0] for line in lines if " async [" in line and "wait" not in line)
    assert waits[1].endswith(f"= gpu.wait async [{launched}]")
    assert waits[2] == f"gpu.wait [{waits[1].split(' = ')[0]}]"
    assert waits[-1] == f"gpu.wait [{copied}]"


def tokens_of(text: str, limit: int = 8) -> str:
    with texts.main_function(text) as (module, function):
        async_tokens.use_tokens(function, kernel_effects.KernelEffects(module), limit)
        assert module.operation.verify()
        return texts.host_text(module)


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
        block = function.regions[0].blocks[0]
        pointers = [each for each in block.arguments if "ptr" in str(each.type)]
        callers = pointers[:1] if self.has_caller else []  # the caller's stream is the first one
        self.streams = dict.fromkeys(callers, frozenset({BEGIN}))
        for op in block.operations:
            self._take(op.operation)
        self.pairs |= {(u, END) for u in self.host.union(*(self.streams[each] for each in callers))}
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
        else:
            self.waits += 1
            if self.waits - 1 != self.skipped:
                self._wait_by_call(name, *operands)

    def _wait_by_call(self, name: str, waited: Any, event: Any = None) -> None:
        if name == "mgpuStreamWaitEvent":
            self.streams[waited] = self.streams.get(waited, NOTHING) | self.events[event]
        elif name == "mgpuStreamSynchronize":
            self.host |= self.streams.get(waited, NOTHING)
        elif name == "mgpuEventSynchronize":
            self.host |= self.events[waited]


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


WHOLE = Action(text_beside(__file__, "WHOLE"), (), (WIDE,))  # with its parts
Actions = tuple[Action, ...]
Orders = tuple[Order, int, list[Order]]


@st.composite
def programs(draw: st.DrawFn) -> Actions:
    buffers = [f"d{number}" for number in range(draw(st.integers(1, 4)))]
    actions = [*(Action(texts.alloc(name), (), (name,)) for name in buffers), WHOLE]
    anywhere = st.sampled_from([*buffers, *HOST_BUFFERS])
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
            name = draw(st.sampled_from(HOST_BUFFERS))
            begin = "memref.store %x," if kind == "store" else f"%v{number} = memref.load"
            reads, writes = ((), (name,)) if kind == "store" else ((name,), ())
            actions.append(Action(f"{begin} %{name}[%c0] : {texts.BUFFER}", reads, writes, is_host=True))
    frees = [Action(texts.free(name), (), (name,)) for name in buffers]
    return (*actions, *frees, Action(f"gpu.dealloc %{WIDE} : {texts.WIDE}", (), (WIDE,)))


def part_action(kind: str, buffer: str, part: str) -> Action:
    typed = {buffer: (buffer, texts.BUFFER), part: (part, texts.PART)}
    names = {"spread": (buffer, part), "gather": (part, buffer), "inc_part": (part,)}[kind]
    return Action(texts.launch_parts(kind, *(typed[name] for name in names)), names[:1], names[-1:])


def elements(names: tuple[str, ...]) -> set[tuple[str, int]]:
    parts = {name: (WIDE, offset, 16) for name, offset in PARTS.items()} | {WIDE: (WIDE, 0, 32)}
    found = [parts.get(name, (name, 0, 16)) for name in names]
    return {(root, index) for root, first, count in found for index in range(first, first + count)}


def conflicts(actions: Actions) -> set[tuple[int, int]]:
    def meet(one: Action, other: Action) -> bool:
        written = elements(one.writes) & elements((*other.reads, *other.writes))
        return bool(written or elements(one.reads) & elements(other.writes))

    return {(u, v) for v, each in enumerate(actions) for u in range(v) if meet(actions[u], each)}


def order_of(actions: Actions, form: str, limit: int) -> Order:
    return orders_of(actions, form, limit)[0]


def orders_of(actions: Actions, form: str, limit: int, *, is_mutated: bool = False) -> Orders:
    lines = (action.text for action in actions)
    text = texts.host_function(*lines, buffers=HOST_BUFFERS, others="%x: f32", kernels=texts.KERNELS_OF_PARTS)
    with texts.main_function(text) as (module, function):
        ops = [each.operation for each in function.regions[0].blocks[0].operations]
        kind = bindings.ir.IntegerType.get_signless(64)
        for number, op in enumerate(op for op in ops if op.name not in NO_ACTIONS):
            op.attributes["id"] = bindings.ir.IntegerAttr.get(kind, number)
        use = async_streams.use_streams if form == "streams" else async_tokens.use_tokens
        count = use(function, kernel_effects.KernelEffects(module), limit) or 0
        assert module.operation.verify()
        order = Order(has_caller=form == "streams").read(function)
        waits = range(order.waits if is_mutated else 0)
        return order, count, [Order(form == "streams", skipped=wait).read(function) for wait in waits]


def required(actions: Actions) -> set[tuple[int, int]]:
    device = {number for number, action in enumerate(actions) if not action.is_host}
    return conflicts(actions) | {(BEGIN, number) for number in device} | {(number, END) for number in device}


@costly(15, 40)
@given(programs(), st.sampled_from([1, 2, 99]))
def test_streams_keep_every_dependency_and_no_wait_can_be_left_out(actions: Actions, limit: int) -> None:
    order, count, mutants = orders_of(actions, "streams", limit, is_mutated=True)
    assert required(actions) <= order.pairs
    assert count <= limit
    assert order.events == {}  # each is destroyed
    assert all(not required(actions) <= mutant.pairs for mutant in mutants)


@costly(15, 40)
@given(programs(), st.sampled_from([1, 2, 99]))
def test_tokens_keep_every_dependency(actions: Actions, limit: int) -> None:
    order = order_of(actions, "tokens", limit)
    assert conflicts(actions) <= order.pairs
    assert {(number, END) for number in range(len(actions))} <= order.pairs
    assert order.streams == {}  # each is destroyed


@pytest.mark.slow
@costly(15, 30)
@given(programs())
def test_both_forms_let_the_same_work_overlap(actions: Actions) -> None:
    work = {n for n, action in enumerate(actions) if "gpu.memcpy" in action.text or "launch" in action.text}
    both = (order_of(actions, form, 99).pairs for form in ("streams", "tokens"))
    streams, tokens = ({pair for pair in pairs if work.issuperset(pair)} for pairs in both)
    assert streams == tokens


@pytest.mark.parametrize("form", ["streams", "tokens"])
def test_independent_work_and_work_on_halves_of_a_buffer_are_not_ordered(form: str) -> None:
    actions = tuple(Action(texts.launch("inc", name), (name,), (name,)) for name in HOST_BUFFERS)
    assert (0, 1) not in order_of(actions, form, 99).pairs
    low, middle, high = (part_action("inc_part", "a", name) for name in ("part0", "part8", "part16"))
    order = order_of((WHOLE, low, high, middle), form, 99)
    assert order.pairs & {(1, 2), (1, 3), (2, 3)} == {(1, 3), (2, 3)}
