from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir
device_buffers = pytest.importorskip("tuner.programs.device_memory.buffers")
bindings = pytest.importorskip("tuner.mlir.bindings")


def allocated(kind: str, body: str = "") -> tuple[str, str, str]:
    """Allocates like %a, or like the result of the body; returns the types of what was made and the text."""
    text = f"func.func @main(%a: {kind}, %n: index) {{ {body} return }}"
    with parsed(text) as module:
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        end = list(block.operations)[-1].operation
        host: Any = block.operations[0].operation.results[0] if body else block.arguments[0]
        found = str(host.type)
        with bindings.ir.InsertionPoint(end):
            _, device = device_buffers.allocate_like(host)
            device_buffers.create("memref.dealloc", [], [device])  # keeps it
        assert module.operation.verify()
        bindings.passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        made = walk(module, "gpu.alloc")[0].results[0]
        return str(made.type), found, str(module)


@pytest.mark.parametrize("kind", ["memref<4x8xf32>", "memref<f32>", "memref<0x4xf16>"])
def test_adjacent_rows_are_allocated_as_they_are(kind: str) -> None:
    assert allocated(kind)[:2] == (kind, kind)


@pytest.mark.parametrize(
    ("kind", "flat"),
    [
        ("memref<4x8xf32, strided<[16, 1]>>", "memref<56xf32>"),
        ("memref<4x8xf32, strided<[16, 1], offset: 3>>", "memref<59xf32>"),
        ("memref<4x8xf32, strided<[1, 4], offset: ?>>", "memref<32xf32>"),
        ("memref<0x8xf32, strided<[16, 1]>>", "memref<0xf32>"),
        ("memref<4x8xf32, strided<[?, 1]>>", "memref<?xf32>"),
        ("memref<?x8xf32, strided<[16, 1]>>", "memref<?xf32>"),
    ],
)
def test_other_layouts_get_memory_from_the_first_to_the_last_element(kind: str, flat: str) -> None:
    made, _, text = allocated(kind)
    assert made == flat
    assert "memref.reinterpret_cast" in text


def test_dynamic_sizes_are_those_of_the_host_memory() -> None:
    _, _, text = allocated("memref<?x4x?xf32>")
    assert "memref.dim %arg0, %c0" in text
    assert "memref.dim %arg0, %c2" in text
    _, _, text = allocated("index", "%t = memref.alloc(%n) : memref<?xf32>")
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
    ],
)
def test_branches_meet_where_the_untouched_path_copies_nothing(
    before: frozenset[object], paths: list[frozenset[object]], after: frozenset[object]
) -> None:
    assert device_buffers.after_branches(before, paths) == after


def test_what_only_one_path_knows_is_forgotten() -> None:
    assert device_buffers.after_branches(ON_HOST, [ON_HOST | {(1, DEVICE)}, ON_HOST]) == ON_HOST


def test_a_loop_that_reads_on_the_device_is_given_a_copy_once() -> None:
    def reads(state: frozenset[object]) -> tuple[frozenset[object], frozenset[object]]:
        return state | ON_DEVICE, ON_DEVICE - state

    assert device_buffers.at_loop(ON_HOST, reads) == ON_BOTH


def test_a_loop_that_writes_on_the_device_starts_there() -> None:
    def writes(state: frozenset[object]) -> tuple[frozenset[object], frozenset[object]]:
        return ON_DEVICE, ON_DEVICE - state

    assert device_buffers.at_loop(ON_HOST, writes) == ON_DEVICE


def test_a_loop_whose_iterations_never_agree_still_ends() -> None:
    def alternates(state: frozenset[object]) -> tuple[frozenset[object], frozenset[object]]:
        return (ON_HOST if state == ON_DEVICE else ON_DEVICE), frozenset()

    assert device_buffers.at_loop(ON_HOST, alternates) in (ON_HOST, ON_DEVICE)


def test_the_other_side_is_where_a_copy_comes_from() -> None:
    assert (HOST.other, DEVICE.other) == (DEVICE, HOST)
    assert device_buffers.sides_of(ON_BOTH, 0) == {HOST, DEVICE}
