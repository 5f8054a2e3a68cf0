module {
  func.func @f(%arg0: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>}, %arg1: memref<64x64xf32>, %arg2: index, %arg3: index) {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<64x64xf32, #gpu.address_space<workgroup>>
    %c50 = arith.constant 50 : index
    %0 = arith.cmpi slt, %arg2, %c50 : index
    %c60 = arith.constant 60 : index
    %1 = arith.cmpi slt, %arg3, %c60 : index
    %2 = arith.andi %0, %1 : i1
    %3 = scf.if %2 -> (vector<4xf32>) {
      %8 = vector.load %arg0[%arg2, %arg3] : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
      scf.yield %8 : vector<4xf32>
    } else {
      %cst_2 = arith.constant dense<0.000000e+00> : vector<4xf32>
      scf.yield %cst_2 : vector<4xf32>
    }
    vector.store %3, %alloc[%arg2, %arg3] : memref<64x64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    %c50_0 = arith.constant 50 : index
    %4 = arith.cmpi slt, %arg3, %c50_0 : index
    %c60_1 = arith.constant 60 : index
    %5 = arith.cmpi slt, %arg2, %c60_1 : index
    %6 = arith.andi %4, %5 : i1
    %7 = scf.if %6 -> (vector<4xf32>) {
      %8 = vector.load %arg0[%arg3, %arg2] : memref<64x64xf32, strided<[60, 1]>>, vector<4xf32>
      scf.yield %8 : vector<4xf32>
    } else {
      %cst_2 = arith.constant dense<0.000000e+00> : vector<4xf32>
      scf.yield %cst_2 : vector<4xf32>
    }
    vector.store %7, %arg1[%arg3, %arg2] : memref<64x64xf32>, vector<4xf32>
    return
  }
}
