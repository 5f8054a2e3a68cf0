// Six iterations over a buffer of eight: the last two elements stay.
// issue: https://github.com/llvm/llvm-project/issues/218120
// arguments: [1, 2, 3, 4, 5, 6, 7, 8]
// outputs: [2, 4, 6, 8, 10, 12, 7, 8]

func.func @main(%m: memref<8xi32>) {
  affine.for %j = 0 to 6 {
    %v = affine.load %m[%j] : memref<8xi32>
    %w = arith.addi %v, %v : i32
    affine.store %w, %m[%j] : memref<8xi32>
  }
  return
}
