// Iterations that read what an earlier iteration wrote, at another place of both dimensions.
// issue: https://github.com/llvm/llvm-project/issues/210585
// arguments: [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]
// outputs: [[1, 1, 1, 1], [2, 2, 2, 1], [3, 3, 2, 1], [4, 3, 2, 1]]

func.func @main(%a: memref<4x4xi32>) {
  affine.for %i = 1 to 4 {
    affine.for %j = 0 to 3 {
      %x = affine.load %a[%i - 1, %j + 1] : memref<4x4xi32>
      %y = affine.load %a[%i, %j] : memref<4x4xi32>
      %z = arith.addi %x, %y : i32
      affine.store %z, %a[%i, %j] : memref<4x4xi32>
    }
  }
  return
}
