// An element that affine.store and memref.store write in the same iteration.
// issue: https://github.com/llvm/llvm-project/issues/217538
// arguments: [3, -7, 11, -13], 99
// outputs: 198, [198, -7, 11, -13]

func.func @main(%m: memref<4xi32>, %s: i32) -> i32 {
  %c0 = arith.constant 0 : index
  affine.for %i = 0 to 4 {
    affine.store %s, %m[0] : memref<4xi32>
    %x = memref.load %m[%c0] : memref<4xi32>
    %y = arith.addi %x, %s : i32
    memref.store %y, %m[%c0] : memref<4xi32>
  }
  %q = affine.load %m[0] : memref<4xi32>
  return %q : i32
}
