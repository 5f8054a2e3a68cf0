// ----- PAYLOAD
func.func @matmul(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %product : tensor<8x8xf32>
}

// ----- SCRIPT
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %matmul tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_licm to %loop : !transform.any_op
    transform.foreach %loop : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      transform.annotate %one "mine" : !transform.any_op
      transform.apply_licm to %one : !transform.any_op
    }
    %function = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function { transform.apply_patterns.canonicalization } : !transform.any_op
    transform.apply_patterns to %function { transform.apply_patterns.canonicalization } : !transform.any_op
    transform.yield
  }
}
