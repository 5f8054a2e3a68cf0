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
// ----- PRODUCT

module {
  func.func @f(%a: vector<{a}>, %b: vector<{b}>, %c: vector<2x2x{c}>) -> vector<2x2x{c}> {
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [{shape}]} : (vector<{a}>, vector<{b}>, vector<2x2x{c}>) -> vector<2x2x{c}>
    return %d : vector<2x2x{c}>
  }
}
