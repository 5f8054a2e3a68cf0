// The fill moves into the loop over k, so each iteration begins with 0 again.
// issue: https://github.com/llvm/llvm-project/issues/58398
// arguments: [[1, 2, 3, 4]]
// outputs: [10]
// defect: transform.structured.fuse moves the producer of an accumulator into the loop of the reduction
module {
  func.func @main(%a: tensor<1x4xi32>) -> tensor<1xi32> {
    %zero = arith.constant 0 : i32
    %empty = tensor.empty() : tensor<1xi32>
    %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<1xi32>) -> tensor<1xi32>
    %sum = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<1x4xi32>) outs(%start : tensor<1xi32>) {
    ^bb0(%x: i32, %old: i32):
      %new = arith.addi %old, %x : i32
      linalg.yield %new : i32
    } -> tensor<1xi32>
    return %sum : tensor<1xi32>
  }
  module attributes {transform.with_named_sequence} {
    transform.named_sequence @__transform_main(%root: !transform.any_op) {
      %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
      %fused, %loops:2 = transform.structured.fuse %op tile_sizes [1, 2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield
    }
  }
}
