// The body's linalg.index is that of the new loop: the sum of 0..7 becomes 4 times the sum of 0..1, or 2 times that of 0..3.
// issue: https://github.com/llvm/llvm-project/issues/220505
// arguments: [1, 1, 1, 1, 1, 1, 1, 1]
// outputs: [36]
// defect: transform.structured.split_reduction moves the body without its linalg.index
module {
  func.func @main(%a: tensor<8xi32>) -> tensor<1xi32> {
    %zero = arith.constant 0 : i32
    %empty = tensor.empty() : tensor<i32>
    %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<i32>) -> tensor<i32>
    %sum = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]}
      ins(%a : tensor<8xi32>) outs(%start : tensor<i32>) {
    ^bb0(%x: i32, %old: i32):
      %k = linalg.index 0 : index
      %number = arith.index_cast %k : index to i32
      %both = arith.addi %x, %number : i32
      %new = arith.addi %old, %both : i32
      linalg.yield %new : i32
    } -> tensor<i32>
    %line = tensor.expand_shape %sum [] output_shape [1] : tensor<i32> into tensor<1xi32>
    return %line : tensor<1xi32>
  }
  module attributes {transform.with_named_sequence} {
    transform.named_sequence @__transform_main(%root: !transform.any_op) {
      %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
      %init, %fill, %split, %combine = transform.structured.split_reduction %op {split_factor = 4, insert_split_dimension = 0}
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield
    }
  }
}
