from collections.abc import Callable
from typing import Any

import pytest

from tests.mlir.kernels import BARRIER, SHARED, kernel, load, parsed, store
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

dynamic_shared_memory = pytest.importorskip("tuner.mlir.gpu.shared_memory")

REUSED = (store("a"), BARRIER, load("a"), BARRIER, store("b"), BARRIER, load("b"))
LIMIT_BYTES = 232448
WS = "#gpu.address_space<workgroup>"


def rewrite(text: str, limit_bytes: int = LIMIT_BYTES) -> tuple[str, Any]:
    with parsed(text) as module:
        blocks = dynamic_shared_memory.use_dynamic_shared_memory(module, limit_bytes)
        assert module.operation.verify()
        return str(module), blocks


def test_buffers_become_views_of_one_block(golden: Callable[[str, str], None]) -> None:
    text, blocks = rewrite(kernel(store("a"), store("b"), BARRIER, load("a"), load("b")))
    assert blocks == (dynamic_shared_memory.SharedBlock("k", 2048, 128),)
    golden("dynamic_shared_memory.mlir", text)


def test_buffers_used_one_after_the_other_share_bytes(golden: Callable[[str, str], None]) -> None:
    text, blocks = rewrite(kernel(*REUSED))
    assert blocks == (dynamic_shared_memory.SharedBlock("k", 1024, 128),)
    assert "dynamic_shared_memory_size %c1024_i32" in text
    golden("dynamic_shared_memory_reuse.mlir", text)


def test_without_the_barrier_they_do_not(golden: Callable[[str, str], None]) -> None:
    body = (store("a"), BARRIER, load("a"), store("b"), BARRIER, load("b"))
    _, blocks = rewrite(kernel(*body))
    assert blocks == (dynamic_shared_memory.SharedBlock("k", 2048, 128),)


def test_attributions_are_buffers_as_well(golden: Callable[[str, str], None]) -> None:
    shared, own = f"memref<3xf16, {WS}>", "memref<4xf32, #gpu.address_space<private>>"
    uses = (
        "%i0 = arith.constant 0 : index %one = arith.constant 1.0 : f32 %half = arith.constant 1.0 : f16",
        f"memref.store %half, %w[%i0] : {shared}",
        f"memref.store %one, %p[%i0] : {own}",
    )
    attributions = f"workgroup(%w : {shared}) private(%p : {own}) kernel {{"
    text, blocks = rewrite(kernel(*uses, store("a")).replace("kernel {", attributions))
    assert "workgroup(" not in text
    assert "private(%" in text  # every thread's own: upstream lowers it to local memory
    assert blocks[0].bytes == 1024 + 6  # b, which is never used, lies upon the others
    golden("dynamic_shared_memory_attributions.mlir", text)


def test_more_than_the_chip_has_is_refused() -> None:
    text = kernel(store("a"), store("b"), load("a"), load("b"))
    assert rewrite(text, 2048)[1][0].bytes == 2048
    with pytest.raises(
        CandidateError, match=r"^shared memory of k: found 2048 bytes, allowed 2047 \(at line \d+:\d+\)$"
    ) as failure:
        rewrite(text, 2047)
    assert failure.value.stage is Stage.RESOURCES


def test_480_kb_which_no_compiler_rejects_are_refused() -> None:
    text = kernel(f"%c = memref.alloc() : memref<480x1024xi8, {WS}>", store("a"))
    with pytest.raises(
        CandidateError, match=r"^shared memory of k: found 4\d+ bytes, allowed 232448 \(at line \d+:\d+\)$"
    ):
        rewrite(text)


def test_memory_that_the_kernel_asked_for_itself_stays_in_front() -> None:
    own = (
        f"%own = gpu.dynamic_shared_memory : memref<?xi8, {WS}>",
        "%c0 = arith.constant 0 : index %byte = arith.constant 1 : i8",
        f"memref.store %byte, %own[%c0] : memref<?xi8, {WS}>",
        store("a"),
    )
    launch = "dynamic_shared_memory_size %c200"
    text = kernel(*own, launch=launch).replace("%c1 =", "%c200 = arith.constant 200 : i32\n    %c1 =")
    text, blocks = rewrite(text)
    assert "memref.view" in text
    assert "%c256_0 = arith.constant 256 : index" in text or "%c256 = arith.constant 256 : index" in text
    assert blocks[0].bytes == 256 + 1024


def test_a_larger_alignment_that_was_asked_for_is_kept() -> None:
    text = kernel(store("a"), store("b"), load("a"), load("b")).replace(
        f"%b = memref.alloc() : {SHARED}", f"%b = memref.alloc() {{alignment = 1024 : i64}} : {SHARED}"
    )
    _, blocks = rewrite(text)
    assert blocks == (dynamic_shared_memory.SharedBlock("k", 2048, 1024),)


def test_a_kernel_without_shared_memory_asks_for_none() -> None:
    text = kernel().replace(
        f"      %a = memref.alloc() : {SHARED}\n      %b = memref.alloc() : {SHARED}\n", ""
    )
    after, blocks = rewrite(text)
    assert blocks == (dynamic_shared_memory.SharedBlock("k", 0, 128),)
    assert "dynamic_shared_memory" not in after


@pytest.mark.parametrize(
    ("allocation", "found"),
    [
        (f"%c = memref.alloc(%i) : memref<?xf32, {WS}>", r"memref<\?xf32, .*>"),
        (
            f"%c = memref.alloc() : memref<4x4xf32, strided<[8, 1]>, {WS}>",
            r"memref<4x4xf32, strided<\[8, 1\]>, .*>",
        ),
    ],
)
def test_a_buffer_that_is_no_view_of_bytes_is_refused(allocation: str, found: str) -> None:
    with pytest.raises(
        CandidateError,
        match=rf"^shared memory of k: found {found}, allowed a static shape in row-major order \(at line",
    ):
        rewrite(kernel(allocation))
