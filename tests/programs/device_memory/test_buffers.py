"""Buffers of the host and of the device; what the walk over a program asks for."""

from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir import bindings
from tuner.mlir.effects import aliases as alias_sets
from tuner.mlir.effects import memory_effects as kernel_effects
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import walk
from tuner.programs.device_memory import buffers as device_buffers
from tuner.programs.device_memory import coherence
from tuner.programs.device_memory import iter_args as extra_iter_args

pytestmark = pytest.mark.mlir


def allocated(kind: str, body: str = "") -> tuple[str, str]:
    """Allocates like %a, or like the result of the body; returns the type of what was made, and the text."""
    text = f"func.func @main(%a: {kind}, %n: index) {{ {body} return }}"
    with parsed(text) as module:
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        end = list(block.operations)[-1].operation
        host: Any = block.operations[0].operation.results[0] if body else block.arguments[0]
        with bindings.ir.InsertionPoint(end):
            _, device = device_buffers.allocate_like(host)
            create("memref.dealloc", [], [device])  # keeps it
        assert module.operation.verify()
        bindings.passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        made = walk(module, "gpu.alloc")[0].results[0]
        return str(made.type), str(module)


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        *((kind, kind) for kind in ("memref<4x8xf32>", "memref<f32>", "memref<0x4xf16>")),
        ("memref<4x8xf32, strided<[16, 1]>>", "memref<56xf32>"),
        ("memref<4x8xf32, strided<[16, 1], offset: 3>>", "memref<59xf32>"),
        ("memref<4x8xf32, strided<[1, 4], offset: ?>>", "memref<32xf32>"),
        ("memref<0x8xf32, strided<[16, 1]>>", "memref<0xf32>"),
        ("memref<4x8xf32, strided<[?, 1]>>", "memref<?xf32>"),
        ("memref<?x8xf32, strided<[16, 1]>>", "memref<?xf32>"),
    ],
)
def test_other_layouts_than_adjacent_rows_get_memory_from_first_to_last_element(kind: str, made: str) -> None:
    found, text = allocated(kind)
    assert found == made
    assert ("memref.reinterpret_cast" in text) == ("strided" in kind)


def test_dynamic_sizes_are_those_of_the_host_memory() -> None:
    _, text = allocated("memref<?x4x?xf32>")
    assert "memref.dim %arg0, %c0" in text
    assert "memref.dim %arg0, %c2" in text
    _, text = allocated("index", "%t = memref.alloc(%n) : memref<?xf32>")
    assert "gpu.alloc  (%arg1) : memref<?xf32>" in text


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("memref<*xf32>", "", r"^argument %arg0: found memref<\*xf32>, allowed a ranked memref$"),
        (
            "index",
            "%t = memref.alloc(%n) : memref<?x8xf32, strided<[16, 1]>>",
            r"^%alloc of memref\.alloc: found memref<\?x8xf32, .*> of dynamic size, allowed a row-major",
        ),
    ],
)
def test_what_cannot_be_mirrored_is_refused(kind: str, body: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=reason):
        allocated(kind, body)


HOST, DEVICE = device_buffers.Side.HOST, device_buffers.Side.DEVICE
ON_HOST, ON_DEVICE = frozenset({(0, HOST)}), frozenset({(0, DEVICE)})
ON_BOTH = ON_HOST | ON_DEVICE
State = frozenset[tuple[int, Any]]


def test_a_write_leaves_one_side_valid() -> None:
    assert device_buffers.written(ON_BOTH, 0, DEVICE) == ON_DEVICE
    assert device_buffers.written(ON_HOST, 0, DEVICE) == ON_DEVICE
    assert device_buffers.written(frozenset({(1, HOST)}), 0, HOST) == {(0, HOST), (1, HOST)}


@pytest.mark.parametrize(
    ("before", "paths", "after"),
    [
        (ON_BOTH, [ON_BOTH, ON_DEVICE], ON_DEVICE),
        (ON_HOST, [ON_DEVICE, ON_HOST], ON_HOST),
        (ON_DEVICE, [ON_DEVICE, ON_HOST], ON_DEVICE),
        (ON_BOTH, [ON_DEVICE, ON_HOST], ON_DEVICE),
        (ON_HOST, [ON_HOST | {(1, DEVICE)}, ON_HOST], ON_HOST),  # what only one path knows is forgotten
    ],
)
def test_branches_meet_where_the_untouched_path_copies_nothing(
    before: State, paths: list[State], after: State
) -> None:
    assert device_buffers.after_branches(before, paths) == after


def test_a_loop_starts_where_its_body_works_and_a_body_that_never_agrees_ends() -> None:
    def reads(state: State) -> tuple[State, State]:
        return state | ON_DEVICE, ON_DEVICE - state

    def writes(state: State) -> tuple[State, State]:
        return ON_DEVICE, ON_DEVICE - state

    def alternates(state: State) -> tuple[State, State]:
        return (ON_HOST if state == ON_DEVICE else ON_DEVICE), frozenset()

    assert device_buffers.at_loop(ON_HOST, reads) == ON_BOTH  # is given a copy once
    assert device_buffers.at_loop(ON_HOST, writes) == ON_DEVICE
    assert device_buffers.at_loop(ON_HOST, alternates) in (ON_HOST, ON_DEVICE)


M = "memref<4xf32>"
MODULE = text_beside(__file__, "MODULE")


def launch(kernel: str, buffer: str) -> str:
    grid = "(%c1, %c1, %c1)"
    return f"gpu.launch_func @m::@{kernel} blocks in {grid} threads in {grid} args({buffer} : {M})"


class RecordedActions:
    def __init__(self) -> None:
        self.entries: list[str] = []

    def fetch(self, location: Any, before: Any) -> None:
        self.entries.append(f"{'abc'[location[0]]} to {location[1].value} before {before.name}")

    def launch(self, launch: Any) -> None:
        self.entries.append("launch")

    def copy(self, copy: Any, source: Any, target: Any) -> None:
        self.entries.append(f"copy from {source.value} to {target.value}")

    def touch_on_host(self, alias_set: int) -> None:
        self.entries.append(f"host looks at {'abc'[alias_set]}")

    def define(self, allocation: Any) -> None:
        self.entries.append("define")

    def release(self, deallocation: Any) -> None:
        self.entries.append("release")

    def leave(self, block: Any) -> None:
        self.entries.append("leave")


def entries(*body: str, managed: str = "ab") -> list[str]:
    """Walks over arguments, of which those named have device memory."""
    with parsed(MODULE.replace("BODY", "\n".join(body))) as module:
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        known = alias_sets.AliasSets(function)
        arguments = [block.arguments["abc".index(name)] for name in managed]
        buffers = {
            value: device_buffers.MirroredBuffer(
                device_buffers.BufferKind.ARGUMENT, known.of(value), value, value, block, value
            )
            for value in arguments
        }
        recorded: Any = RecordedActions()
        effects = kernel_effects.KernelEffects(module)
        coherence.CoherenceWalk(known, buffers, effects).function(function, recorded)
        return list(recorded.entries)


UP, DOWN = "a to device before gpu.launch_func", "a to host before func.return"


@pytest.mark.parametrize(
    ("before", "copy", "found"),
    [
        ((), "%a, %b", "copy from host to device"),
        ((launch("read", "%a"),), "%a, %b", "copy from device to device"),
        ((launch("write", "%a"),), "%a, %c", "copy from device to host"),
        ((), "%c, %a", "copy from host to device"),
    ],
)
def test_a_copy_starts_where_its_source_is(before: tuple[str, ...], copy: str, found: str) -> None:
    assert found in entries(*before, f"memref.copy {copy} : {M} to {M}")


READ, WRITE, LOAD = launch("read", "%a"), launch("write", "%a"), f"%v = memref.load %a[%c0] : {M}"
BEFORE_LOOP = "a to device before scf.for"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ((READ, READ), [UP, "launch", "launch"]),  # only read: one way
        ((WRITE,), [UP, "launch", DOWN]),  # written in part: both ways
        ((f"memref.copy %c, %c : {M} to {M}", f"memref.store %x, %c[%c0] : {M}"), []),  # not managed
        ((f"memref.copy %a, %c : {M} to {M}",), ["host looks at a"]),
        ((f"scf.for %i = %c0 to %n step %c1 {{ {READ} }}",), [BEFORE_LOOP, "launch", "leave"]),
        (
            (f"scf.for %i = %c0 to %n step %c1 {{ {WRITE} {LOAD} }}",),
            [BEFORE_LOOP, "launch", "host looks at a", "a to host before memref.load", "leave"],
        ),
        ((f"scf.if %flag {{ {WRITE} }}",), [UP, "launch", "a to host before scf.yield", "leave"]),
    ],
)
def test_the_walk_asks_for_copies_where_they_are_needed(body: tuple[str, ...], expected: list[str]) -> None:
    assert entries(*body) == [*expected, "leave"]


FOR = text_beside(__file__, "FOR")
IF = f"%r = scf.if %c -> {M} {{ scf.yield %a : {M} }} else {{ scf.yield %b : {M} }}"
WHILE = text_beside(__file__, "WHILE")
WITH_ITER_ARGS = text_beside(__file__, "WITH_ITER_ARGS")


def added(body: str) -> tuple[str, Any, list[str]]:
    """Returns the module, the pairs' types, and what the added operands hold."""
    with parsed(WITH_ITER_ARGS.replace("BODY", body)) as module:
        block = module.body.operations[0].regions[0].blocks[0]
        op = next(op for op in alias_sets.structured_operations(block) if op.name in alias_sets.STRUCTURED)
        result = extra_iter_args.add_iter_args(op, lambda value: alias_sets.is_buffer(value.type))
        assert module.operation.verify()
        kinds = [(str(one.type), str(other.type)) for one, other in result.pairs]
        return str(module), kinds, [each.op.operands[each.number].get_name() for each in result.operands]


@pytest.mark.parametrize(
    ("body", "pairs", "operands"),
    [(FOR, 2, ["%arg0", "%arg1"]), (IF, 1, ["%arg0", "%arg1"]), (WHILE, 3, ["%arg0", "%arg4", "%arg1"])],
)
def test_each_path_gets_a_second_value(body: str, pairs: int, operands: list[str]) -> None:
    _, kinds, held = added(body)
    assert kinds == [(M, M)] * pairs
    assert sorted(held) == sorted(operands)


def test_values_keep_their_places_in_front_of_the_extra_ones_and_other_loops_stay() -> None:
    text, _, _ = added(FOR)
    assert f"-> ({M}, index, {M})" in text
    assert f"scf.yield %arg1, %arg4, %arg1 : {M}, index, {M}" in text
    text, kinds, operands = added("scf.for %i = %c0 to %n step %c1 { }")
    assert (kinds, operands) == ([], [])
    assert "iter_args" not in text
