"""Passes of one rewrite each: what they change, and what they leave."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.gpu.kernel_passes import (
    expand_composed_ops,
    expand_warp_ids,
    relax_unused_atomics,
    sink_undefined_values,
    widen_narrow_shuffles,
    widen_printed_integers,
)
from tuner.mlir.gpu.modules import merge_gpu_modules
from tuner.mlir.gpu.shared_memory import (
    custom_shared_views,
    make_shared_memory_external,
    use_dynamic_shared_globals,
)
from tuner.mlir.gpu.tensor_maps import note_tensor_maps, pass_tensor_maps_by_value
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir

ATOMICS = text_beside(__file__, "ATOMICS")
SYMBOLS = """gpu.module @m {
  llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16} : !llvm.array<0 x i8>
  llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32} : !llvm.array<32 x f32>
}
"""
WARPS = text_beside(__file__, "WARPS")
GLOBAL_ID = text_beside(__file__, "GLOBAL_ID")
SHUFFLE = text_beside(__file__, "SHUFFLE")
SPACE = "#gpu.address_space<workgroup>"
SHARED_GLOBALS = text_beside(__file__, "SHARED_GLOBALS")
TWO_MODULES = text_beside(__file__, "TWO_MODULES")


def changed(change: Callable[..., Any], text: str, *given: Any) -> tuple[str, str, Any]:
    """Returns a module before and after a pass, and what the pass returns."""
    with parsed(text) as module:
        before = str(module)
        result = change(module, *given)
        assert module.operation.verify()
        return before, str(module), result


@pytest.mark.parametrize(
    ("change", "text", "given", "count"),
    [
        (relax_unused_atomics, ATOMICS, (), 1),  # not the one whose result is read
        (make_shared_memory_external, SYMBOLS, (1024,), 1),  # the symbol of dynamic memory alone
        (expand_warp_ids, WARPS, (), 2),  # in the order of threads
        (merge_gpu_modules, TWO_MODULES, (), None),  # kernels of all modules move into the first
    ],
    ids=["device_atomics", "external_shared_memory", "warp_ids", "merge_gpu_modules"],
)
def test_a_pass_makes_of_a_module(
    change: Callable[..., Any],
    text: str,
    given: tuple[int, ...],
    count: int | None,
    request: pytest.FixtureRequest,
    golden: Callable[[str, str], None],
) -> None:
    _, after, result = changed(change, text, *given)
    assert result == count
    golden(f"{request.node.callspec.id}.mlir", after)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (expand_composed_ops, GLOBAL_ID.replace("gpu.global_id", "gpu.thread_id")),
        *((widen_narrow_shuffles, SHUFFLE.replace("f16", kind)) for kind in ("i32", "f32", "i64", "f64")),
    ],
)
def test_what_needs_no_pass_stays_as_it_is(change: Callable[..., Any], text: str) -> None:
    before, after, result = changed(change, text)
    assert after == before
    assert not result


def test_global_ids_become_block_and_thread_ids() -> None:
    _, text, _ = changed(expand_composed_ops, GLOBAL_ID)
    assert "gpu.global_id" not in text
    assert "gpu.block_id" in text


@pytest.mark.parametrize("kind", ["i8", "i16", "f16", "bf16"])
def test_shuffles_of_less_than_32_bits_move_32(kind: str) -> None:
    _, text, count = changed(widen_narrow_shuffles, SHUFFLE.replace("f16", kind))
    assert count == 1
    assert "gpu.shuffle xor" in text.replace("  ", " ")
    assert text.count("arith.bitcast") == (0 if kind.startswith("i") else 2)
    assert ": i32" in text.split("gpu.shuffle")[1].splitlines()[0]


def test_a_global_of_no_elements_is_the_start_of_dynamic_shared_memory_of_unknown_size() -> None:
    with parsed(SHARED_GLOBALS) as module:
        use_dynamic_shared_globals(module)
        assert module.operation.verify()
        text, views = str(module), custom_shared_views(walk(module, "gpu.func")[0])
    assert "@all" not in text
    assert text.count("@tile") == 2
    assert text.count("gpu.dynamic_shared_memory") == 1
    assert views.bytes == 0
    assert "memref.view" in views.unbounded


def test_merged_modules_stay_merged_and_helpers_of_one_name_are_refused() -> None:
    _, text, _ = changed(merge_gpu_modules, TWO_MODULES)
    assert changed(merge_gpu_modules, text)[1] == text
    text = TWO_MODULES.replace(
        "gpu.func @k() kernel { gpu.barrier", "func.func private @k2() gpu.func @k() kernel {"
    )
    text = text.replace("@first {", "@first { func.func private @k2()")
    with pytest.raises(
        CandidateError, match=r"^@second: found a second func\.func @k2, allowed one in all modules$"
    ):
        changed(merge_gpu_modules, text)


def test_narrow_printed_integers_are_widened_and_others_stay() -> None:
    text = text_beside(__file__, "PRINTED")
    _, found, _ = changed(widen_printed_integers, text)
    assert "arith.extsi %arg0 : i8 to i32" in found
    assert "arith.extui %arg1 : i1 to i32" in found
    assert ", %arg2, %arg3 : i32, i32, i32, f32" in found


def test_undefined_values_go_where_they_are_used() -> None:
    text = text_beside(__file__, "UNDEFINED")
    before, _, inside = changed(sink_undefined_values, text)[1].partition("gpu.launch")
    assert "llvm.mlir.undef" not in before
    assert inside.count("llvm.mlir.undef") == 2


def test_pointers_of_kernels_are_noted() -> None:
    text = """gpu.module @m {
      gpu.func @k(%a: !llvm.ptr, %c: memref<4xf32>, %b: !llvm.ptr) kernel { gpu.return }
      gpu.func @plain(%c: memref<4xf32>) kernel { gpu.return }
    }"""
    _, found, _ = changed(note_tensor_maps, text)
    assert found.count("tuner.tensor_maps") == 1
    assert "tuner.tensor_maps = array<i64: 0, 2>" in found


def test_noted_parameters_go_by_value_and_keep_their_attributes() -> None:
    text = """gpu.module @m {
      llvm.func @k(%a: !llvm.ptr {llvm.noalias}, %c: !llvm.ptr {llvm.nonnull}) attributes {
        gpu.kernel, nvvm.kernel, tuner.tensor_maps = array<i64: 0>} { llvm.return }
    }"""
    _, found, _ = changed(pass_tensor_maps_by_value, text)
    whole = (
        "%arg0: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, llvm.noalias, "
        "nvvm.grid_constant}, %arg1: !llvm.ptr {llvm.nonnull}"
    )
    assert whole in found
    assert "tuner.tensor_maps" not in found
