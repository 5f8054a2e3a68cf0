"""Buffers of the host and of the device: what is copied when, and what calls give."""

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.examples import costly
from tests.mlir.kernels import parsed
from tests.models.file_check import directives, filled
from tests.models.lowering.compiled import on_simulator
from tests.support.fuzzing.host_program_writer import ProgramFeatures
from tests.support.fuzzing.host_programs import RandomProgram, host_programs
from tests.support.fuzzing.program_check import SIMULATOR, check_calls
from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.device_programs import DeviceOptions
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.device_memory import buffers as device_buffers
from tuner.gpu.device_memory import conversion as memory
from tuner.mlir import bindings
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import walk
from tuner.runtime.arrays import ArrayView, MemRef
from tuner.runtime.programs.marshalling import PassedArgument

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


def program(name: str, kind: str = "memref<4x4xf32>") -> str:
    body = text_beside(__file__, name)
    options = {"arguments": "%a: M, %b: M", "results": "", "extra": ""} | directives(body)
    body = re.sub(r"^// .*\n", "", body, flags=re.MULTILINE)
    for call, source, target in re.findall(r"(DOUBLED\((\S+), (\S+)\))", body):
        body = body.replace(call, filled(__file__, "DOUBLED", source=source, target=target))
    body = body.replace("LAUNCH", text_beside(__file__, "LAUNCH")).replace("END", "gpu.terminator }")
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


GOLDEN = (
    *("arguments", "scratch", "global", "results", "copies", "strided", "loop", "swap"),
    *("device_arguments", "pinned", "branch", "host_branch", "host_in_loop", "chosen", "turns", "numbered"),
)


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


def test_sizes_of_the_run_and_pinned_memory_and_what_needs_no_copy_has_none() -> None:
    check(program("dynamic", "memref<?x4xf32>"), A, copies=2)
    text, write = program("pinned"), "memref.store %one, %t"  # of one element, while the kernel reads all
    kind = "memref<4x4xf32>"
    check(text.replace(write, f"memref.copy %a, %t : {kind} to {kind} {write}"), A, B, **PINNED)
    assert "%arg1 : f32" in rewritten(program("numbers"))
    assert rewritten(program("fill")).count("gpu.memcpy") == 1
    assert "gpu.memcpy" not in rewritten(program("no_kernels"))
    marked = rewritten(program("marked"))
    counted = [marked.count(word) for word in ("tuner.device", "llvm.noalias", "gpu.memcpy")]
    assert counted == [0, 1, 1]


def test_rows_that_are_not_adjacent_go_through_memory_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.arange(48, dtype=np.float32).reshape(4, 12)
    expected = wide.copy()
    expected[:, 5:9] += 1
    rows = MemRef(wide.ctypes.data, wide.ctypes.data, 5, (4, 4), (12, 1))
    view = ArrayView(wide.ctypes.data, wide.shape, None, wide.dtype, wide)
    passed = PassedArgument(struct.pack("7q", *rows.words), True, view, is_on_host=True)
    # of Python's callers only arrays without gaps are taken
    monkeypatch.setattr("tuner.gpu.run.device_function.pass_arguments", lambda *_: (passed,))
    code = compiler_of(SIMULATOR).compile(program("strided"), "main", None, DeviceOptions(form="sync")).code
    with on_simulator(code) as (loaded, _):
        loaded(wide)
    np.testing.assert_array_equal(wide, expected)


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


def test_dynamic_sizes_are_those_of_the_host_memory_and_a_loop_starts_where_its_body_works() -> None:
    _, text = allocated("memref<?x4x?xf32>")
    assert {"%arg0, %c0", "%arg0, %c2"} <= {*re.findall(r"memref\.dim (%\w+, %\w+)", text)}
    _, text = allocated("index", "%t = memref.alloc(%n) : memref<?xf32>")
    assert "gpu.alloc  (%arg1) : memref<?xf32>" in text
    at_loop, device = device_buffers.at_loop, VALID_ON_DEVICE
    assert at_loop(ON_HOST, lambda state: (state | device, device - state)) == ON_BOTH  # is given a copy once
    assert at_loop(ON_HOST, lambda state: (device, device - state)) == device
    alternating = at_loop(ON_HOST, lambda state: (ON_HOST if state == device else device, frozenset()))
    assert alternating in (ON_HOST, device)


def test_what_cannot_be_mirrored_is_refused() -> None:
    with pytest.raises(
        CandidateError, match=r"^argument %arg0: found memref<\*xf32>, allowed a ranked memref$"
    ):
        allocated("memref<*xf32>")
    reason = r"^%alloc of memref\.alloc: found memref<\?x8xf32, .*> of dynamic size, allowed a row-major"
    with pytest.raises(CandidateError, match=reason):
        allocated("index", "%t = memref.alloc(%n) : memref<?x8xf32, strided<[16, 1]>>")


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
