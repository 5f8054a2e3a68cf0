// Padding that is filled in before what it surrounds is copied.
// issue: https://github.com/llvm/llvm-project/issues/218696
// arguments: [[5, 6, 7], [8, 9, 10]]
// outputs: [[1, 1, 1], [5, 6, 7], [8, 9, 10], [1, 1, 1]], 6

func.func @main(%x: tensor<2x3xi32>) -> (tensor<4x3xi32>, i32) {
  %c1 = arith.constant 1 : i32
  %i = arith.constant 1 : index
  %p = tensor.pad %x low[1, 0] high[1, 0] {
  ^bb0(%a: index, %b: index):
    tensor.yield %c1 : i32
  } : tensor<2x3xi32> to tensor<4x3xi32>
  %e = tensor.extract %p[%i, %i] : tensor<4x3xi32>
  return %p, %e : tensor<4x3xi32>, i32
}
