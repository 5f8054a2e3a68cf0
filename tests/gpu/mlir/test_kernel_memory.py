"""Memory in kernels: copies shared out among threads, shared memory of launches, temporaries of threads."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.mlir.gpu_matmul import gpu_payload
from tests.mlir.kernels import changed, counts, parsed
from tests.support.fuzzing.program_check import SIMULATOR
from tests.support.program_compiler import compiler_of
from tests.texts import filled, text_beside
from tuner.core.compiled_code import buffers_of
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import chip_of
from tuner.core.matmul import Matmul
from tuner.gpu.mlir import kernel_copies, kernel_memory, lowering, private_memory
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.ptxsim.target.evaluator import simulated_launches
from tuner.gpu.run.device_function import DeviceFunction
from tuner.mlir import transform

TILE = "memref<16x16xf32, #gpu.address_space<workgroup>>"
COPY = f"memref.copy %a, %t : memref<16x16xf32> to {TILE}"
ROW = "memref<1x16xf32, strided<[16, 1], offset: ?>>"
SHARED_ROW = "memref<1x16xf32, strided<[16, 1], offset: ?>, #gpu.address_space<workgroup>>"
SPACES = ("#gpu.address_space<workgroup>", "#gpu.memory_space<workgroup>", "3 : i64")
SCRIPT, BY_THREADS = (text_beside(__file__, name) for name in ("SCRIPT", "BY_THREADS"))


def kernel(*body: str) -> str:
    return filled(__file__, "KERNEL", tile=TILE, lines="\n    ".join(body))


def rows(index: str) -> tuple[str, ...]:
    part = f"[{index}, 0] [1, 16] [1, 1]"
    return (
        f"%r = memref.subview %a{part} : memref<16x16xf32> to {ROW}",
        f"%s = memref.subview %t{part} : {TILE} to {SHARED_ROW}",
        *("gpu.barrier", f"memref.copy %r, %s : {ROW} to {SHARED_ROW}", "gpu.barrier"),
    )


BETWEEN = ("gpu.barrier", COPY, "gpu.barrier")
PRIVATE = (
    "%p = memref.alloc() : memref<16x16xf32>",
    *("gpu.barrier", f"memref.copy %t, %p : {TILE} to memref<16x16xf32>", "gpu.barrier"),
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        *((BETWEEN, 1), (BETWEEN[:-1], 0), (BETWEEN[1:], 0), ((COPY,), 0), (rows("%n"), 1)),
        (rows("%i"), 0),  # each thread copies a row of its own
        (PRIVATE, 0),  # each thread copies the whole into memory of its own
    ],
)
def test_only_what_all_threads_do_together_is_shared_out(
    body: tuple[str, ...], expected: int, golden: Callable[[str, str], None]
) -> None:
    _, text, shared = changed(kernel_copies.expand_copies, kernel(*body))
    assert "memref.copy" not in text
    assert shared == expected
    if body == BETWEEN:
        golden("copies_in_kernels.mlir", text)


def checked(promoted: str, more: str = "") -> Any:
    """Compares a user's strategy for a small matmul on the simulator; returns its shared bytes.

    It is of upstream's ops: blocks of 16 x 16 threads, A and B promoted.
    """
    problem, text = Matmul(32, 48, 32), SCRIPT.replace("PROMOTED", promoted).replace("MORE", more)
    with parsed(gpu_payload(problem)) as module:
        transform.apply_script(module, transform.parse(text, "script"))
        program = lowering.lower_to_program(module, chip_of("sm_90"), buffers_of(problem))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 4, shape).astype(np.float32) for shape in ((32, 32), (32, 48)))
    c = np.zeros((32, 48), np.float32)
    names = [buffer.name for buffer in program.buffers]
    simulated_launches(program, dict(zip(names, (a, b, c), strict=True)), {})
    np.testing.assert_array_equal(c, a @ b)
    return program.launches[0].dynamic_shared_bytes


@pytest.mark.parametrize("full", ["", ", use_full_tiles_by_default"])
def test_operands_that_a_script_promotes_to_a_mapping(full: str) -> None:
    assert checked(f"mapping = [#gpu.memory_space<workgroup>]{full}") == 2 * 16 * 16 * 4


@pytest.mark.drawn(2)
@pytest.mark.parametrize("space", SPACES)
def test_operands_that_a_script_promotes_and_copies_by_its_threads(space: str) -> None:
    assert checked(f"memory_space = {space}", BY_THREADS) == 2 * 16 * 16 * 4


@pytest.mark.slow
def test_copies_that_all_threads_do_without_a_barrier_are_found_to_race() -> None:
    with pytest.raises(CandidateError, match="race in shared memory"):
        checked("memory_space = 3 : i64")


SHARED = "memref<16xf32, #gpu.address_space<workgroup>>"
OWN = "memref<16xf32, #gpu.address_space<private>>"
STORE = "memref.store %f, %t[%i] : {0}"


def program(launches: tuple[str, ...], outside: str = "", attributions: str = "") -> str:
    blocks = "blocks(%a, %b, %c) in (%u = %i, %v = %i, %w = %i)"
    grid = f"{blocks} threads(%d, %e, %h) in (%x = %i, %y = %i, %z = %i) {attributions}"
    made = "\n".join(f"gpu.launch {grid} {{ {body} gpu.terminator }}" for body in launches)
    return f"func.func @main(%i: index, %f: f32) {{ {outside} {made} return }}"


def declared(text: str) -> str:
    return changed(kernel_memory.declare_launch_memory, text)[1]


@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_shared_memory_of_a_launch_becomes_an_attribution(kind: str) -> None:
    text = declared(program((f"%t = memref.{kind}() : {SHARED} {STORE.format(SHARED)}",)))
    assert f"workgroup(%arg14 : {SHARED})" in text
    assert f"memref.{kind}" not in text
    aligned = f"memref.{kind}() {{alignment = 1024 : i64}}"  # which an attribution cannot keep
    assert aligned in declared(program((f"%t = {aligned} : {SHARED} {STORE.format(SHARED)}",)))


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
    before, first, second, third = declared(program(bodies, outside)).split("gpu.launch")
    assert "memref." not in before
    assert "workgroup(" in first
    assert "workgroup(" in second
    assert "memref.subview" in second
    assert "memref.alloca()" in third


def test_deallocations_go_with_the_memory_which_the_host_may_not_use() -> None:
    outside = f"%t = memref.alloc() : {SHARED}"
    text = program((STORE.format(SHARED),), outside).replace("return", f"memref.dealloc %t : {SHARED} return")
    assert "memref.dealloc" not in declared(text)
    found = "found a use by memref.store outside of kernels, allowed uses in kernels"
    with pytest.raises(CandidateError, match=f"^memref.alloc at .*: {found}$"):
        declared(program((), f"{outside} {STORE.format(SHARED)}"))


# Temporaries that threads allocate in kernels: compiled and run, or refused. Each thread copies its row, and
# takes the element of it that %n says, for which LLVM needs the copy; the same, in each of four iterations.
FORALL, LOOP, PRIVATE_KERNEL = (text_beside(__file__, name) for name in ("FORALL", "LOOP", "PRIVATE_KERNEL"))


def ran(text: str, *arguments: Any) -> Any:
    """Runs a program on the simulator, which must find nothing wrong."""
    device = SimulatedDevice("sm_90")
    program = DeviceFunction(compiler_of(SIMULATOR).compile(text, None, None).code, device)
    result = program(*arguments)
    program.close()
    assert device.reports == ()
    return result


def test_a_temporary_of_each_thread_is_its_own() -> None:
    rng, lanes = np.random.default_rng(0), np.arange(64)
    x, n = rng.standard_normal((64, 16)).astype(np.float32), rng.integers(0, 16, 64, np.int32)
    for text, expected in (
        (FORALL, x[lanes, n]),
        (re.sub(r"memref\.dealloc .*", "", FORALL), x[lanes, n]),
        (LOOP, x[lanes, n] + x[lanes, 8 + n % 4]),  # of each iteration one place
    ):
        y = np.zeros(64, np.float32)
        ran(text, x, n, y)
        np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(ran(text_beside(__file__, "TENSORS"), x, n), 2 * x[lanes, n])


ONE_LAUNCH = f"%t = memref.alloc() : {SHARED} {STORE.format(SHARED)}"
SHOWN = {
    private_memory.use_private_memory: (PRIVATE_KERNEL.format(text_beside(__file__, "FREED_IN_A_LOOP")),),
    kernel_copies.expand_copies: (kernel(*BETWEEN),),
    kernel_memory.declare_launch_memory: (program((ONE_LAUNCH,)),),
}


def rewritten(body: str) -> str:
    return changed(private_memory.use_private_memory, PRIVATE_KERNEL.format(body))[1]


def test_allocations_become_allocas_at_the_start_and_nothing_is_freed() -> None:
    text = rewritten(text_beside(__file__, "CHOSEN"))
    assert counts(text, "memref.alloca()", "memref.alloc()", "memref.dealloc") == [2, 0, 0]
    aligned = rewritten("%t = memref.alloc() {alignment = 32 : i64} : memref<4xf32>")
    assert "memref.alloca() {alignment = 32 : i64} : memref<4xf32>" in aligned
    assert "memref.alloca() : memref<131072xf32>" in rewritten("%t = memref.alloc() : memref<131072xf32>")


@pytest.mark.parametrize("body", ["FREED_IN_A_LOOP", "ALLOCA_IN_A_LOOP"])
def test_the_alloca_of_a_temporary_in_a_loop_is_outside_of_it(body: str) -> None:
    text = rewritten(text_beside(__file__, body))
    assert text.index("memref.alloca()") < text.index("scf.for")


@pytest.mark.parametrize("kind", ["alloc", "alloca"])
def test_a_kernel_may_begin_with_its_allocations(kind: str) -> None:
    first = "%c0 = arith.constant 0 : index"
    made = f"%t = memref.{kind}() : memref<4xf32> %u = memref.{kind}() : memref<4xf32>"
    text = PRIVATE_KERNEL.format("").replace(first, f"{made} {first}")
    assert changed(private_memory.use_private_memory, text)[1].count("memref.alloca()") == 2


def test_shared_memory_is_not_a_threads_own() -> None:
    kind = "memref<4xf32, #gpu.address_space<workgroup>>"
    text = rewritten(f"%t = memref.alloc() : {kind}\n memref.dealloc %t : {kind}")
    assert "memref.alloc()" in text
    assert "memref.dealloc" in text


COMPILE, RESOURCES = Stage.COMPILE, Stage.RESOURCES
HALVES = "%t = memref.alloc() : memref<65536xf32> %u = memref.alloc() : memref<65537xf32>"
FORWARDED = r"memory of one iteration of a loop that scf\.yield forwards, allowed loads, stores and views"
OTHER = r"memref\.dealloc of other memory, allowed what it allocated itself"
DYNAMIC = r"memref<\?xf32> allocated by each thread, allowed a static shape"


@pytest.mark.parametrize(
    ("body", "stage", "found"),
    [
        ("%t = memref.alloc(%n) : memref<?xf32>", COMPILE, DYNAMIC),
        (HALVES, RESOURCES, "524292 bytes allocated by each thread, allowed 524288"),
        (text_beside(__file__, "HANDED_ON"), COMPILE, FORWARDED),
        ("memref.dealloc %g : memref<?xf32>", COMPILE, OTHER),
    ],
)
def test_what_has_no_place_is_refused_in_one_line(body: str, stage: Stage, found: str) -> None:
    with pytest.raises(CandidateError, match=rf"^kernel k: found {found} \(at line \d+:\d+\)$") as failure:
        rewritten(body)
    assert failure.value.stage is stage
