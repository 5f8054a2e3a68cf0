// ----- MAIN
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @is_product(%op: !transform.any_op {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @helper(%op: !transform.any_op {transform.readonly}) {
    transform.annotate %op "of_main" : !transform.any_op
    transform.yield
  }
  transform.named_sequence @note(%op: !transform.any_op {transform.readonly}) {
    transform.include @helper failures(propagate) (%op) : (!transform.any_op) -> ()
    transform.yield
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
    transform.foreach_match in %root @is_product -> @note : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
// ----- LIBRARY
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @helper(%op: !transform.any_op {transform.readonly}) {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    transform.yield
  }
  transform.named_sequence @is_product(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.include @helper failures(propagate) (%op) : (!transform.any_op) -> ()
    transform.yield %op : !transform.any_op
  }
}
// ----- PAYLOAD
func.func @layer(%x: tensor<8x8xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
  %m = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %m : tensor<8x8xf32>
}
// ----- KNOBS
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @tiled(
    %op: !transform.any_op {transform.consumed}, %m: !transform.param<i64> {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
    %m = transform.tune.knob<"tm"> options = [4, 8] -> !transform.param<i64>
    %p = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.include @tiled failures(propagate) (%p, %m) : (!transform.any_op, !transform.param<i64>) -> ()
    transform.yield
  }
}
// ----- TILED
module attributes {transform.with_named_sequence} {
  transform.named_sequence @tiled(
    %op: !transform.any_op {transform.consumed}, %m: !transform.param<i64> {transform.readonly}) {
    %n = transform.tune.knob<"tn"> options = [16, 32] -> !transform.param<i64>
    %t, %l:3 = transform.structured.tile_using_for %op tile_sizes [%m, %n, 1]
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %t : !transform.any_op
    transform.yield
  }
}
