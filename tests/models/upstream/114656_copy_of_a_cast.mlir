// Copies from and to casts of the same memref, one after another.
// issue: https://github.com/llvm/llvm-project/issues/114656
// arguments: [1, 2, 3, 4], [0, 0, 0, 0]
// outputs: [9, 2, 3, 4], [1, 2, 3, 4]

func.func @main(%x: memref<4xi32>, %y: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : i32
  %xd = memref.cast %x : memref<4xi32> to memref<?xi32>
  %yd = memref.cast %y : memref<4xi32> to memref<?xi32>
  memref.copy %xd, %yd : memref<?xi32> to memref<?xi32>
  memref.store %c9, %x[%c0] : memref<4xi32>
  memref.copy %xd, %x : memref<?xi32> to memref<4xi32>
  return
}
