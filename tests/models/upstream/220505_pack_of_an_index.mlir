// The body's linalg.index becomes the number of the tile: 0, 0, 0, 1, 1, 1, 2.
// issue: https://github.com/llvm/llvm-project/issues/220505
// arguments: [10, 10, 10, 10, 10, 10, 10]
// outputs: [10, 11, 12, 13, 14, 15, 16]
// defect: transform.structured.pack moves the body without its linalg.index
module {
  func.func @main(%a: tensor<7xi32>) -> tensor<7xi32> {
    %empty = tensor.empty() : tensor<7xi32>
    %sums = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<7xi32>) outs(%empty : tensor<7xi32>) {
    ^bb0(%x: i32, %old: i32):
      %i = linalg.index 0 : index
      %number = arith.index_cast %i : index to i32
      %sum = arith.addi %x, %number : i32
      linalg.yield %sum : i32
    } -> tensor<7xi32>
    return %sums : tensor<7xi32>
  }
  module attributes {transform.with_named_sequence} {
    transform.named_sequence @__transform_main(%root: !transform.any_op) {
      %op = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
      %packed = transform.structured.pack %op packed_sizes = [3] : (!transform.any_op) -> (!transform.op<"linalg.generic">)
      transform.yield
    }
  }
}
