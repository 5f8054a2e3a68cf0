// ----- MATMUL
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// ----- NESTED
module attributes {transform.with_named_sequence} {
  transform.named_sequence @is_matmul(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }
  transform.named_sequence @tile(%op: !transform.any_op {transform.consumed}) {
    %t, %l = transform.structured.tile_using_for %op tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.consumed}) {
    %f = transform.structured.match ops{["func.func"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.foreach %f : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      transform.apply_patterns to %one {
        transform.apply_patterns.canonicalization
      } : !transform.any_op
    }
    %0 = transform.foreach_match in %m @is_matmul -> @tile : (!transform.any_op) -> !transform.any_op
    %g = transform.structured.match ops{["func.func"]} in %0 : (!transform.any_op) -> !transform.any_op
    %h = transform.apply_registered_pass "cse" to %g : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
// ----- CRASHES
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %m : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_forall %mm num_threads [0, -1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
// ----- SCALABLE
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %mm vector_sizes [8, [8], 8] : !transform.any_op
    transform.yield
  }
}
