"""Buffers of the host and of the device: what is copied when, and what calls give."""

import re
import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.fuzzing.host_program_writer import ProgramFeatures
from benchmarks.fuzzing.host_programs import RandomProgram, host_programs
from benchmarks.fuzzing.program_check import SIMULATOR, check_calls
from benchmarks.program_compiler import compiler_of
from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.programs.file_check import directives
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import bindings
from tuner.mlir.effects import aliases as alias_sets
from tuner.mlir.effects import memory_effects as kernel_effects
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import walk
from tuner.programs.device_memory import buffers as device_buffers
from tuner.programs.device_memory import coherence
from tuner.programs.device_memory import conversion as memory
from tuner.programs.device_memory import iter_args as extra_iter_args
from tuner.programs.request import DeviceOptions
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.marshalling import PassedArgument
from tuner.runtime.arrays import MemRef
from tuner.simulator.device.simulated_device import SimulatedDevice

pytestmark = pytest.mark.mlir
OUTLINE = "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining,canonicalize,cse)"
PINNED: dict[str, Any] = {"pinned": True}
ON_DEVICE: dict[str, Any] = {"device_arguments": True}
A = np.arange(16, dtype=np.float32).reshape(4, 4)
B = A[::-1].copy()
FEW = settings(costly(8, 40), suppress_health_check=list(HealthCheck))
HOST, DEVICE = device_buffers.Side.HOST, device_buffers.Side.DEVICE
ON_HOST, VALID_ON_DEVICE = frozenset({(0, HOST)}), frozenset({(0, DEVICE)})
ON_BOTH = ON_HOST | VALID_ON_DEVICE
State = frozenset[tuple[int, Any]]
M = "memref<4xf32>"
UP, DOWN = "a to device before gpu.launch_func", "a to host before func.return"
FOR = text_beside(__file__, "FOR")
IF = f"%r = scf.if %c -> {M} {{ scf.yield %a : {M} }} else {{ scf.yield %b : {M} }}"
WHILE = text_beside(__file__, "WHILE")


def program(name: str, kind: str = "memref<4x4xf32>") -> str:
    """Returns a program of the .mlir file, with what capitals stand for."""
    body = text_beside(__file__, name)
    options = {"arguments": "%a: M, %b: M", "results": "", "extra": ""} | directives(body)
    body = re.sub(r"^// .*\n", "", body, flags=re.MULTILINE)
    doubled, launch = (text_beside(__file__, each) for each in ("DOUBLED", "LAUNCH"))
    for call, source, target in re.findall(r"(DOUBLED\((\S+), (\S+)\))", body):
        body = body.replace(call, doubled.replace("SOURCE", source).replace("TARGET", target))
    body = body.replace("LAUNCH", launch).replace("END", "gpu.terminator }")
    text = text_beside(__file__, "FRAME").replace("BODY", body if "return" in body else f"{body}return")
    text = text.replace("EXTRA", text_beside(__file__, options["extra"]) if options["extra"] else "")
    text = text.replace("RESULTS", f"-> ({options['results']})" if options["results"] else "")
    return re.sub(r"\bM\b", kind, text.replace("ARGUMENTS", options["arguments"]))


def rewritten(text: str, **options: Any) -> str:
    with parsed(text) as module:
        bindings.passmanager.PassManager.parse(OUTLINE).run(module.operation)
        memory.host_to_device_memory(module, DeviceOptions(**options))
        assert module.operation.verify()
        bindings.passmanager.PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
        return str(module)


def check(text: str, *arguments: Any, copies: int | None = None, **options: Any) -> None:
    """Compares calls on the simulated GPU with loops on the host; ``copies`` is what each call makes."""
    counts = check_calls(text, arguments, DeviceOptions(form="sync", **options))
    assert copies is None or counts.copies == copies


GOLDEN: tuple[str, ...] = ("arguments", "scratch", "global", "results", "copies", "strided", "loop", "swap")
GOLDEN += ("device_arguments", "pinned")


@pytest.mark.drawn(len(GOLDEN))
@pytest.mark.parametrize("name", GOLDEN)
def test_ir(name: str, golden: Callable[[str, str], None]) -> None:
    options = {"device_arguments": ON_DEVICE, "pinned": PINNED}.get(name, {})
    main = rewritten(program(name), **options).split("func.func @main")[1].split("  gpu.module")[0]
    golden(f"host_to_device_memory_{name}.mlir", f"  func.func @main{main}")


CALLS = [  # program, arguments, copies of each call, options
    ("arguments", (A, B), 3, {}),
    ("scratch", (A, B), 2, {}),
    ("global", (A, B), None, {}),
    ("written_global", (A, B), 2, {}),
    ("results", (A, B), 2, {}),
    ("copies", (A, B), None, {}),
    ("parts", (A, B), None, {}),
    ("loop", (A, B), 4, {}),
    ("host_in_loop", (A, B), None, {}),
    ("swap", (A, B), 4, {}),
    *(("while", (np.ones((4, 4), np.float32), 2.0**count - 0.5), None, {}) for count in (0, 1, 2)),
    *(("freed_in_branch", (A, B, flag), None, {}) for flag in (True, False)),
    ("numbers", (A, 2.5), None, {}),
    ("fill", (A, B), None, {}),
    ("called", (A, B), None, {}),
    ("device_arguments", (A, B), 0, ON_DEVICE),
    ("read_on_host", (A, B), 3, ON_DEVICE),
    *(
        pytest.param(name, (A, B, flag), None, {}, marks=pytest.mark.slow)
        for name in ("branch_or_host", "host_branch", "branch")
        for flag in (True, False)
    ),
]


@pytest.mark.drawn(len(CALLS))
@pytest.mark.parametrize(("name", "arguments", "copies", "options"), CALLS)
def test_calls_give_what_loops_on_the_host_give(name: str, arguments: Any, copies: Any, options: Any) -> None:
    check(program(name), *arguments, copies=copies, **options)


def test_sizes_of_the_run_and_pinned_memory_in_place_of_allocations_that_are_copied() -> None:
    check(program("dynamic", "memref<?x4xf32>"), A, copies=2)
    text, write = program("pinned"), "memref.store %one, %t"  # of one element, while the kernel reads all
    kind = "memref<4x4xf32>"
    check(text.replace(write, f"memref.copy %a, %t : {kind} to {kind} {write}"), A, B, **PINNED)


def test_what_needs_no_copy_has_none() -> None:
    assert "%arg1 : f32" in rewritten(program("numbers"))
    assert rewritten(program("fill")).count("gpu.memcpy") == 1
    assert "gpu.memcpy" not in rewritten(program("no_kernels"))
    marked = rewritten(program("marked"))
    assert "tuner.device" not in marked
    assert "llvm.noalias" in marked
    assert marked.count("gpu.memcpy") == 1


def test_rows_that_are_not_adjacent_go_through_memory_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    expected = wide.copy()
    expected[:, 5:9] += 1
    rows = MemRef(wide.ctypes.data, wide.ctypes.data, 5, (4, 4), (12, 1))
    passed = PassedArgument(struct.pack("7q", *rows.words), True, wide, wide)
    # of Python's callers only arrays without gaps are taken
    monkeypatch.setattr("tuner.programs.run.device_function.pass_arguments", lambda *_: (passed,))
    device = SimulatedDevice("sm_90")
    code = compiler_of(SIMULATOR).compile(program("strided"), "main", None, DeviceOptions(form="sync")).code
    with closing(DeviceFunction(code, device)) as loaded:
        loaded(wide)
    np.testing.assert_array_equal(wide, expected)
    assert device.reports == ()


REFUSED: tuple[str, ...] = ("blocks", "leaves_iteration", "frees_one_of_two", "freed_and_returned")
REFUSED += ("freed_twice", "unknown_origin")
OF_DEVICE = ("device_or_global", "device_to_function", "device_with_gaps")


@pytest.mark.drawn(len(REFUSED + OF_DEVICE))
@pytest.mark.parametrize("name", REFUSED + OF_DEVICE)
def test_what_cannot_be_followed_is_refused(name: str) -> None:
    with pytest.raises(CandidateError, match=directives(text_beside(__file__, name))["refused"]) as failure:
        rewritten(program(name), **(ON_DEVICE if name in OF_DEVICE else {}))
    assert failure.value.stage is Stage.COMPILE


@pytest.mark.slow
@FEW
@given(host_programs())
def test_random_programs_do_the_same_with_pinned_memory(case: RandomProgram) -> None:
    check(case.text, *case.arguments, **PINNED)


@pytest.mark.slow
@FEW
@given(host_programs(ProgramFeatures(globals=False)))
def test_random_programs_do_the_same_on_arguments_in_device_memory(case: RandomProgram) -> None:
    check(case.text, *case.arguments, **ON_DEVICE)


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
    assert {"%arg0, %c0", "%arg0, %c2"} <= {*re.findall(r"memref\.dim (%\w+, %\w+)", text)}
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


def test_a_write_leaves_one_side_valid() -> None:
    assert device_buffers.written(ON_BOTH, 0, DEVICE) == VALID_ON_DEVICE
    assert device_buffers.written(ON_HOST, 0, DEVICE) == VALID_ON_DEVICE
    assert device_buffers.written(frozenset({(1, HOST)}), 0, HOST) == {(0, HOST), (1, HOST)}


@pytest.mark.parametrize(
    ("before", "paths", "after"),
    [
        (ON_BOTH, [ON_BOTH, VALID_ON_DEVICE], VALID_ON_DEVICE),
        (ON_HOST, [VALID_ON_DEVICE, ON_HOST], ON_HOST),
        (VALID_ON_DEVICE, [VALID_ON_DEVICE, ON_HOST], VALID_ON_DEVICE),
        (ON_BOTH, [VALID_ON_DEVICE, ON_HOST], VALID_ON_DEVICE),
        (ON_HOST, [ON_HOST | {(1, DEVICE)}, ON_HOST], ON_HOST),  # what only one path knows is forgotten
    ],
)
def test_branches_meet_where_the_untouched_path_copies_nothing(
    before: State, paths: Any, after: State
) -> None:
    assert device_buffers.after_branches(before, paths) == after


def test_a_loop_starts_where_its_body_works_and_a_body_that_never_agrees_ends() -> None:
    at_loop, device = device_buffers.at_loop, VALID_ON_DEVICE
    assert at_loop(ON_HOST, lambda state: (state | device, device - state)) == ON_BOTH  # is given a copy once
    assert at_loop(ON_HOST, lambda state: (device, device - state)) == device
    alternating = at_loop(ON_HOST, lambda state: (ON_HOST if state == device else device, frozenset()))
    assert alternating in (ON_HOST, device)


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
    with parsed(text_beside(__file__, "MODULE").replace("BODY", "\n".join(body))) as module:
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        known = alias_sets.AliasSets(function)
        kind, buffers = device_buffers.BufferKind.ARGUMENT, {}
        for value in (block.arguments["abc".index(name)] for name in managed):
            buffers[value] = device_buffers.MirroredBuffer(kind, known.of(value), value, value, block, value)
        recorded: Any = RecordedActions()
        effects = kernel_effects.KernelEffects(module)
        coherence.CoherenceWalk(known, buffers, effects).function(function, recorded)
        return list(recorded.entries)


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


def added(body: str) -> tuple[str, Any, list[str]]:
    """Returns the module, the pairs' types, and what the added operands hold."""
    with parsed(text_beside(__file__, "WITH_ITER_ARGS").replace("BODY", body)) as module:
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
