// ----- PAYLOAD

module {
  func.func @f(%a: memref<64x64xf32, strided<[60, 1]>> BOUNDS, %c: memref<64x64xf32>, %i: index, %j: index) {
    %zero = arith.constant 0.0 : f32
    %tile = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %in = READ : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
    vector.store %in, %tile[%i, %j] : memref<64x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %direct = vector.load %a[%j, %i] : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
    vector.store %direct, %c[%j, %i] : memref<64x64xf32>, vector<4xf32>
    return
  }
}
