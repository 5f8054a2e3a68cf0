// ----- BUFFERS

module {
  func.func @scale(%a: memref<4x4xf32>, %b: memref<4x4xf32, strided<[16, 1]>>) {
    linalg.copy ins(%a : memref<4x4xf32>) outs(%b : memref<4x4xf32, strided<[16, 1]>>)
    return
  }
}
// ----- STORE

func.func @f(%c: memref<4x8xf32, strided<[9, 1]>>, %i: index, %j: index) {
  %x = arith.constant 1.0 : f32
  memref.store %x, %c[%i, %j] : memref<4x8xf32, strided<[9, 1]>>
  return
}
