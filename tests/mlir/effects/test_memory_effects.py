"""What operations and kernels read and write, and what kernels overwrite whole."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import filled, text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.effects import aliases, memory_effects
from tuner.mlir.ir.reading import walk

M = "memref<4x4xf32>"
MODULE = text_beside(__file__, "MODULE")
PARALLEL = "scf.parallel (%j) = (%i) to (%i) step (%i)"
LAUNCH = f"gpu.launch_func @m::@k blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%a : {M})"


ADDRESS = "%r = memref.extract_aligned_pointer_as_index %a"
READS, WRITES, BOTH, NEITHER = (True, False), (False, True), (True, True), (False, False)
A_READ, A_WRITTEN, A_BOTH = ("%arg0", READS), ("%arg0", WRITES), ("%arg0", BOTH)
B_READ, B_BOTH = ("%arg1", READS), ("%arg1", BOTH)


@contextmanager
def block_of(body: str) -> Iterator[tuple[Any, Any]]:
    with parsed(MODULE.replace("BODY", body)) as module:
        function = module.body.operations[1].operation
        yield function, function.regions[0].blocks[0]


def accesses(body: str) -> list[tuple[str, tuple[bool, ...]]]:
    with block_of(body) as (_, block):
        found = memory_effects.host_effects(block.operations[0].operation)
        return [(access.value.get_name(), tuple(access.effect)[:2]) for access in found]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"%r = memref.load %a[%i, %i] : {M}", [A_READ]),
        (f"memref.store %x, %a[%i, %i] : {M}", [A_WRITTEN]),
        (f"linalg.fill ins(%x : f32) outs(%a : {M})", [A_WRITTEN]),
        (f"linalg.add ins(%b, %b : {M}, {M}) outs(%a : {M})", [B_READ, B_READ, A_BOTH]),
        (f"linalg.transpose ins(%b : {M}) outs(%a : {M}) permutation = [1, 0]", [B_BOTH, A_BOTH]),
        (text_beside(__file__, "GENERIC"), [A_BOTH, B_BOTH]),
        (f"memref.copy %b, %a : {M} to {M}", [B_READ, A_WRITTEN]),
        (f"func.call @other(%a) : ({M}) -> ()", [A_BOTH]),
        (f"%r = memref.dim %a, %i : {M}", []),
        (f"%r = memref.cast %a : {M} to memref<?x?xf32>", []),
        (f"memref.dealloc %a : {M}", []),
        (f"{PARALLEL} {{ memref.store %x, %a[%j, %j] : {M} }}", [A_BOTH]),
        (f"{PARALLEL} {{ %own = memref.alloc() : {M} memref.store %x, %own[%j, %j] : {M} }}", []),
    ],
)
def test_an_op_with_all_in_it_is_one_access(body: str, found: list[tuple[str, tuple[bool, ...]]]) -> None:
    assert accesses(body) == found


@pytest.mark.parametrize(
    ("body", "is_whole"),
    [(f"linalg.fill ins(%x : f32) outs(%a : {M})", True), (f"memref.store %x, %a[%i, %i] : {M}", False)],
)
def test_only_a_fill_is_known_to_overwrite_a_buffer(body: str, is_whole: bool) -> None:
    with block_of(body) as (_, block):
        op = block.operations[0].operation
        assert memory_effects.is_filled(op, block.arguments[0]) == is_whole
        assert not memory_effects.is_filled(op, block.arguments[1])


WAITED = LAUNCH.replace("@m", "async [%t] @m").replace("gpu.launch", "%u = gpu.launch")
STRUCTURED = r"allowed func\.func, scf\.for, scf\.while, scf\.if$"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"gpu.memcpy %a, %b : {M}, {M}", r"^found gpu\.memcpy, allowed gpu\.launch_func without tokens$"),
        (f"%t = gpu.wait async {WAITED}", r"^found gpu\.wait, allowed"),
        (f"{PARALLEL} {{ {LAUNCH} }}", rf"^found a launch in scf\.parallel, {STRUCTURED}"),
        (f"%d = gpu.alloc host_shared () : {M}\ngpu.dealloc %d : {M}", ""),  # which the host reaches as well
    ],
)
def test_device_code_that_is_there_already_is_refused(body: str, reason: str) -> None:
    expected = pytest.raises(CandidateError, match=reason) if reason else nullcontext()
    with block_of(body) as (function, block), expected:
        memory_effects.reject_device_code(function, set(aliases.structured_operations(block)))


@pytest.mark.parametrize("body", [f"{ADDRESS} : {M} -> index", f"{PARALLEL} {{ {ADDRESS} : {M} -> index }}"])
def test_an_operation_that_keeps_an_address_is_refused(body: str) -> None:
    found = r"found memref\.extract_aligned_pointer_as_index, allowed operations that"
    with pytest.raises(CandidateError, match=f"^argument %arg0: {found}") as failure:
        accesses(body)
    assert failure.value.stage is Stage.COMPILE


DESCRIPTOR = (
    "!nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = none, l2promo = none, "
    "oob = zero, interleave = none>"
)
KERNEL, OF_16 = text_beside(__file__, "KERNEL"), "memref<16xf32>"


def of_launch(text: str) -> tuple[bool, bool, bool]:
    """Returns what the launch of a module does with its memory: reads, writes, stays within."""
    with parsed(text) as module:
        (found,) = memory_effects.KernelEffects(module).of_launch(walk(module, "gpu.launch_func")[0])
        assert found.value.get_name() == "%arg0"
        reads, writes, is_bounded = found.effect
        return reads, writes, is_bounded


def of_kernel(body: str, kind: str = OF_16) -> tuple[bool, bool, bool]:
    return of_launch(KERNEL.replace("BODY", body).replace("KIND", kind))


def test_views_are_followed_but_those_that_control_flow_hands_on_may_be_anything() -> None:
    assert of_kernel(text_beside(__file__, "VIEWS"))[:2] == WRITES
    assert of_kernel(text_beside(__file__, "CARRIED"))[:2] == BOTH


@pytest.mark.parametrize(
    ("body", "is_bounded"),
    [
        (f"%c = memref.load %a[%i] : {OF_16}", True),
        (f"%c = memref.subview %a[4] [8] [1] : {OF_16} to memref<8xf32, strided<[1], offset: 4>>", True),
        *((text_beside(__file__, name), False) for name in ("REINTERPRETED", "METADATA", "FRAGMENT")),
        (f"%c = memref.extract_aligned_pointer_as_index %a : {OF_16} -> index", False),
    ],
)
def test_who_takes_the_address_may_leave_the_view(body: str, is_bounded: bool) -> None:
    assert of_kernel(body)[2] == is_bounded


def test_descriptors_stand_for_their_memory() -> None:
    assert of_kernel(f"nvgpu.tma.prefetch.descriptor %a : {DESCRIPTOR}", DESCRIPTOR)[:2] == NEITHER
    assert of_kernel(text_beside(__file__, "TMA_STORE"), DESCRIPTOR)[:2] == WRITES


def test_a_kernel_without_a_body_may_do_anything() -> None:
    head, _, _ = KERNEL.replace("BODY", "").replace("KIND", OF_16).partition("  gpu.module @m")
    binary = 'gpu.binary @m [#gpu.object<#nvvm.target, "code">]\n}'
    assert of_launch(head + binary) == (True, True, False)


@pytest.mark.parametrize(
    ("body", "effect"),
    [
        ("", NEITHER),
        ("%r = memref.load %a[%i] : memref<16xf32>", READS),
        ("memref.store %x, %a[%i] : memref<16xf32>", WRITES),
        ("%r = memref.load %a[%i] : memref<16xf32> memref.store %r, %a[%i] : memref<16xf32>", BOTH),
        ("%r = memref.atomic_rmw addf %x, %a[%i] : (f32, memref<16xf32>) -> f32", BOTH),
        ("%r = vector.load %a[%i] : memref<16xf32>, vector<4xf32>", READS),
        ("vector.store %v, %a[%i] : memref<16xf32>, vector<4xf32>", WRITES),
        ("vector.transfer_write %v, %a[%i] : vector<4xf32>, memref<16xf32>", WRITES),
        ("%r = vector.transfer_read %a[%i], %x : memref<16xf32>, vector<4xf32>", READS),
        ("vector.maskedstore %a[%i], %m, %v : memref<16xf32>, vector<4xi1>, vector<4xf32>", WRITES),
        (text_beside(__file__, "SCATTER"), WRITES),
        ("%t = nvgpu.device_async_copy %a[%i], %s[%i], 4 : memref<16xf32> to memref<16xf32, 3>", READS),
        ("memref.copy %a, %s : memref<16xf32> to memref<16xf32, 3>", READS),
        ("memref.copy %s, %a : memref<16xf32, 3> to memref<16xf32>", WRITES),
        ("%r = memref.dim %a, %i : memref<16xf32>", NEITHER),
        ("linalg.fill ins(%x : f32) outs(%a : memref<16xf32>)", WRITES),
        ("%p = memref.extract_aligned_pointer_as_index %a : memref<16xf32> -> index", BOTH),
    ],
)
def test_an_operation_reads_and_writes_what_it_names(body: str, effect: tuple[bool, bool]) -> None:
    assert of_kernel(body)[:2] == effect


def proved(body: str, shape: str, grid: int = 4, block: int = 8) -> bool:
    """Returns what is said about a kernel on ``grid`` blocks of ``block`` threads."""
    text = filled(__file__, "STORING", body=body, kind=f"memref<{shape}xf32>", grid=grid, block=block)
    with parsed(text) as module:
        (launch,), (kernel,) = walk(module, "gpu.launch_func"), walk(module, "gpu.func")
        return bool(memory_effects.stores_every_element(launch, kernel, 0))


@pytest.mark.parametrize(
    ("index", "shape", "is_proved"),
    [
        *(("%bx, %tx", "4x8", True), ("%tx, %bx", "8x4", True), ("%n", "32", True), ("%m", "32", True)),
        *(("%n, %c0", "32x1", True), ("%by, %n", "1x32", True)),
        ("%n", "33", False),  # the last is left
        ("%bx, %bx", "4x4", False),  # the diagonal
        ("%last", "32", False),
        ("%row, %column", "4x8", False),  # right, but not linear and without a guard
    ],
)
def test_a_store_of_every_thread(index: str, shape: str, is_proved: bool) -> None:
    assert proved(f"memref.store %v, %a[{index}] : {{kind}}", shape) is is_proved
    assert not proved("scf.for %i = %c0 to %k step %c4 { memref.store %v, %a[%n] : {kind} }", "32")


@pytest.mark.parametrize(
    ("condition", "index", "shape", "is_proved"),
    [
        *(("%in", "%n", "32", True), ("%in", "%row, %column", "4x8", True)),
        *(("%in", "%column, %row", "8x4", False), ("%in", "%n", "33", False)),
        ("%out", "%n", "32", False),  # too few threads store
        ("%in", "%row, %c0", "4x8", False),
    ],
)
def test_a_store_after_a_guard(condition: str, index: str, shape: str, is_proved: bool) -> None:
    body = f"scf.if {condition} {{ memref.store %v, %a[{index}] : {{kind}} }}"
    assert proved(body, shape) is is_proved
    assert proved(body, shape, grid=5) is is_proved  # more threads than elements
    assert not proved(body, shape, grid=3)
