"""What each transform op shows in its docstring is what it does."""

import sys

import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.ops import (
    test_bf16_dot,
    test_bound_loads,
    test_bypass_l1,
    test_count_stages,
    test_element_types,
    test_finish_stores,
    test_fix_transposed_a,
    test_flat_copies,
    test_forward_stores,
    test_insert_barriers,
    test_merge_ldmatrix,
    test_prefetch_fragments,
    test_prefetch_reads,
    test_set_aside_epilogue,
    test_shared_layout,
    test_split_k,
    test_swizzle_blocks,
    test_unroll_inner_loops,
    test_use_fp8,
    test_use_tf32,
    test_wgmma_pipeline,
)
from tests.mlir.ops.conftest import Apply
from tuner.mlir.ops import OPS

pytestmark = pytest.mark.mlir

NOTHING = 'transform.annotate %func "seen" : !transform.any_op'
# Op -> the line of a script that calls it, and the payload.
CASES = {
    "bf16_dot": (test_bf16_dot.LINE, test_bf16_dot.payload(1, 16)),
    "bound_loads": (
        test_bound_loads.LINE.format(0),
        test_bound_loads.payload("{tuner.bounds = array<i64: 50, 64>}"),
    ),
    "bypass_l1": (test_bypass_l1.LINE, test_bypass_l1.payload("f16", 8)),
    "count_stages": (test_count_stages.LINE, test_count_stages.payload()),
    "element_types": (test_element_types.LINE.format("bf16", "f16"), test_element_types.PAYLOAD),
    "finish_stores": (test_finish_stores.LINE.format("store"), test_finish_stores.payload()),
    "fix_transposed_a": (test_fix_transposed_a.LINE, test_fix_transposed_a.payload(4, "true")),
    "flat_copies": (test_flat_copies.LINE, test_flat_copies.payload()),
    "forward_stores": (test_forward_stores.LINE, test_forward_stores.payload(*test_forward_stores.USUAL)),
    "insert_barriers": (test_insert_barriers.LINE.format(1), test_insert_barriers.PAYLOAD),
    "merge_ldmatrix": (test_merge_ldmatrix.LINE, test_merge_ldmatrix.payload((0, 8), "true")),
    "prefetch_fragments": (test_prefetch_fragments.LINE.format(0), test_prefetch_fragments.payload()),
    "prefetch_reads": (test_prefetch_reads.line(), test_prefetch_reads.PAYLOAD),
    "set_aside_epilogue": (test_set_aside_epilogue.LINE, test_set_aside_epilogue.payload("f16", "bias_relu")),
    "shared_layout": (test_shared_layout.LINE.format(1, 16), test_shared_layout.payload()),
    "split_k": (test_split_k.LINE.format(4), test_split_k.payload()),
    "swizzle_blocks": (test_swizzle_blocks.LINE.format(2), test_swizzle_blocks.payload(4, 4)),
    "unroll_inner_loops": (test_unroll_inner_loops.LINE, test_unroll_inner_loops.PIPELINE),
    "use_fp8": (test_use_fp8.LINE.format("e4m3"), test_use_fp8.payload()),
    "use_tf32": (
        test_use_tf32.LINE,
        test_use_tf32.payload("vector<4x1xf32>", "vector<2x1xf32>", "16, 8, 8"),
    ),
    "wgmma_pipeline": (test_wgmma_pipeline.line(), test_wgmma_pipeline.payload()),
}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.OPERATION_NAME)
def test_the_ir_of_a_docstring_is_real(op: type, apply: Apply) -> None:
    line, payload = CASES[op.__module__.rpartition(".")[2]]
    docstring = sys.modules[op.__module__].__doc__ or ""
    assert missing(docstring, apply(NOTHING, payload), apply(line, payload)) == []


def test_ir_that_no_module_has_is_found() -> None:
    shown = "Adds.\n\nTakes i32.\n\n    %y = f.old %x : i32\n  becomes\n    %y = f.new %x : ...\n    f.same\n"
    assert missing(shown, "%0 = f.old %arg0 : i32", "%0 = f.new %arg0 : i32\nf.same") == []
    assert missing(shown, "%0 = f.older %arg0 : i32", "%0 = f.new %arg0 : i32") == [
        *("    %y = f.old %x : i32", "    f.same"),
    ]
