module {
  func.func @f(%arg0: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 64>}, %arg1: memref<64x64xf32>, %arg2: index, %arg3: index) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %c50 = arith.constant 50 : index
    %0 = arith.cmpi slt, %arg2, %c50 : index
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %1 = arith.select %0, %c4, %c0 : index
    %2 = vector.create_mask %1 : vector<4xi1>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %3 = vector.transfer_read %arg0[%arg2, %arg3], %cst_0, %2 {in_bounds = [true]} : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
    vector.store %3, %alloc[%arg2, %arg3] : memref<64x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %c50_1 = arith.constant 50 : index
    %4 = arith.cmpi slt, %arg3, %c50_1 : index
    %5 = scf.if %4 -> (vector<4xf32>) {
      %6 = vector.load %arg0[%arg3, %arg2] : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
      scf.yield %6 : vector<4xf32>
    } else {
      %cst_2 = arith.constant dense<0.000000e+00> : vector<4xf32>
      scf.yield %cst_2 : vector<4xf32>
    }
    vector.store %5, %arg1[%arg3, %arg2] : memref<64x64xf32>, vector<4xf32>
    return
  }
}
