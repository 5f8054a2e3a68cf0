from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.effects import aliases, memory_effects
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir

M = "memref<4x4xf32>"
MODULE = text_beside(__file__, "MODULE")
LAUNCH = f"gpu.launch_func @m::@k blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%a : {M})"


def accesses(body: str) -> list[tuple[str, tuple[bool, ...]]]:
    """Returns the accesses of the first operation."""
    with parsed(MODULE.replace("BODY", body)) as module:
        op = module.body.operations[1].regions[0].blocks[0].operations[0].operation
        found = memory_effects.host_effects(op)
        return [(access.value.get_name(), tuple(access.effect)[:2]) for access in found]


A_READ, A_WRITTEN, A_BOTH = ("%arg0", (True, False)), ("%arg0", (False, True)), ("%arg0", (True, True))
B_READ, B_BOTH = ("%arg1", (True, False)), ("%arg1", (True, True))
GENERIC = text_beside(__file__, "GENERIC")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"%r = memref.load %a[%i, %i] : {M}", [A_READ]),
        (f"memref.store %x, %a[%i, %i] : {M}", [A_WRITTEN]),
        (f"linalg.fill ins(%x : f32) outs(%a : {M})", [A_WRITTEN]),
        (f"linalg.add ins(%b, %b : {M}, {M}) outs(%a : {M})", [B_READ, B_READ, A_BOTH]),
        (f"linalg.transpose ins(%b : {M}) outs(%a : {M}) permutation = [1, 0]", [B_BOTH, A_BOTH]),
        (GENERIC, [A_BOTH, B_BOTH]),
        (f"memref.copy %b, %a : {M} to {M}", [B_READ, A_WRITTEN]),
        (f"func.call @other(%a) : ({M}) -> ()", [A_BOTH]),
        (f"%r = memref.dim %a, %i : {M}", []),
        (f"%r = memref.cast %a : {M} to memref<?x?xf32>", []),
        (f"memref.dealloc %a : {M}", []),
        (f"scf.parallel (%j) = (%i) to (%i) step (%i) {{ memref.store %x, %a[%j, %j] : {M} }}", [A_BOTH]),
        (
            f"""scf.parallel (%j) = (%i) to (%i) step (%i) {{
            %own = memref.alloc() : {M} memref.store %x, %own[%j, %j] : {M}
            }}""",
            [],
        ),
    ],
)
def test_an_operation_with_all_in_it_is_one_access(
    body: str, found: list[tuple[str, tuple[bool, ...]]]
) -> None:
    assert accesses(body) == found


def test_only_a_fill_is_known_to_overwrite_a_buffer() -> None:
    for body, is_whole in (
        (f"linalg.fill ins(%x : f32) outs(%a : {M})", True),
        (f"memref.store %x, %a[%i, %i] : {M}", False),
    ):
        with parsed(MODULE.replace("BODY", body)) as module:
            block = module.body.operations[1].regions[0].blocks[0]
            op = block.operations[0].operation
            assert memory_effects.is_overwritten(op, block.arguments[0]) == is_whole
            assert not memory_effects.is_overwritten(op, block.arguments[1])


@pytest.mark.parametrize(
    "body",
    [
        f"%r = memref.extract_aligned_pointer_as_index %a : {M} -> index",
        f"""scf.parallel (%j) = (%i) to (%i) step (%i) {{
          %r = memref.extract_aligned_pointer_as_index %a : {M} -> index
        }}""",
    ],
)
def test_an_operation_that_keeps_an_address_is_refused(body: str) -> None:
    with pytest.raises(
        CandidateError,
        match=r"^argument %arg0: found memref\.extract_aligned_pointer_as_index, allowed operations that",
    ) as failure:
        accesses(body)
    assert failure.value.stage is Stage.COMPILE


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"gpu.memcpy %a, %b : {M}, {M}", r"^found gpu\.memcpy, allowed gpu\.launch_func without tokens$"),
        (
            f"%t = gpu.wait async {LAUNCH.replace('@m', 'async [%t] @m')}".replace(
                "gpu.launch", "%u = gpu.launch"
            ),
            r"^found gpu\.wait, allowed",
        ),
        (
            f"scf.parallel (%j) = (%i) to (%i) step (%i) {{ {LAUNCH} }}",
            r"^found a launch in scf\.parallel, allowed func\.func, scf\.for, scf\.while, scf\.if$",
        ),
    ],
)
def test_device_code_that_is_there_already_is_refused(body: str, reason: str) -> None:
    with parsed(MODULE.replace("BODY", body)) as module:
        function = module.body.operations[1].operation
        block = function.regions[0].blocks[0]
        with pytest.raises(CandidateError, match=reason):
            memory_effects.reject_device_code(function, set(aliases.structured_operations(block)))


def test_memory_that_the_host_reaches_as_well_is_left_as_it_is() -> None:
    body = f"%d = gpu.alloc host_shared () : {M}\ngpu.dealloc %d : {M}"
    with parsed(MODULE.replace("BODY", body)) as module:
        function = module.body.operations[1].operation
        block = function.regions[0].blocks[0]
        memory_effects.reject_device_code(function, set(aliases.structured_operations(block)))


READS, WRITES = (True, False), (False, True)
BOTH, NEITHER = (True, True), (False, False)
DESCRIPTOR = (
    "!nvgpu.tensormap.descriptor<tensor = memref<64x32xf16, 3>, swizzle = none, l2promo = none, "
    "oob = zero, interleave = none>"
)
KERNEL = text_beside(__file__, "KERNEL")


def kernel_effects_accesses(body: str, kind: str = "memref<16xf32>") -> Any:
    with parsed(KERNEL.replace("BODY", body).replace("KIND", kind)) as module:
        launch = walk(module, "gpu.launch_func")[0]
        return [
            (access.value.get_name(), tuple(access.effect)[:2])
            for access in memory_effects.KernelEffects(module).of_launch(launch)
        ]


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
        (
            """vector.scatter %a[%i] [%n], %m, %v
            : memref<16xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>""",
            WRITES,
        ),
        ("%t = nvgpu.device_async_copy %a[%i], %s[%i], 4 : memref<16xf32> to memref<16xf32, 3>", READS),
        ("memref.copy %a, %s : memref<16xf32> to memref<16xf32, 3>", READS),
        ("memref.copy %s, %a : memref<16xf32, 3> to memref<16xf32>", WRITES),
        ("%r = memref.dim %a, %i : memref<16xf32>", NEITHER),
        ("linalg.fill ins(%x : f32) outs(%a : memref<16xf32>)", WRITES),
        ("%p = memref.extract_aligned_pointer_as_index %a : memref<16xf32> -> index", BOTH),
    ],
)
def test_an_operation_reads_and_writes_what_it_names(body: str, effect: tuple[bool, bool]) -> None:
    assert kernel_effects_accesses(body) == [("%arg0", effect)]


def test_views_are_followed() -> None:
    body = """%w = memref.subview %a[4] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 4>>
      %y = memref.expand_shape %w [[0, 1]] output_shape [2, 4]
        : memref<8xf32, strided<[1], offset: 4>> into memref<2x4xf32, strided<[4, 1], offset: 4>>
      memref.store %x, %y[%i, %i] : memref<2x4xf32, strided<[4, 1], offset: 4>>"""
    assert kernel_effects_accesses(body) == [("%arg0", WRITES)]


@pytest.mark.parametrize(
    ("body", "is_bounded"),
    [
        ("%r = memref.load %a[%i] : memref<16xf32>", True),
        (
            "%w = memref.subview %a[4] [8] [1] : memref<16xf32> to memref<8xf32, strided<[1], offset: 4>>",
            True,
        ),
        (
            """%w = memref.reinterpret_cast %a to offset: [0], sizes: [32], strides: [1]
              : memref<16xf32> to memref<32xf32>""",
            False,
        ),
        (
            """%c = memref.cast %a : memref<16xf32> to memref<?xf32>
            %w, %o, %size, %t = memref.extract_strided_metadata %c
              : memref<?xf32> -> memref<f32>, index, index, index""",
            False,
        ),
        (
            """%m4 = gpu.subgroup_mma_load_matrix %a[%i] {leadDimension = 16 : index}
              : memref<16xf32> -> !gpu.mma_matrix<16x16xf32, "COp">""",
            False,
        ),
        ("%p = memref.extract_aligned_pointer_as_index %a : memref<16xf32> -> index", False),
    ],
)
def test_who_takes_the_address_may_leave_the_view(body: str, is_bounded: bool) -> None:
    with parsed(KERNEL.replace("BODY", body).replace("KIND", "memref<16xf32>")) as module:
        launch = walk(module, "gpu.launch_func")[0]
        (access,) = memory_effects.KernelEffects(module).of_launch(launch)
    assert access.effect.is_bounded == is_bounded


def test_a_view_that_is_handed_to_control_flow_may_be_anything() -> None:
    body = """%r = scf.for %j = %i to %i step %i iter_args(%b = %a) -> memref<16xf32> {
        scf.yield %b : memref<16xf32>
      }"""
    assert kernel_effects_accesses(body) == [("%arg0", BOTH)]


@pytest.mark.parametrize(
    ("body", "effect"),
    [
        ("nvgpu.tma.prefetch.descriptor %a : " + DESCRIPTOR, NEITHER),
        (
            f"""%t = memref.alloc() : memref<64x32xf16, 3>
            nvgpu.tma.async.store %t to %a[%i, %i] : memref<64x32xf16, 3> -> {DESCRIPTOR}""",
            WRITES,
        ),
    ],
)
def test_descriptors_stand_for_their_memory(body: str, effect: tuple[bool, bool]) -> None:
    assert kernel_effects_accesses(body, DESCRIPTOR) == [("%arg0", effect)]


def test_a_kernel_without_a_body_may_do_anything() -> None:
    text = KERNEL.replace("BODY", "").replace("KIND", "memref<16xf32>")
    head, _, _ = text.partition("  gpu.module @m")
    binary = 'gpu.binary @m [#gpu.object<#nvvm.target, "code">]\n}'
    with parsed(head + binary) as module:
        launch = walk(module, "gpu.launch_func")[0]
        effects = [access.effect for access in memory_effects.KernelEffects(module).of_launch(launch)]
    assert [tuple(effect) for effect in effects] == [(True, True, False)]
