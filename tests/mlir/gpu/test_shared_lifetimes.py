"""When two buffers may share bytes: only where a barrier and finished copies prove it."""

import pytest

from tests.mlir.kernels import BARRIER, SHARED, kernel, load, parsed, store

pytestmark = pytest.mark.mlir

shared_lifetimes = pytest.importorskip("tuner.mlir.gpu.shared_memory")

COPY = (
    "%copy = nvgpu.device_async_copy %g[%i], %a[%i], 1 : memref<256xf32> to " + SHARED,
    "%group = nvgpu.device_async_create_group %copy",
)
WAIT = "nvgpu.device_async_wait %group {numGroups = 0 : i32}"
LOOP = "%zero = arith.constant 0 : index %one = arith.constant 1 : index scf.for %n = %zero to %i step %one {"
BRANCH = "%c7 = arith.constant 7 : index %is = arith.cmpi eq, %i, %c7 : index scf.if %is {"
PART = "memref<128xf32, strided<[1]>, #gpu.address_space<workgroup>>"
SUBVIEW = f"%part = memref.subview %a[0][128][1] : {SHARED} to {PART}"
STORE_PART = f"memref.store %v, %part[%i] : {PART}"
CAST = f"%cast = memref.cast %a : {SHARED} to memref<?xf32, #gpu.address_space<workgroup>>"
ALIGNED = f"%aligned = memref.assume_alignment %a, 16 : {SHARED}"
STORE_ALIGNED = f"memref.store %v, %aligned[%i] : {SHARED}"
PLAIN = "memref<f32, #gpu.address_space<workgroup>>"
METADATA = (
    "%base, %at, %size, %stride = memref.extract_strided_metadata %a :"
    f" {SHARED} -> {PLAIN}, index, index, index"
)
STORE_BASE = f"memref.store %v, %base[] : {PLAIN}"
ESCAPE = "%address = memref.extract_aligned_pointer_as_index %a : " + SHARED + " -> index"

SEPARATE = {
    "a barrier between last and first use": (store("a"), load("a"), BARRIER, store("b"), load("b")),
    "b before a as well": (store("b"), load("b"), BARRIER, store("a"), load("a")),
    "uses in a loop, a barrier behind it": (LOOP, store("a"), BARRIER, load("a"), "}", BARRIER, store("b")),
    "a barrier that names shared memory": (
        store("a"),
        "gpu.barrier memfence [#gpu.address_space<workgroup>]",
        store("b"),
    ),
    "a copy that was waited for": (*COPY, WAIT, BARRIER, load("a"), BARRIER, store("b")),
    "copies and groups in a loop, all waited for behind it": (
        *(LOOP, *COPY, "}"),
        "%none = nvgpu.device_async_create_group {}",
        "nvgpu.device_async_wait %none",
        *(BARRIER, store("b")),
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
    "a barrier for global memory": (
        store("a"),
        "gpu.barrier memfence [#gpu.address_space<global>]",
        store("b"),
    ),
    "a copy that nobody waited for": (*COPY, BARRIER, store("b")),
    "a wait that lets one group go on": (*COPY, WAIT.replace("= 0", "= 1"), BARRIER, store("b")),
    "a wait behind the barrier": (*COPY, BARRIER, WAIT, store("b")),
    "a wait in a loop": (*COPY, LOOP, WAIT, "}", BARRIER, store("b")),
    "a copy that is in no group yet": (
        "%before = nvgpu.device_async_create_group {}",
        COPY[0],
        WAIT.replace("%group", "%before"),
        *(BARRIER, store("b"), COPY[1]),
    ),
    "a view used later": (SUBVIEW, store("a"), BARRIER, store("b"), STORE_PART),
    "a view of a view used later": (
        *(CAST, store("a"), BARRIER, store("b")),
        "memref.store %v, %cast[%i] : memref<?xf32, #gpu.address_space<workgroup>>",
    ),
    "an alignment used later": (ALIGNED, store("a"), BARRIER, store("b"), STORE_ALIGNED),
    "metadata used later": (METADATA, store("a"), BARRIER, store("b"), STORE_BASE),
    "an address that escapes": (store("a"), ESCAPE, BARRIER, store("b")),
    "control flow between blocks": (store("a"), BARRIER, "cf.br ^next", "^next:", BARRIER, store("b")),
}


def overlap(*body: str) -> bool:
    with parsed(kernel(*body)) as module:
        function = shared_lifetimes.walk(module, "gpu.func")[0]
        of = shared_lifetimes.SharedMemoryLiveness(function)
        a, b = (of.lifetime(op.results[0]) for op in shared_lifetimes.walk(function, "memref.alloc"))
        assert a.overlaps(b) == b.overlaps(a)
        return bool(a.overlaps(b))


@pytest.mark.parametrize("case", SEPARATE)
def test_buffers_may_share_bytes_with(case: str) -> None:
    assert not overlap(*SEPARATE[case])


@pytest.mark.parametrize("case", TOGETHER)
def test_buffers_may_not_share_bytes_with(case: str) -> None:
    assert overlap(*TOGETHER[case])
