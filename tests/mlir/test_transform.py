import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.mlir.cpu import test_lowering as test_cpu_lowering
from tests.mlir.documented_ir import missing, parts
from tests.mlir.gpu import test_device_ops, test_kernel_memory, test_kernel_passes, test_modules
from tests.mlir.ir import test_memrefs
from tests.mlir.kernels import BARRIER, kernel, load, parsed, store
from tests.mlir.ops.conftest import SCRIPT
from tests.mlir.ops.test_every_op import SHOWN
from tests.mlir.scripts import PAYLOAD, TILE, script
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Partition
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import lowering as cpu_lowering
from tuner.mlir.cpu.amx_emulation import tiles_as_vectors
from tuner.mlir.cpu.bf16_emulation import store_bf16_as_integers
from tuner.mlir.cpu.lowering import with_batch_loops
from tuner.mlir.gpu import kernel_memory, lowering, modules, shared_memory
from tuner.mlir.gpu.kernel_memory import expand_copies, use_private_memory
from tuner.mlir.gpu.kernel_passes import (
    call_intrinsics_directly,
    expand_composed_ops,
    expand_warp_ids,
    outline_with_bounds,
    relax_unused_atomics,
    widen_narrow_shuffles,
)
from tuner.mlir.gpu.modules import merge_gpu_modules
from tuner.mlir.gpu.reductions import expand_reductions
from tuner.mlir.gpu.shared_memory import make_shared_memory_external, use_dynamic_shared_memory
from tuner.mlir.ir import memrefs
from tuner.mlir.ir.vnni import lower_byte_dots
from tuner.mlir.math.lowering import lower_math
from tuner.mlir.transform import OPS


def diagnostic(text: str, payload: str = PAYLOAD) -> str:
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(payload, "payload")
        with pytest.raises(CandidateError) as failure:
            transform.apply_script(module, transform.parse(text, "script"))
    assert failure.value.stage is Stage.COMPILE
    return failure.value.reason


VECTORIZE = "transform.structured.vectorize %product vector_sizes [1, 2] : !transform.any_op"


def test_a_diagnostic_names_the_transform_op_or_that_of_the_payload_and_its_place() -> None:
    found = diagnostic(script("transform.loop.unroll %product {factor = 2} : !transform.any_op"))
    assert found == "transform.loop.unroll at script:5:5: failed to unroll, incorrect type of payload"
    text = script(VECTORIZE)
    assert diagnostic(text) == "linalg.matmul at payload:2:14: Attempted to vectorize, but failed"
    # both texts have an op at 5:5
    assert text.splitlines()[4].startswith("    transform.structured.vectorize")
    payload = "\n\n" + PAYLOAD.replace("  %product = ", "%product =\n    ")
    assert payload.splitlines()[4].startswith("    linalg.matmul")
    assert diagnostic(text, payload).startswith("linalg.matmul at payload:5:5: ")


def test_the_note_of_a_diagnostic_is_named_as_well() -> None:
    sizes = ", ".join(["1"] * 4)
    handles = ", ".join(["!transform.any_op"] * 5)
    text = script(
        f"%tile, %loops:4 = transform.structured.tile_using_for %product tile_sizes [{sizes}]"
        f" : (!transform.any_op) -> ({handles})"
    )
    found = diagnostic(text)
    assert found.startswith("transform.structured.tile_using_for at script:5:23: too many tiles provided")
    assert found.endswith("; linalg.matmul at payload:2:14: target op")


def test_applying_leaves_what_the_payload_says_of_itself() -> None:
    returned = "return %product : tensor<64x64xf32>"
    tiled = script(TILE.replace("%size", "8").replace(", !transform.param<i64>", ""))
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(PAYLOAD.replace(returned, f'{returned} loc("mine":7:1)'), "payload")
        transform.apply_script(module, transform.parse(tiled, "script"))
        assert 'loc("mine":7:1)' in module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
        assert "scf.for" in str(module)


# What each transform op and each pass shows in its docstring is what it does.
SQRT = text_beside(__file__, "SQRT")
BF16 = "llvm.func @f(%x: bf16) -> f32 { %wide = llvm.fpext %x : bf16 to f32 llvm.return %wide : f32 }"
TEMPORARY = """scf.for %i = %c0 to %n step %c1 {
  %t = memref.alloc() : memref<4xf32>
  memref.dealloc %t : memref<4xf32>
}"""
ONE_LAUNCH = f"%t = memref.alloc() : {test_kernel_memory.SHARED} {test_kernel_memory.STORE}"
# Pass -> the module that it changes, or that it returns as a text.
OF_PASSES: dict[Callable[..., Any], str] = {
    expand_composed_ops: test_kernel_passes.GLOBAL_ID,
    expand_reductions: test_device_ops.ALL_REDUCE,
    widen_narrow_shuffles: test_kernel_passes.SHUFFLE,
    relax_unused_atomics: test_kernel_passes.ATOMICS,
    use_dynamic_shared_memory: kernel(store("a"), store("b"), load("a"), load("b")),
    make_shared_memory_external: test_kernel_passes.SYMBOLS,
    call_intrinsics_directly: SQRT,
    lower_math: text_beside(__file__, "RSQRT"),
    outline_with_bounds: test_kernel_passes.BOUNDS,
    merge_gpu_modules: test_kernel_passes.TWO_MODULES,
    use_private_memory: test_kernel_memory.PRIVATE_KERNEL.format(TEMPORARY),
    expand_warp_ids: test_kernel_passes.WARPS,
    expand_copies: test_kernel_memory.kernel(BARRIER, test_kernel_memory.COPY, BARRIER),
    shared_memory.use_dynamic_shared_globals: test_kernel_passes.SHARED_GLOBALS,
    modules.inline_device_functions: test_modules.CALLS,
    kernel_memory.declare_launch_memory: test_kernel_memory.program(
        (ONE_LAUNCH.format(test_kernel_memory.SHARED),)
    ),
    memrefs.name_memory_spaces: test_memrefs.MODULE,
    cpu_lowering.lower_to_llvm: test_cpu_lowering.STORE,
    store_bf16_as_integers: BF16,
    tiles_as_vectors: text_beside(__file__, "DOCUMENTED_IR_TILE"),
    with_batch_loops: test_cpu_lowering.ADD_ONE,
}
ARGUMENTS: dict[Callable[..., Any], tuple[Any, ...]] = {
    use_dynamic_shared_memory: (4096,),
    make_shared_memory_external: (1024,),
    outline_with_bounds: (lowering.OUTLINE,),
    with_batch_loops: ((Partition("matmul", 0, 0, 1, 2, 0, 8),), (8, 0, 4)),
}


def shown_but_not_there(documented: Any, change: Callable[[Any], object], text: str) -> list[str]:
    """Returns the lines of the docstring of a function's or class's module that are not what it does."""
    with parsed(text) as module:
        before = str(module)
        after = change(module)
        assert module.operation.verify()
        docstring = documented.__doc__ or ""
        if not parts(docstring):
            docstring = sys.modules[documented.__module__].__doc__ or ""
        return missing(docstring, before, after if isinstance(after, str) else str(module))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.OPERATION_NAME)
def test_the_ir_of_an_op_is_real(op: Any) -> None:
    line, payload = SHOWN[op.OPERATION_NAME.partition(".")[2]]

    def apply(module: Any) -> None:
        transform.apply_script(module, transform.parse(SCRIPT.format(line=line), "script"))

    assert shown_but_not_there(op, apply, payload) == []


@pytest.mark.parametrize("change", OF_PASSES, ids=lambda change: change.__name__)
def test_the_ir_of_a_pass_is_real(change: Callable[..., Any]) -> None:
    given = ARGUMENTS.get(change, ())

    def apply(module: Any) -> object:
        return change(str(module) if change is with_batch_loops else module, *given)

    assert shown_but_not_there(change, apply, OF_PASSES[change]) == []


def test_the_ir_of_a_dot_product_is_real() -> None:
    def lower(module: Any) -> None:
        lower_byte_dots(module, emulates=False)

    assert shown_but_not_there(lower_byte_dots, lower, text_beside(__file__, "DOT")) == []


def test_ir_that_no_module_has_is_found() -> None:
    shown = "Adds.\n\nTakes i32.\n\n    %y = f.old %x : i32\n  becomes\n    %y = f.new %x : ...\n    f.same\n"
    assert missing(shown, "%0 = f.old %arg0 : i32", "%0 = f.new %arg0 : i32\nf.same") == []
    assert missing(shown, "%0 = f.older %arg0 : i32", "%0 = f.new %arg0 : i32") == [
        *("    %y = f.old %x : i32", "    f.same")
    ]
