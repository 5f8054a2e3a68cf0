module {
  func.func @f(%arg0: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>}, %arg1: memref<64x64xf32>, %arg2: index, %arg3: index) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %c50 = arith.constant 50 : index
    %0 = arith.cmpi slt, %arg2, %c50 : index
    %c60 = arith.constant 60 : index
    %1 = arith.cmpi slt, %arg3, %c60 : index
    %2 = arith.andi %0, %1 : i1
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %3 = arith.select %2, %c4, %c0 : index
    %4 = vector.create_mask %3 : vector<4xi1>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %5 = vector.transfer_read %arg0[%arg2, %arg3], %cst_0, %4 {in_bounds = [true]} : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
    vector.store %5, %alloc[%arg2, %arg3] : memref<64x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %c50_1 = arith.constant 50 : index
    %6 = arith.cmpi slt, %arg3, %c50_1 : index
    %c60_2 = arith.constant 60 : index
    %7 = arith.cmpi slt, %arg2, %c60_2 : index
    %8 = arith.andi %6, %7 : i1
    %9 = scf.if %8 -> (vector<4xf32>) {
      %10 = vector.load %arg0[%arg3, %arg2] : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
      scf.yield %10 : vector<4xf32>
    } else {
      %cst_3 = arith.constant dense<0.000000e+00> : vector<4xf32>
      scf.yield %cst_3 : vector<4xf32>
    }
    vector.store %9, %arg1[%arg3, %arg2] : memref<64x64xf32>, vector<4xf32>
    return
  }
}
