"""memref.copy in kernels: shared out among the threads of a block, or each thread's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.mlir.gpu_matmul import gpu_payload
from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import buffers_of
from tuner.core.problem import Matmul
from tuner.mlir import transform
from tuner.mlir.gpu import kernel_memory, lowering
from tuner.targets.gpu.simulator import simulated_launches

pytestmark = pytest.mark.mlir

TILE = "memref<16x16xf32, #gpu.address_space<workgroup>>"
COPY = f"memref.copy %a, %t : memref<16x16xf32> to {TILE}"
ROW = "memref<1x16xf32, strided<[16, 1], offset: ?>>"
SHARED_ROW = "memref<1x16xf32, strided<[16, 1], offset: ?>, #gpu.address_space<workgroup>>"
SCRIPT, BY_THREADS = (text_beside(__file__, name) for name in ("SCRIPT", "BY_THREADS"))


def kernel(*body: str) -> str:
    lines = "\n    ".join(body)
    return f"""gpu.module @m {{
  gpu.func @k(%a: memref<16x16xf32>, %n: index) kernel {{
    %i = gpu.thread_id x
    %t = memref.alloc() : {TILE}
    {lines}
    gpu.return
  }}
}}
"""


def rows(index: str) -> tuple[str, ...]:
    """Returns a copy, between barriers, of the row that an index gives."""
    part = f"[{index}, 0] [1, 16] [1, 1]"
    return (
        f"%r = memref.subview %a{part} : memref<16x16xf32> to {ROW}",
        f"%s = memref.subview %t{part} : {TILE} to {SHARED_ROW}",
        *("gpu.barrier", f"memref.copy %r, %s : {ROW} to {SHARED_ROW}", "gpu.barrier"),
    )


def expanded(text: str) -> tuple[str, int]:
    with parsed(text) as module:
        shared = kernel_memory.expand_copies(module)
        assert module.operation.verify()
        assert "memref.copy" not in str(module)
        return str(module), shared


def test_a_copy_between_barriers_is_shared_out(golden: Callable[[str, str], None]) -> None:
    text, shared = expanded(kernel("gpu.barrier", COPY, "gpu.barrier"))
    assert shared == 1
    golden("copies_in_kernels.mlir", text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (("gpu.barrier", COPY), 0),
        ((COPY, "gpu.barrier"), 0),
        ((COPY,), 0),
        (rows("%n"), 1),
        (rows("%i"), 0),  # each thread copies a row of its own
    ],
)
def test_only_what_all_threads_do_together_is_shared_out(body: tuple[str, ...], expected: int) -> None:
    assert expanded(kernel(*body))[1] == expected


def script(promoted: str, more: str = "") -> str:
    """Returns a user's strategy of upstream's ops: blocks of 16 x 16 threads, A and B promoted."""
    return SCRIPT.replace("PROMOTED", promoted).replace("MORE", more)


def checked(text: str) -> Any:
    """Compiles the strategy for a small matmul and compares on the simulator; returns its shared bytes."""
    problem = Matmul(32, 48, 32)
    with parsed(""):
        module = transform.parse(gpu_payload(problem), "payload")
        transform.apply_script(module, transform.parse(text, "script"))
        program = lowering.lower_to_program(module, chip_of("sm_90"), buffers_of(problem))
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 4, (32, 32)).astype(np.float32)
    b = rng.integers(-4, 4, (32, 48)).astype(np.float32)
    c = np.zeros((32, 48), np.float32)
    names = [buffer.name for buffer in program.buffers]
    simulated_launches(program, dict(zip(names, (a, b, c), strict=True)), {})
    np.testing.assert_array_equal(c, a @ b)
    return program.launches[0].dynamic_shared_bytes


@pytest.mark.parametrize("space", ["#gpu.memory_space<workgroup>"])
@pytest.mark.parametrize("full", ["", ", use_full_tiles_by_default"])
def test_operands_that_a_script_promotes_to_a_mapping(space: str, full: str) -> None:
    assert checked(script(f"mapping = [{space}]{full}")) == 2 * 16 * 16 * 4


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "space", ["#gpu.address_space<workgroup>", "#gpu.memory_space<workgroup>", "3 : i64"]
)
def test_operands_that_a_script_promotes_and_copies_by_its_threads(space: str) -> None:
    assert checked(script(f"memory_space = {space}", BY_THREADS)) == 2 * 16 * 16 * 4


@pytest.mark.slow
def test_copies_that_all_threads_do_without_a_barrier_are_found_to_race() -> None:
    with pytest.raises(CandidateError, match="race in shared memory"):
        checked(script("memory_space = 3 : i64"))


SHARED = "memref<16xf32, #gpu.address_space<workgroup>>"
OWN = "memref<16xf32, #gpu.address_space<private>>"
STORE = "memref.store %f, %t[%i] : {0}"


def program(launches: tuple[str, ...], outside: str = "", attributions: str = "") -> str:
    threads = (
        "blocks(%a, %b, %c) in (%u = %i, %v = %i, %w = %i) threads(%d, %e, %h) in (%x = %i, %y = %i, %z = %i)"
    )
    made = "\n".join(f"gpu.launch {threads} {attributions} {{ {body} gpu.terminator }}" for body in launches)
    return f"func.func @main(%i: index, %f: f32) {{ {outside} {made} return }}"


def declared(text: str) -> str:
    with parsed(text) as module:
        kernel_memory.declare_launch_memory(module)
        assert module.operation.verify()
        return str(module)


@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_shared_memory_of_a_launch_becomes_an_attribution(kind: str) -> None:
    body = f"%t = memref.{kind}() : {SHARED} {STORE.format(SHARED)}"
    text = declared(program((body,)))
    assert f"workgroup(%arg14 : {SHARED})" in text
    assert f"memref.{kind}" not in text


def test_private_attributions_make_package_for_shared_ones() -> None:
    body = f"%t = memref.alloc() : {SHARED} {STORE.format(SHARED)} {STORE.format(OWN).replace('%t', '%p')}"
    text = declared(program((body,), attributions=f"workgroup(%s : {SHARED}) private(%p : {OWN})"))
    assert f"workgroup(%arg14 : {SHARED}, %arg15 : {SHARED})" in text
    assert f"memref.alloca() : {OWN}" in text
    assert "private(" not in text


def test_memory_that_the_host_allocates_moves_into_each_launch_that_uses_it() -> None:
    half = "memref<8xf32, strided<[1]>, #gpu.address_space<workgroup>>"
    view = f"memref.subview %t[0] [8] [1] : {SHARED} to {half}"
    outside = f"%t = memref.alloc() : {SHARED} %part = {view} %o = memref.alloc() : {OWN}"
    part = f"memref.store %f, %part[%i] : {half}"
    bodies = (STORE.format(SHARED), part, STORE.format(OWN).replace("%t", "%o"))
    text = declared(program(bodies, outside))
    before, first, second, third = text.split("gpu.launch")
    assert "memref." not in before
    assert "workgroup(" in first
    assert "workgroup(" in second
    assert "memref.subview" in second
    assert "memref.alloca()" in third


def test_deallocations_go_with_the_memory() -> None:
    outside = f"%t = memref.alloc() : {SHARED}"
    text = program((STORE.format(SHARED),), outside).replace("return", f"memref.dealloc %t : {SHARED} return")
    assert "memref.dealloc" not in declared(text)


def test_memory_of_kernels_that_the_host_uses_is_refused() -> None:
    outside = f"%t = memref.alloc() : {SHARED} {STORE.format(SHARED)}"
    found = "found a use by memref.store outside of kernels, allowed uses in kernels"
    with pytest.raises(CandidateError, match=f"^memref.alloc at .*: {found}$"):
        declared(program((), outside))


def test_an_alignment_that_an_attribution_cannot_keep_stays_with_the_allocation() -> None:
    body = f"%t = memref.alloc() {{alignment = 1024 : i64}} : {SHARED} {STORE.format(SHARED)}"
    assert "memref.alloc() {alignment = 1024 : i64}" in declared(program((body,)))
