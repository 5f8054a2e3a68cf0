// A map whose region writes to a memref of the function.
// issue: https://github.com/llvm/llvm-project/issues/112881
// arguments: [[1, 2, 3], [4, 5, 6]], [0, 0]
// outputs: [[11, 12, 13], [14, 15, 16]], [0, 10]

func.func @main(%x: tensor<2x3xi32>, %m: memref<2xi32>) -> tensor<2x3xi32> {
  %c1 = arith.constant 1 : index
  %ten = arith.constant 10 : i32
  %e = tensor.empty() : tensor<2x3xi32>
  %r = linalg.map ins(%x : tensor<2x3xi32>) outs(%e : tensor<2x3xi32>)
    (%in: i32, %out: i32) {
      memref.store %ten, %m[%c1] : memref<2xi32>
      %s = arith.addi %in, %ten : i32
      linalg.yield %s : i32
    }
  return %r : tensor<2x3xi32>
}
