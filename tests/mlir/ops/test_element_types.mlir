// ----- PAYLOAD

module {
  func.func @f(%a: memref<8x8xbf16, strided<[9, 1]>>, %c: memref<8xf32>, %i: index) {
    %zero = arith.constant 0.0 : bf16
    %zeros = arith.constant dense<0.0> : vector<2x2xbf16>
    %tile = memref.alloc() : memref<8x8xbf16, #gpu.address_space<workgroup>>
    %v = vector.load %a[%i, %i] : memref<8x8xbf16, strided<[9, 1]>>, vector<2xbf16>
    vector.store %v, %tile[%i, %i] : memref<8x8xbf16, #gpu.address_space<workgroup>>, vector<2xbf16>
    memref.store %zero, %tile[%i, %i] : memref<8x8xbf16, #gpu.address_space<workgroup>>
    return
  }
}
// ----- BYTES

module {
  func.func @f(%a: OF_A, %b: OF_B, %c: vector<2x2xSUM>) -> vector<2x2xSUM> {
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [SHAPE]} : (OF_A, OF_B, vector<2x2xSUM>) -> vector<2x2xSUM>
    return %d : vector<2x2xSUM>
  }
}
// ----- FLOATS

module {
  func.func @f(%a: OF_A, %b: OF_B, %c: vector<2x2xf32>) -> vector<2x2xf32> {
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [SHAPE]} : (OF_A, OF_B, vector<2x2xf32>) -> vector<2x2xf32>
    return %d : vector<2x2xf32>
  }
}
