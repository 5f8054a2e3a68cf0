"""The bytes of shared memory that a kernel addresses itself, and those that its launches ask for."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mlir.kernels import BARRIER, SHARED, changed, kernel, load, parsed, store
from tests.targets.evaluation import fails
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.mlir import kernel_passes, shared_memory
from tuner.gpu.mlir.shared_memory import AllocationRequest, align, first_fit_offsets, total_bytes
from tuner.mlir.ir.reading import walk

LIMIT_BYTES = 232448
WS = "#gpu.address_space<workgroup>"
BYTES, FLOATS = f"memref<?xi8, {WS}>", f"memref<64xf32, {WS}>"
ALLOCATED = (f"%c = memref.alloc() : {SHARED} memref.store %v, %c[%i] : {SHARED}",)
VIEWS = (
    "%c0 = arith.constant 0 : index %c256 = arith.constant 256 : index",
    f"%own = gpu.dynamic_shared_memory : {BYTES}",
    f"%low = memref.view %own[%c0][] : {BYTES} to {FLOATS}",
    f"%high = memref.view %own[%c256][] : {BYTES} to {FLOATS}",
    f"memref.store %v, %low[%i] : {FLOATS} memref.store %v, %high[%i] : {FLOATS}",
)
AT_RUN_TIME = tuple(line.replace("%own[%c256]", "%own[%i]") for line in VIEWS)
SIZE = "dynamic_shared_memory_size %size"


def views_only(*body: str, launch: str = "") -> str:
    """Returns the kernel of these lines without the two buffers that others have."""
    return re.sub(r"%[ab] = memref.alloc.*", "", kernel(*body, launch=launch))


def asking(body: tuple[str, ...], size: int | None) -> str:
    """Returns a module whose launch asks for a constant, or for what the host function's argument says."""
    text = views_only(*body, launch=SIZE)
    if size is None:
        return text.replace("@host(%g: memref<256xf32>", "@host(%g: memref<256xf32>, %size: i32")
    return text.replace("%c1 =", f"%size = arith.constant {size} : i32\n    %c1 =", 1)


def rewrite(text: str, limit_bytes: int = LIMIT_BYTES) -> tuple[str, Any]:
    return changed(shared_memory.use_dynamic_shared_memory, text, limit_bytes)[1:]


def test_a_launch_that_asks_for_nothing_gets_what_the_views_need_and_allocations_after_them() -> None:
    text, (block,) = rewrite(views_only(*VIEWS))
    assert block.bytes == 512
    assert "dynamic_shared_memory_size %c512_i32" in text
    text, (block,) = rewrite(views_only(*VIEWS, *ALLOCATED))
    assert block.bytes == 512 + 1024
    assert re.search(r"memref\.view %\w+\[%c512\w*\]\[\] : .* to memref<256xf32", text)


def test_a_launch_that_asks_for_less_is_refused() -> None:
    found = "found dynamic_shared_memory_size 511, allowed at least 512 bytes"
    message = rf"^launch of k at .*: {found}, which memref\.view at line 19:.* needs$"
    with fails(Stage.RESOURCES, message):
        rewrite(asking(VIEWS, 511))


def test_a_place_that_is_not_constant_needs_a_size() -> None:
    found = "found a place that is not constant and no dynamic_shared_memory_size"
    allowed = "allowed a launch of k that says the size"
    with pytest.raises(CandidateError, match=f"^memref.view at .*: {found}, {allowed}$"):
        rewrite(views_only(*AT_RUN_TIME))
    assert rewrite(asking(AT_RUN_TIME, 1000))[1][0].bytes == 1000


def test_buffers_come_in_front_of_memory_whose_size_only_the_run_knows() -> None:
    assert "dynamic_shared_memory_size %arg1" in rewrite(asking(VIEWS, None))[0]
    text, (block,) = rewrite(asking((*VIEWS, *ALLOCATED), None))
    assert block.bytes == 1024 + 512
    added = r"%(\w+) = arith.addi %c1024_i32, %arg1 : i32\n.*\n?.*dynamic_shared_memory_size %\1"
    assert re.search(added, text)
    assert re.search(r"memref\.view %\w+\[%c1024\w*\]\[%\w+\] : .* to memref<\?xi8", text)


def test_constants_of_every_launch_are_brought_into_the_kernel() -> None:
    passed = views_only(*(line.replace("%own[%c256]", "%own[%shift]") for line in VIEWS))
    passed = passed.replace("@k(%g: memref<256xf32>", "@k(%g: memref<256xf32>, %shift: index")
    one = passed.replace("args(%g : memref<256xf32>", "args(%g : memref<256xf32>, %c256 : index")
    launch = one[one.index("    gpu.launch_func") : one.index("    return")]
    for text, expected in ((one, 1), (one.replace(launch, launch + launch.replace("%c256 :", "%c1 :")), 0)):
        assert changed(kernel_passes.propagate_constant_arguments, text)[2] == expected


APART = kernel(store("a"), store("b"), load("a"), load("b"))
REUSED = (store("a"), BARRIER, load("a"), BARRIER, store("b"), BARRIER, load("b"))
SHOWN = {shared_memory.use_dynamic_shared_memory: (APART, 4096)}


@pytest.mark.parametrize(
    ("body", "size", "name"),
    [
        ((store("a"), store("b"), BARRIER, load("a"), load("b")), 2048, "dynamic_shared_memory.mlir"),
        (REUSED, 1024, "dynamic_shared_memory_reuse.mlir"),
        ((store("a"), BARRIER, load("a"), store("b"), BARRIER, load("b")), 2048, ""),  # a barrier is missing
    ],
)
def test_buffers_become_views_of_one_block_and_share_bytes_where_barriers_allow_it(
    body: tuple[str, ...], size: int, name: str, golden: Callable[[str, str], None]
) -> None:
    text, blocks = rewrite(kernel(*body))
    assert blocks == (shared_memory.SharedBlock("k", size, 128),)
    assert f"dynamic_shared_memory_size %c{size}_i32" in text
    if name:
        golden(name, text)


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


def test_more_than_the_chip_has_is_refused_which_no_compiler_rejects() -> None:
    large = kernel(f"%c = memref.alloc() : memref<480x1024xi8, {WS}>", store("a"))
    assert rewrite(APART, 2048)[1][0].bytes == 2048
    for too_large, limit, found in ((APART, 2047, "2048"), (large, LIMIT_BYTES, r"4\d+")):
        message = rf"^shared memory of k: found {found} bytes, allowed {limit} \(at line \d+:\d+\)$"
        with fails(Stage.RESOURCES, message):
            rewrite(too_large, limit)


def test_memory_that_the_kernel_asked_for_itself_stays_in_front() -> None:
    own = f"%own = gpu.dynamic_shared_memory : {BYTES} %c0 = arith.constant 0 : index"
    byte = f"%byte = arith.constant 1 : i8 memref.store %byte, %own[%c0] : {BYTES}"
    text = kernel(own, byte, store("a"), launch="dynamic_shared_memory_size %c200")
    text = text.replace("%c1 =", "%c200 = arith.constant 200 : i32\n    %c1 =")
    text, blocks = rewrite(text)
    assert "memref.view" in text
    assert "%c256_0 = arith.constant 256 : index" in text or "%c256 = arith.constant 256 : index" in text
    assert blocks[0].bytes == 256 + 1024


def test_an_alignment_that_was_asked_for_is_kept_and_a_kernel_without_shared_memory_asks_for_none() -> None:
    aligned = f"%b = memref.alloc() {{alignment = 1024 : i64}} : {SHARED}"
    text = APART.replace(f"%b = memref.alloc() : {SHARED}", aligned)
    assert rewrite(text)[1] == (shared_memory.SharedBlock("k", 2048, 1024),)
    after, blocks = rewrite(views_only())
    assert blocks == (shared_memory.SharedBlock("k", 0, 128),)
    assert "dynamic_shared_memory" not in after


@pytest.mark.parametrize(
    ("allocation", "kind"),
    [("alloc(%i)", f"memref<?xf32, {WS}>"), ("alloc()", f"memref<4x4xf32, strided<[8, 1]>, {WS}>")],
)
def test_a_buffer_that_is_no_view_of_bytes_is_refused(allocation: str, kind: str) -> None:
    found = f"^shared memory of k: found {re.escape(kind.partition(' #')[0])} .*>"
    allowed = r"allowed a static shape in row-major order \(at line"
    with pytest.raises(CandidateError, match=f"{found}, {allowed}"):
        rewrite(kernel(f"%c = memref.{allocation} : {kind}"))


# When two buffers may share bytes: only where a barrier and finished copies prove it.
COPY = (
    "%copy = nvgpu.device_async_copy %g[%i], %a[%i], 1 : memref<256xf32> to " + SHARED,
    "%group = nvgpu.device_async_create_group %copy",
)
WAIT = "nvgpu.device_async_wait %group {numGroups = 0 : i32}"
LOOP = "%zero = arith.constant 0 : index %one = arith.constant 1 : index scf.for %n = %zero to %i step %one {"
BRANCH = "%c7 = arith.constant 7 : index %is = arith.cmpi eq, %i, %c7 : index scf.if %is {"
GLOBAL = "#gpu.address_space<global>"
PART = f"memref<128xf32, strided<[1]>, {WS}>"
SUBVIEW = f"%part = memref.subview %a[0][128][1] : {SHARED} to {PART}"
STORE_PART = f"memref.store %v, %part[%i] : {PART}"
DYNAMIC = f"memref<?xf32, {WS}>"
CAST = f"%cast = memref.cast %a : {SHARED} to {DYNAMIC}"
STORE_CAST = f"memref.store %v, %cast[%i] : {DYNAMIC}"
ALIGNED = f"%aligned = memref.assume_alignment %a, 16 : {SHARED}"
STORE_ALIGNED = f"memref.store %v, %aligned[%i] : {SHARED}"
PLAIN, OF_A = f"memref<f32, {WS}>", "%base, %at, %size, %stride = memref.extract_strided_metadata %a"
METADATA = f"{OF_A} : {SHARED} -> {PLAIN}, index, index, index"
STORE_BASE = f"memref.store %v, %base[] : {PLAIN}"
ESCAPE = "%address = memref.extract_aligned_pointer_as_index %a : " + SHARED + " -> index"
SEPARATE = {
    "a barrier between last and first use": (store("a"), load("a"), BARRIER, store("b"), load("b")),
    "b before a as well": (store("b"), load("b"), BARRIER, store("a"), load("a")),
    "uses in a loop, a barrier behind it": (LOOP, store("a"), BARRIER, load("a"), "}", BARRIER, store("b")),
    "a barrier that names shared memory": (store("a"), f"{BARRIER} memfence [{WS}]", store("b")),
    "a copy that was waited for": (*COPY, WAIT, BARRIER, load("a"), BARRIER, store("b")),
    "copies and groups in a loop, all waited for behind it": (
        *(LOOP, *COPY, "}"),
        *("%none = nvgpu.device_async_create_group {}", "nvgpu.device_async_wait %none", BARRIER, store("b")),
    ),
    "a deallocation at the end": (store("a"), BARRIER, store("b"), f"memref.dealloc %a : {SHARED}"),
    "a view whose uses are over": (SUBVIEW, STORE_PART, BARRIER, store("b")),
    "an alignment whose uses are over": (ALIGNED, STORE_ALIGNED, BARRIER, store("b")),
    "metadata whose uses are over": (METADATA, STORE_BASE, BARRIER, store("b")),
}
TOGETHER = {
    "no barrier": (store("a"), load("a"), store("b"), load("b")),
    "the barrier comes before the last use": (store("a"), BARRIER, load("a"), store("b")),
    "the barrier comes after the first use": (store("a"), store("b"), BARRIER, load("b")),
    "used in turn": (store("a"), BARRIER, store("b"), BARRIER, load("a")),
    "the barrier is in a loop that may not run": (store("a"), LOOP, BARRIER, "}", store("b")),
    "the barrier is in a branch": (store("a"), BRANCH, BARRIER, "}", store("b")),
    "both in one loop": (LOOP, store("a"), BARRIER, store("b"), BARRIER, "}"),
    "a barrier for no memory": (store("a"), "gpu.barrier memfence []", store("b")),
    "a barrier for global memory": (store("a"), f"{BARRIER} memfence [{GLOBAL}]", store("b")),
    "a copy that nobody waited for": (*COPY, BARRIER, store("b")),
    "a wait that lets one group go on": (*COPY, WAIT.replace("= 0", "= 1"), BARRIER, store("b")),
    "a wait behind the barrier": (*COPY, BARRIER, WAIT, store("b")),
    "a wait in a loop": (*COPY, LOOP, WAIT, "}", BARRIER, store("b")),
    "a copy that is in no group yet": (
        *("%before = nvgpu.device_async_create_group {}", COPY[0], WAIT.replace("%group", "%before")),
        *(BARRIER, store("b"), COPY[1]),
    ),
    "a view used later": (SUBVIEW, store("a"), BARRIER, store("b"), STORE_PART),
    "a view of a view used later": (CAST, store("a"), BARRIER, store("b"), STORE_CAST),
    "an alignment used later": (ALIGNED, store("a"), BARRIER, store("b"), STORE_ALIGNED),
    "metadata used later": (METADATA, store("a"), BARRIER, store("b"), STORE_BASE),
    "an address that escapes": (store("a"), ESCAPE, BARRIER, store("b")),
    "control flow between blocks": (store("a"), BARRIER, "cf.br ^next", "^next:", BARRIER, store("b")),
}


@pytest.mark.parametrize("case", [*SEPARATE, *TOGETHER])
def test_buffers_share_bytes_only_where_nothing_uses_both(case: str) -> None:
    with parsed(kernel(*(SEPARATE | TOGETHER)[case])) as module:
        function = walk(module, "gpu.func")[0]
        of = shared_memory.SharedMemoryLiveness(function)
        a, b = (of.lifetime(op.results[0]) for op in walk(function, "memref.alloc"))
        assert a.overlaps(b) == b.overlaps(a) == (case in TOGETHER)


REQUEST = st.builds(AllocationRequest, st.integers(0, 5000), st.sampled_from((1, 16, 128, 1024)))
REQUESTS = st.lists(REQUEST, max_size=7).map(tuple)
PAIRS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)))


@given(REQUESTS, PAIRS, st.integers(0, 3000))
def test_buffers_that_live_together_share_no_byte(
    requests: tuple[AllocationRequest, ...], pairs: set[tuple[int, int]], start: int
) -> None:
    def overlap(one: int, other: int) -> bool:
        return (one, other) in pairs or (other, one) in pairs

    offsets = first_fit_offsets(requests, overlap, start)
    for one, request in enumerate(requests):
        assert offsets[one] >= start
        assert offsets[one] % request.alignment_bytes == 0
        for other in range(one):
            apart = offsets[other] + requests[other].bytes <= offsets[one]
            apart = apart or offsets[one] + request.bytes <= offsets[other]
            assert apart or not overlap(one, other)


@given(REQUESTS)
def test_buffers_take_the_largest_size_or_at_most_all_padded(requests: tuple[AllocationRequest, ...]) -> None:
    offsets = first_fit_offsets(requests, lambda one, other: False)
    assert set(offsets) <= {0}
    assert total_bytes(requests, offsets) == max((request.bytes for request in requests), default=0)
    offsets = first_fit_offsets(requests, lambda one, other: True)
    padded = sum(request.bytes + request.alignment_bytes - 1 for request in requests)
    assert sum(request.bytes for request in requests) <= total_bytes(requests, offsets) <= padded


def test_a_buffer_fills_a_gap() -> None:
    # 0 and 1 conflict with 2, not with one another; 3 conflicts with 0 only and fits next to it
    pairs = {(0, 2), (1, 2), (0, 3)}
    requests = tuple(AllocationRequest(size, 128) for size in (1024, 512, 2048, 100))
    offsets = first_fit_offsets(requests, lambda one, other: (min(one, other), max(one, other)) in pairs)
    assert offsets == (2048, 2048, 0, 0)
    assert [align(offset, 128) for offset in (0, 1, 128, 129)] == [0, 128, 128, 256]
