module {
  func.func @f(%arg0: memref<64xf32>, %arg1: memref<64xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %alloc = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
    scf.for %arg2 = %c0 to %c64 step %c4 {
      gpu.barrier
      %0 = vector.load %arg0[%arg2] : memref<64xf32>, vector<2xf32>
      vector.store %0, %alloc[%c0] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      vector.store %0, %alloc[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      gpu.barrier
      %1 = vector.load %alloc[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      vector.store %1, %arg1[%arg2] : memref<64xf32>, vector<2xf32>
    }
    scf.for %arg2 = %c0 to %c64 step %c4 {
      %0 = vector.load %alloc[%c0] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      vector.store %0, %arg1[%arg2] : memref<64xf32>, vector<2xf32>
    }
    return
  }
}
