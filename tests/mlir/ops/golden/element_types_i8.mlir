module {
  func.func @f(%arg0: memref<8x8xi8, strided<[9, 1]>>, %arg1: memref<8xf32>, %arg2: index) {
    %c0_i8 = arith.constant 0 : i8
    %cst = arith.constant dense<0> : vector<2x2xi8>
    %alloc = memref.alloc() : memref<8x8xi8, #gpu.address_space<workgroup>>
    %0 = vector.load %arg0[%arg2, %arg2] : memref<8x8xi8, strided<[9, 1]>>, vector<2xi8>
    vector.store %0, %alloc[%arg2, %arg2] : memref<8x8xi8, #gpu.address_space<workgroup>>, vector<2xi8>
    memref.store %c0_i8, %alloc[%arg2, %arg2] : memref<8x8xi8, #gpu.address_space<workgroup>>
    return
  }
}
