"""Random straight programs: both forms keep every dependency, and end everything that they begin."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.programs.lowering import device_programs as texts
from tests.programs.lowering.ir_order import BEGIN, END, Order

pytestmark = pytest.mark.mlir

async_streams = pytest.importorskip("tuner.programs.streams.async_streams")
bindings = pytest.importorskip("tuner.mlir.bindings")
kernel_effects = pytest.importorskip("tuner.mlir.effects.memory_effects")

HOST_BUFFERS = "ab"
SOURCES = {"inc": 1, "twice": 1, "add": 2}  # kernel -> buffers that it reads, the last one is written
WIDE = "wide"  # a buffer of 32, used by parts
PARTS = {f"part{offset}": offset for offset in (0, 8, 16)}  # of 16 elements
NO_ACTIONS = ("arith.constant", "func.return", "memref.subview", "memref.cast")


class Action(NamedTuple):
    """One op of a program, with what it reads and writes."""

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
    """Returns (buffer, index) of all that is named."""
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
    """Returns the order after the pass, and how many streams it takes."""
    *orders, count = orders_of(actions, form, limit)
    return orders[0], count


def orders_of(actions: tuple[Action, ...], form: str, limit: int) -> Iterator[Any]:
    """Yields the order, those less each of the waits, and the number of streams."""
    lines = (action.text for action in actions)
    text = texts.host_function(*lines, buffers=HOST_BUFFERS, others="%x: f32", kernels=texts.KERNELS_OF_PARTS)
    with texts.main_function(text) as (module, function):
        number = 0
        for op in function.regions[0].blocks[0].operations:
            if op.operation.name not in NO_ACTIONS:
                kind = bindings.ir.IntegerType.get_signless(64)
                op.operation.attributes["id"] = bindings.ir.IntegerAttr.get(kind, number)
                number += 1
        effects = kernel_effects.KernelEffects(module)
        if form == "streams":
            count = async_streams.use_streams(function, effects, limit)
        else:
            async_streams.use_tokens(function, effects, limit)
            count = 0
        assert module.operation.verify()
        order = Order(has_caller=form == "streams").read(function)
        yield order
        for wait in range(order.waits):
            yield Order(has_caller=form == "streams", skipped=wait).read(function)
        yield count


def required(actions: tuple[Action, ...]) -> set[tuple[int, int]]:
    """Returns all pairs that must be in order when a caller gives the first stream."""
    device = {number for number, action in enumerate(actions) if not action.is_host}
    return conflicts(actions) | {(BEGIN, number) for number in device} | {(number, END) for number in device}


@costly(15, 40)
@given(programs(), st.sampled_from([1, 2, 99]))
def test_streams_keep_every_dependency(actions: tuple[Action, ...], limit: int) -> None:
    order, count = order_of(actions, "streams", limit)
    assert required(actions) <= order.pairs
    assert count <= limit
    assert order.events == {}  # each is destroyed


@costly(15, 40)
@given(programs(), st.sampled_from([1, 2, 99]))
def test_no_wait_of_streams_can_be_left_out(actions: tuple[Action, ...], limit: int) -> None:
    _, *mutants, _ = orders_of(actions, "streams", limit)
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


def test_independent_work_is_not_ordered() -> None:
    actions = tuple(Action(texts.launch("inc", name), (name,), (name,)) for name in HOST_BUFFERS)
    for form in ("streams", "tokens"):
        order, _ = order_of(actions, form, 99)
        assert (0, 1) not in order.pairs


def test_work_on_halves_of_a_buffer_is_not_ordered() -> None:
    low, middle, high = (part_action("inc_part", "a", name) for name in ("part0", "part8", "part16"))
    whole = Action("\n".join([f"%{WIDE} = gpu.alloc () : {texts.WIDE}", *view_lines()]), (), (WIDE,))
    for form in ("streams", "tokens"):
        order, _ = order_of((whole, low, high, middle), form, 99)
        assert order.pairs & {(1, 2), (1, 3), (2, 3)} == {(1, 3), (2, 3)}
