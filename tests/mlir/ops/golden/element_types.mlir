module {
  func.func @f(%arg0: memref<8x8xf16, strided<[9, 1]>>, %arg1: memref<8xf32>, %arg2: index) {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant dense<0.000000e+00> : vector<2x2xf16>
    %alloc = memref.alloc() : memref<8x8xf16, #gpu.address_space<workgroup>>
    %0 = vector.load %arg0[%arg2, %arg2] : memref<8x8xf16, strided<[9, 1]>>, vector<2xf16>
    vector.store %0, %alloc[%arg2, %arg2] : memref<8x8xf16, #gpu.address_space<workgroup>>, vector<2xf16>
    memref.store %cst, %alloc[%arg2, %arg2] : memref<8x8xf16, #gpu.address_space<workgroup>>
    return
  }
}
