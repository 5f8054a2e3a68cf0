// Subviews as large as their source, of which one begins at an offset that is known at run time only.
// issue: https://github.com/llvm/llvm-project/pull/105635
// arguments: [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23], [24, 25, 26, 27], [28, 29, 30, 31]], 3
// outputs: 12, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [100, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23], [24, 25, 26, 27], [28, 29, 30, 31]]

func.func @main(%x: memref<8x4xi32>, %at: index) -> i32 {
  %c0 = arith.constant 0 : index
  %half = memref.subview %x[%c0, 0] [4, 4] [1, 1]
    : memref<8x4xi32> to memref<4x4xi32, strided<[4, 1], offset: ?>>
  %moved = memref.subview %half[%at, 0] [4, 4] [1, 1]
    : memref<4x4xi32, strided<[4, 1], offset: ?>> to memref<4x4xi32, strided<[4, 1], offset: ?>>
  %r = memref.load %moved[%c0, %c0] : memref<4x4xi32, strided<[4, 1], offset: ?>>
  %c100 = arith.constant 100 : i32
  memref.store %c100, %moved[%c0, %c0] : memref<4x4xi32, strided<[4, 1], offset: ?>>
  return %r : i32
}
