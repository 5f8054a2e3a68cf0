"""Scripts that are applied in a child: arguments of the entry, and results that are not valid."""

import pytest

from tuner.core.errors import CandidateError
from tuner.targets.children import apply_script

pytestmark = pytest.mark.mlir

PAYLOAD = """
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %product : tensor<8x8xf32>
}
"""
BOUND = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op,
      %product: !transform.op<"linalg.matmul">, %sizes: !transform.param<i64>,
      %results: !transform.any_value) {
    %count = transform.num_associations %sizes : (!transform.param<i64>) -> !transform.param<i64>
    transform.annotate %product "count" = %count : !transform.op<"linalg.matmul">, !transform.param<i64>
    %found = transform.get_defining_op %results : (!transform.any_value) -> !transform.any_op
    transform.annotate %found "found" : !transform.any_op
    transform.yield
  }
}
"""


@pytest.mark.parametrize(("sizes", "count"), [("#8", 1), ("#8;16", 2)])
def test_trailing_arguments_are_bound_as_by_the_option_of_mlir_opt(sizes: str, count: int) -> None:
    applied = apply_script(BOUND, PAYLOAD, False, ("linalg.matmul", sizes, "^linalg.matmul"))
    assert f"linalg.matmul {{count = {count} : i64, found}}" in applied


@pytest.mark.parametrize(
    ("trailing", "message"),
    [
        ((), r"found 0 bindings of the entry's arguments after the first, allowed 3"),
        (
            ("linalg.matmul", "#a", "^linalg.matmul"),
            r"'#a': cannot be bound to an argument of type !transform",
        ),
        (
            ("#8", "#8", "#8"),
            r"'#8': cannot be bound to an argument of type !transform.op<\"linalg.matmul\">",
        ),
    ],
)
def test_a_binding_that_does_not_fit_is_one_line(trailing: tuple[str, ...], message: str) -> None:
    with pytest.raises(CandidateError, match=message):
        apply_script(BOUND, PAYLOAD, False, trailing)


DECLARED = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(!transform.any_op {transform.readonly})
}
"""


def test_an_entry_without_a_body_is_refused_by_mlir() -> None:
    with pytest.raises(CandidateError, match=r"op expects a single-block region"):
        apply_script(DECLARED, PAYLOAD, allows_effects=False)


RETURNED = "func.func @main(%x: memref<?xi8>) -> memref<?xi8> {\n  return %x : memref<?xi8>\n}\n"
CONVERTED = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %function = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.apply_conversion_patterns to %function {
      transform.apply_conversion_patterns.func.func_to_llvm
    } with type_converter {
      transform.apply_conversion_patterns.memref.memref_to_llvm_type_converter {use_bare_ptr_call_conv = true}
    } {legal_dialects = ["llvm"], partial_conversion} : !transform.any_op
    transform.yield
  }
}
"""


def test_a_script_that_leaves_invalid_mlir_fails() -> None:
    with pytest.raises(
        CandidateError, match=r"after the script: error: .* doesn't match function result type"
    ):
        apply_script(CONVERTED, RETURNED, allows_effects=False)
